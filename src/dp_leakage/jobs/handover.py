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
from contextlib import closing  # `python -m` has imported it already

from dp_leakage.jobs import RUN, VARIABLE

STEPS = "dp_leakage.steps."
FORMAT = 2  # of `marshal`; every Python 3 reads it
REFUSED, ENDED = b"R", b"E"  # the server's two answers, each followed by a wait status of four bytes
PASSED_ON = ("SIGINT", "SIGTERM", "SIGHUP", "SIGQUIT", "SIGUSR1", "SIGUSR2", "SIGCONT")


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
        _ask(folder, words[2], words[3:])
        if heeded:
            _signal.signal(_signal.SIGINT, _signal.default_int_handler)
    _end_with_run()


def _ask(folder: str, module: str, arguments: list[str]) -> None:
    """Exit with the work's status, or return if the server refuses it."""
    with closing(_socket.socket(_socket.AF_UNIX)) as server:
        try:
            server.connect(os.path.join(folder, "socket"))
            _send(server, module, arguments)
        except OSError:
            return
        status = _watched(server)
    if status is not None:
        _end_as(status)


def _end_with_run() -> None:
    """Arrange that this process is killed shortly after its run ends, for whatever reason.

    A step in a fork ends with the server. A step that runs by itself would survive a kill of Snakemake: the shell
    between them survives too. This does nothing if the run is no ancestor, as on another machine, or without Linux's
    process files.
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


def _send(server: _socket.socket, module: str, arguments: list[str]) -> None:
    """Query the server for this process's work."""
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


def send(to: _socket.socket, request: dict[str, object], files: list[int]) -> None:
    """A request for `work.received`: its length in eight bytes, with the files that it needs, then the request."""
    text = marshal.dumps(request, FORMAT)
    numbers = b"".join(file.to_bytes(4, sys.byteorder) for file in files)
    to.sendmsg([len(text).to_bytes(8)], [(_socket.SOL_SOCKET, _socket.SCM_RIGHTS, numbers)])
    to.sendall(text)


def _watched(server: _socket.socket) -> int | None:
    """Return the work's wait status, or None if the server refuses. Forwards signals meanwhile."""

    def pass_on(number: int, _frame: object) -> None:
        try:
            server.send(bytes([number]))
        except OSError:
            return  # the server is gone, which is said below

    def stop(_number: int, _frame: object) -> None:
        pass_on(_signal.SIGSTOP, None)
        os.kill(os.getpid(), _signal.SIGSTOP)

    handlers = {getattr(_signal, name): pass_on for name in PASSED_ON} | {_signal.SIGTSTP: stop}
    heeded = {number: _signal.getsignal(number) for number in handlers}
    for number, before in heeded.items():
        if before != _signal.SIG_IGN:
            _signal.signal(number, handlers[number])
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
            _signal.signal(number, before)
        return None
    return int.from_bytes(answer[1:])


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
