"""Start of the server process by the run."""

import os
import socket
import subprocess
import sys
from pathlib import Path

from dp_leakage.common.temporary import own_folder
from dp_leakage.jobs import VARIABLE
from dp_leakage.jobs.benchmark import follow_work
from dp_leakage.jobs.sources import state

# The code as the workflow plans with it: this module is imported before anything is planned. A fork of later code would
# leave results under the identity of the earlier one.
CODE = state()
_server: subprocess.Popen[bytes] | None = None  # kept, since the server ends when its standard input is closed
# As Snakemake sets them for a job with one thread. Jobs with other values run by themselves.
THREADS = {f"{name}_THREADS": "1" for name in ("OMP_NUM", "GOTO_NUM", "OPENBLAS_NUM", "MKL_NUM", "NUMEXPR_NUM")}
THREADS["VECLIB_MAXIMUM_THREADS"] = "1"


def start() -> subprocess.Popen[bytes] | None:
    """Start the server and announce it to this process's jobs through the environment; None if that is impossible.

    The server ends when its standard input is closed, and so when this process ends for any reason.
    """
    global _server
    os.environ.pop(VARIABLE, None)
    if sys.platform != "linux":  # only Linux kills a child together with its parent
        return None
    try:
        folder = own_folder()
        with socket.socket(socket.AF_UNIX) as listener:
            listener.bind(str(folder / "socket"))
            listener.listen(1024)
            follow_work(folder)
            given: list[str | Path] = [CODE, folder, str(listener.fileno())]
            _server = subprocess.Popen(
                # Through the shell, which alters the environment: a job is served only if its environment equals the
                # server's.
                ["bash", "-c", 'exec "$0" "$@"', sys.executable, "-m", "dp_leakage.jobs.server", *given],
                stdin=subprocess.PIPE,
                stdout=subprocess.DEVNULL,
                pass_fds=[listener.fileno()],
                start_new_session=True,
                env=os.environ | THREADS,
            )
    except (OSError, AttributeError):
        return None
    os.environ[VARIABLE] = str(folder)
    return _server
