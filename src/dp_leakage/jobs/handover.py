"""Client side: a step's process hands over its work, forwards signals, and exits with the work's status.

Every job pays for what this module imports. So sockets and signals are the interpreter's own modules, without the
enums that the library wraps them in, and requests go by `marshal`, not by JSON: 16 ms of processor time a job instead
of 25.
"""

import _signal  # type: ignore[import-not-found]
import _socket
import marshal
import os
import sys
from contextlib import closing, suppress  # `python -m` has imported it already

from dp_leakage.jobs import RUN, VARIABLE

STEPS = "dp_leakage.steps."
PASSED_ON = ("SIGINT", "SIGTERM", "SIGHUP", "SIGQUIT", "SIGUSR1", "SIGUSR2", "SIGCONT", "SIGTSTP")


def hand_over() -> None:
    """End this process with the status of its work in a fork of the run's server.

    Returns if the process must do the work itself: it was not started as ``python -m dp_leakage.steps.NAME``, there is
    no server, or the server refuses (another environment, another interpreter, code that was edited since). A step that
    does its work itself ends with its run.
    """
    folder, words = os.environ.get(VARIABLE), sys.orig_argv
    if not (sys.argv[:1] == ["-m"] and words[1:2] == ["-m"] and words[2:3] and words[2].startswith(STEPS)):
        return
    if folder and os.path.exists(folder):
        heeded = _signal.getsignal(_signal.SIGINT) is _signal.default_int_handler
        if heeded:
            _signal.signal(_signal.SIGINT, _signal.SIG_DFL)  # ends this process without a traceback
        with closing(_socket.socket(_socket.AF_UNIX)) as server:
            if group := _asked(server, folder, words[2], words[3:]):
                _end_as(_awaited(server, group))
        if heeded:
            _signal.signal(_signal.SIGINT, _signal.default_int_handler)
    _end_with_run()


def _asked(server: _socket.socket, folder: str, module: str, arguments: list[str]) -> int:
    """Ask the server for this process's work; return its process group, or 0 if there is no server or it refuses."""
    mask = os.umask(0o022)
    os.umask(mask)
    request = {
        "module": module,
        "arguments": arguments,
        "environment": dict(os.environ),
        "umask": mask,
        # conda starts Snakemake by `python3.11` and its jobs by `python`, which are the same.
        "interpreter": [os.path.realpath(sys.executable), sys.prefix],
        "package": os.path.dirname(os.path.dirname(os.path.abspath(__file__))),
    }
    address = os.path.join(folder, "socket")
    try:
        if not os.path.exists(address):
            _start_server(folder, address)
        server.connect(address)
        files = [0, 1, 2, os.open(".", os.O_RDONLY), os.memfd_create("request")]
        os.write(files[-1], marshal.dumps(request))
        numbers = b"".join(file.to_bytes(4, sys.byteorder) for file in files)
        server.sendmsg([b"?"], [(_socket.SOL_SOCKET, _socket.SCM_RIGHTS, numbers)])
        for file in files[3:]:
            os.close(file)
        return int.from_bytes(server.recv(4))
    except OSError:
        return 0


def _start_server(folder: str, address: str) -> None:
    """Start the run's server, in this process's environment. The first job of a run does; of several, the fastest."""
    with closing(_socket.socket(_socket.AF_UNIX)) as listener:
        listener.bind(own := f"{address}.{os.getpid()}")
        listener.listen(1024)
        try:
            os.link(own, address)
        except FileExistsError:
            return
        finally:
            os.unlink(own)
        os.set_inheritable(listener.fileno(), True)
        null = os.open(os.devnull, os.O_RDWR)
        os.posix_spawn(
            sys.executable,
            [sys.executable, "-m", "dp_leakage.jobs.server", folder, str(listener.fileno())],
            os.environ,
            file_actions=[(os.POSIX_SPAWN_DUP2, null, stream) for stream in (0, 1, 2)],
            setsid=True,
        )
        os.close(null)


def _awaited(server: _socket.socket, group: int) -> int:
    """Return the work's wait status. Forwards signals meanwhile."""

    def pass_on(number: int, _frame: object) -> None:
        stops = number == _signal.SIGTSTP
        with suppress(ProcessLookupError):  # it has ended
            os.killpg(group, _signal.SIGSTOP if stops else number)
        if stops:
            os.kill(os.getpid(), _signal.SIGSTOP)

    for number in (getattr(_signal, name) for name in PASSED_ON):
        if _signal.getsignal(number) != _signal.SIG_IGN:
            _signal.signal(number, pass_on)
    status = b""
    with suppress(OSError):
        status = server.recv(4)
    if not status:
        print("error: the process that this job was forked from was killed, and the job with it", file=sys.stderr)
        return 1 << 8
    return int.from_bytes(status)


def _end_as(status: int) -> None:
    sys.stderr.flush()
    code = os.waitstatus_to_exitcode(status)
    if code >= 0:
        os._exit(code)
    import resource

    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))  # the work has already left a core dump, if one is wanted
    if -code not in (_signal.SIGKILL, _signal.SIGSTOP):
        _signal.signal(-code, _signal.SIG_DFL)
    os.kill(os.getpid(), -code)
    os._exit(128 - code)


def _end_with_run() -> None:
    """Arrange that this process is killed shortly after its run ends, for whatever reason.

    A step in a fork ends with the server. A step that runs by itself would survive a kill of Snakemake: the shell
    between them survives too.
    """
    try:
        run = os.pidfd_open(int(os.environ[RUN]))
    except (KeyError, ValueError, OSError, AttributeError):  # no run, none on this machine, or no Linux
        return
    import select
    import signal
    import threading

    def watch() -> None:
        select.select([run], [], [])
        os.kill(os.getpid(), signal.SIGKILL)

    threading.Thread(target=watch, daemon=True).start()
