"""The run's side: starts the process that jobs are forked from."""

import os
import socket
import subprocess
import sys
from pathlib import Path
from tempfile import mkdtemp

from dp_leakage.jobs import VARIABLE
from dp_leakage.jobs.benchmark import follow_work

_server: subprocess.Popen[bytes] | None = None  # held: letting go of it would end it
# As Snakemake sets them for a job of one thread; jobs with others run by themselves.
THREADS = {f"{name}_THREADS": "1" for name in ("OMP_NUM", "GOTO_NUM", "OPENBLAS_NUM", "MKL_NUM", "NUMEXPR_NUM")}
THREADS["VECLIB_MAXIMUM_THREADS"] = "1"


def start() -> subprocess.Popen[bytes] | None:
    """Starts the server and tells the jobs of this process by the environment; None where that cannot be.

    Closing its standard input ends it, and so does the end of this process, whatever that is.
    """
    global _server
    os.environ.pop(VARIABLE, None)
    if sys.platform != "linux":  # no other system kills a child with its parent
        return None
    try:
        folder = Path(mkdtemp(prefix="dp_leakage-"))  # readable by the user alone
        with socket.socket(socket.AF_UNIX) as listener:
            listener.bind(str(folder / "socket"))
            listener.listen(1024)
            follow_work(folder)
            socket_number = str(listener.fileno())
            _server = subprocess.Popen(
                # By way of the shell, which alters the environment: a job is served where it has the server's own.
                ["bash", "-c", 'exec "$0" "$@"', sys.executable, "-m", "dp_leakage.jobs.server", folder, socket_number],
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
