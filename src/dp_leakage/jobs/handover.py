"""The job's side: a step's process hands its work over, passes signals on, and ends as the work ends.

Every job pays for what this module imports, so keep that small.
"""

import os
import sys

from dp_leakage.jobs import VARIABLE

TYPE_CHECKING = False  # instead of importing `typing`, which takes longer than everything else here
if TYPE_CHECKING:
    from socket import socket

STEPS = "dp_leakage.steps."
REFUSED, ENDED = b"R", b"E"  # the server's two answers, each followed by a wait status of four bytes
PASSED_ON = ("SIGINT", "SIGTERM", "SIGHUP", "SIGQUIT", "SIGUSR1", "SIGUSR2", "SIGCONT")


def hand_over() -> None:
    """Ends this process as its work ended in a fork of the run's server.

    Returns if the process must do the work itself: it was not started as ``python -m dp_leakage.steps.NAME``, there is
    no server, or the server refuses (another environment, another interpreter, code that was edited since).
    """
    folder, words = os.environ.get(VARIABLE), sys.orig_argv
    started_as_step = sys.argv[:1] == ["-m"] and words[1:2] == ["-m"] and words[2:3] and words[2].startswith(STEPS)
    if not folder or not started_as_step or not os.path.exists(folder):
        return
    import socket

    with socket.socket(socket.AF_UNIX) as server:
        try:
            server.connect(os.path.join(folder, "socket"))
            _send(server, words[2], words[3:])
        except OSError:
            return
        status = _watched(server)
    if status is not None:
        _end_as(status)


def _send(server: "socket", module: str, arguments: list[str]) -> None:
    """The request: its length in eight bytes, with the files that it needs, then JSON."""
    import array
    import json
    import socket

    mask = os.umask(0o022)
    os.umask(mask)
    request = {
        "module": module,
        "arguments": arguments,
        "environment": dict(os.environ),
        "umask": mask,
        "parent": os.getppid(),
        "executable": sys.executable,
        "package": os.path.dirname(os.path.dirname(os.path.abspath(__file__))),
    }
    text = json.dumps(request).encode()
    here = os.open(".", os.O_RDONLY)
    files = array.array("i", [0, 1, 2, here])
    server.sendmsg([len(text).to_bytes(8)], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, files)])
    server.sendall(text)
    os.close(here)


def _watched(server: "socket") -> int | None:
    """The work's wait status, or None if the server refuses. Signals are passed on meanwhile."""
    import signal

    def pass_on(number: int, _frame: object) -> None:
        server.send(bytes([number]))

    def stop(_number: int, _frame: object) -> None:
        server.send(bytes([signal.SIGSTOP]))
        os.kill(os.getpid(), signal.SIGSTOP)

    handlers = {getattr(signal, name): pass_on for name in PASSED_ON} | {signal.SIGTSTP: stop}
    heeded = {number: signal.getsignal(number) for number in handlers}
    for number, before in heeded.items():
        if before is not signal.SIG_IGN:
            signal.signal(number, handlers[number])
    answer = b""
    while len(answer) < 5 and (more := server.recv(5 - len(answer))):
        answer += more
    if len(answer) < 5:
        print("error: the process that this job was forked from was killed, and the job with it", file=sys.stderr)
        return 1 << 8
    if answer[:1] == REFUSED:
        for number, before in heeded.items():
            signal.signal(number, before)
        return None
    return int.from_bytes(answer[1:])


def _end_as(status: int) -> None:
    import signal

    sys.stderr.flush()
    code = os.waitstatus_to_exitcode(status)
    if code >= 0:
        os._exit(code)
    import resource

    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))  # the work has already left a core dump, if one is wanted
    if -code not in (signal.SIGKILL, signal.SIGSTOP):
        signal.signal(-code, signal.SIG_DFL)
    os.kill(os.getpid(), -code)
    os._exit(128 - code)
