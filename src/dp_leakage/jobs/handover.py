"""The job's side: a step's process hands its work over, passes signals on, and ends as the work ends.

Every job pays for what this module imports, so keep that small.
"""

import os
import sys

from dp_leakage.jobs import RUN, VARIABLE

TYPE_CHECKING = False  # instead of importing `typing`, which takes longer than everything else here
if TYPE_CHECKING:
    from socket import socket

STEPS = "dp_leakage.steps."
REFUSED, ENDED = b"R", b"E"  # the server's two answers, each followed by a wait status of four bytes
PASSED_ON = ("SIGINT", "SIGTERM", "SIGHUP", "SIGQUIT", "SIGUSR1", "SIGUSR2", "SIGCONT")


def hand_over() -> None:
    """Ends this process as its work ended in a fork of the run's server.

    Returns if the process must do the work itself: it was not started as ``python -m dp_leakage.steps.NAME``, there is
    no server, or the server refuses (another environment, another interpreter, code that was edited since). A step that
    does its work itself ends with its run.
    """
    folder, words = os.environ.get(VARIABLE), sys.orig_argv
    if not (sys.argv[:1] == ["-m"] and words[1:2] == ["-m"] and words[2:3] and words[2].startswith(STEPS)):
        return
    if folder and os.path.exists(folder):
        _ask(folder, words[2], words[3:])
    _end_with_run()


def _ask(folder: str, module: str, arguments: list[str]) -> None:
    """Ends as the work ends, or returns if the server does not take it."""
    import socket

    with socket.socket(socket.AF_UNIX) as server:
        try:
            server.connect(os.path.join(folder, "socket"))
            _send(server, module, arguments)
        except OSError:
            return
        status = _watched(server)
    if status is not None:
        _end_as(status)


def _end_with_run() -> None:
    """From now on this process is killed within a moment when its run ends, however that ends.

    A step that was handed over ends with the server. One that runs by itself would work on after a kill of Snakemake:
    the shell between them lives on, too. Does nothing where the run is no ancestor, as on another machine, and nothing
    without Linux's process files.
    """
    run = os.environ.get(RUN, "")
    if not run.isdecimal() or int(run) not in _ancestors():
        return
    import select
    import signal
    import threading

    ended = select.poll()  # unlike select.select, for any number of open files
    ended.register(os.pidfd_open(int(run)), select.POLLIN)

    def watch() -> None:
        ended.poll()
        os.kill(os.getpid(), signal.SIGKILL)

    threading.Thread(target=watch, daemon=True).start()


def _ancestors() -> list[int]:
    found, pid = [], os.getppid()
    try:
        while pid > 1:
            found.append(pid)
            with open(f"/proc/{pid}/stat") as file:
                pid = int(file.read().rpartition(")")[2].split()[1])
    except OSError:  # no Linux, or an ancestor ends just now
        pass
    return found


def _send(server: "socket", module: str, arguments: list[str]) -> None:
    """Asks the server for this process's work."""
    mask = os.umask(0o022)
    os.umask(mask)
    request = {
        "module": module,
        "arguments": arguments,
        "environment": dict(os.environ),
        "umask": mask,
        "parent": os.getppid(),
        # conda starts Snakemake by `python3.11` and its jobs by `python`, which are the same.
        "interpreter": [os.path.realpath(sys.executable), sys.prefix],
        "package": os.path.dirname(os.path.dirname(os.path.abspath(__file__))),
    }
    here = os.open(".", os.O_RDONLY)
    send(server, request, [0, 1, 2, here])
    os.close(here)


def send(to: "socket", request: dict[str, object], files: list[int]) -> None:
    """A request for `work.received`: its length in eight bytes, with the files that it needs, then JSON."""
    import json
    import socket

    text = json.dumps(request).encode()
    socket.send_fds(to, [len(text).to_bytes(8)], files)
    to.sendall(text)


def _watched(server: "socket") -> int | None:
    """The work's wait status, or None if the server refuses. Signals are passed on meanwhile."""
    import signal

    def pass_on(number: int, _frame: object) -> None:
        try:
            server.send(bytes([number]))
        except OSError:
            return  # the server is gone, which is said below

    def stop(_number: int, _frame: object) -> None:
        pass_on(signal.SIGSTOP, None)
        os.kill(os.getpid(), signal.SIGSTOP)

    handlers = {getattr(signal, name): pass_on for name in PASSED_ON} | {signal.SIGTSTP: stop}
    heeded = {number: signal.getsignal(number) for number in handlers}
    for number, before in heeded.items():
        if before is not signal.SIG_IGN:
            signal.signal(number, handlers[number])
    answer = b""
    try:
        while len(answer) < 5 and (more := server.recv(5 - len(answer))):
            answer += more
    except OSError:  # a server that is killed before it has read all ends the connection this way
        pass
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
