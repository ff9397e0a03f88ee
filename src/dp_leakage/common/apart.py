"""Run foreign code in a child process that returns arrays or fails with one error message.

It may raise anything, end its process, start others, exhaust the memory, run on for ever, close files or change how
NumPy treats rounding. Only arrays of plain numbers and texts come back. This keeps accidents out of a run; it is no
sandbox against code that means harm, which has the rights of the user who runs it.
"""

import ctypes
import io
import os
import resource
import select
import signal
import sys
import time
import zipfile
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from math import inf
from pathlib import Path
from typing import NamedTuple, NoReturn

import numpy as np
import psutil

from dp_leakage.common.errors import UserError, brief, plain

Arrays = dict[str, np.ndarray]
RESULT, FAILED, DONE = b"RED"  # the first byte of a message
HEAD = 9  # bytes before a message's content: that one, and the content's length
PATIENCE = 0.2  # seconds between two looks at a child that says nothing
PR_SET_PDEATHSIG = 1
PR_SET_CHILD_SUBREAPER = 36
GIB = 2**30
MOST = 2**40  # bytes of a result; more are none of ours


class Limits(NamedTuple):
    """Limits of a child process.

    Attributes:
        seconds: wall time.
        memory: bytes in addition to the memory of this process; None: no limit.
    """

    seconds: float = inf
    memory: int | None = None


UNLIMITED = Limits()


def apart(what: str, work: Callable[[], Iterable[Arrays]], limits: Limits = UNLIMITED) -> Iterator[Arrays]:
    """Yield the results of some work, each as soon as it exists. The child process and its children end with the
    iteration.

    Args:
        what: the code's name for the error message, e.g. ``TRAIN=mine:train``.
        work: called in the child, a fork of this process. Its results may hold numbers, booleans and texts.
        limits: of the child.

    Raises:
        UserError: the work raises an exception, ends its process, or exceeds a limit.
    """
    for stream in (sys.stdout, sys.stderr):
        with suppress(Exception):
            stream.flush()  # or the child would have the same text to write
    parent, before = os.getpid(), _children()
    _adopt_orphans(True)
    reading, writing = os.pipe()
    pid = os.fork()
    if pid == 0:
        os.close(reading)
        _work(what, work, limits, parent, writing)
    os.close(writing)
    child = _Child(what, pid, reading, limits)
    try:
        yield from child.results()
    finally:
        child.end()
        _end_others(before)
        _adopt_orphans(False)


def _adopt_orphans(on: bool) -> None:
    """Let processes whose parents ended become children of this one, so that daemons of the work are found (Linux)."""
    with suppress(AttributeError, OSError):
        ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, int(on))


def _children() -> set[int]:
    return {child.pid for child in psutil.Process().children()}


def _end_others(before: set[int]) -> None:
    """End every child that was not there before, and every process that becomes a child as a result."""
    while others := [child for child in psutil.Process().children() if child.pid not in before]:
        for child in others:
            with suppress(psutil.NoSuchProcess):
                child.kill()
            with suppress(ChildProcessError):
                os.waitpid(child.pid, 0)


class _Child:
    """The parent's side."""

    def __init__(self, what: str, pid: int, pipe: int, limits: Limits) -> None:
        self.what, self.pid, self.pipe, self.limits = what, pid, pipe, limits
        self.until = time.monotonic() + limits.seconds
        self.status: int | None = None  # as `os.waitpid` gives it, once the child has ended

    def results(self) -> Iterator[Arrays]:
        while True:
            head = self._read(HEAD)
            size = int.from_bytes(head[1:])
            if head[0] not in (RESULT, FAILED, DONE) or size > MOST:
                words = "wrote into the files of its process; write only to files that it opens itself"
                raise UserError(f"{self.what} {words}")
            content = self._read(size)
            if head[0] == DONE:
                return
            if head[0] == FAILED:
                raise UserError(content.decode("utf-8", "replace"))
            with np.load(io.BytesIO(content), allow_pickle=False) as arrays:
                yield dict(arrays)

    def _read(self, count: int) -> bytes:
        found = bytearray()
        while len(found) < count:
            if time.monotonic() > self.until:
                raise UserError(f"{self.what} takes more than {self.limits.seconds:g} s, and was stopped")
            ready, _, _ = select.select([self.pipe], [], [], 0 if self._ended() else PATIENCE)
            more = os.read(self.pipe, min(count - len(found), 1 << 20)) if ready else b""
            if not more and (ready or self._ended()):
                raise UserError(f"{self.what} {self._end_in_words()}")
            found += more
        return bytes(found)

    def _ended(self) -> bool:
        if self.status is None:
            pid, status = os.waitpid(self.pid, os.WNOHANG)
            self.status = status if pid else None
        return self.status is not None

    def _end_in_words(self) -> str:
        for _ in range(50):  # the pipe may close a moment before the process is gone
            if self._ended():
                break
            time.sleep(PATIENCE / 10)
        status = None if self.status is None else os.waitstatus_to_exitcode(self.status)
        if status is None:
            return "closed the files of its process; leave open what others opened"
        if status >= 0:
            return f"ended its process (exit status {status}); return, or raise an error"
        reason = " (out of memory?)" if -status == signal.SIGKILL else ""
        return f"was ended by the signal {signal.Signals(-status).name}{reason}"

    def end(self) -> None:
        os.close(self.pipe)
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(self.pid, signal.SIGKILL)
        if self.status is None:
            with suppress(ProcessLookupError):
                os.kill(self.pid, signal.SIGKILL)
            os.waitpid(self.pid, 0)


def _work(what: str, work: Callable[[], Iterable[Arrays]], limits: Limits, parent: int, pipe: int) -> NoReturn:
    """Run the work in the child process."""
    own = os.getpid()

    def send(kind: int, content: bytes = b"") -> None:
        if os.getpid() != own:
            os._exit(0)  # a process that the work forked and that came back here; one of the two goes on
        message = memoryview(bytes([kind]) + len(content).to_bytes(8) + content)
        while message:
            message = message[os.write(pipe, message) :]

    try:
        _set_apart(limits, parent)
        for result in work():
            send(RESULT, _packed(result))
        send(DONE)
    except BaseException as error:  # foreign code can raise anything, or call sys.exit
        with suppress(BaseException):
            send(FAILED, _words(what, error, limits).encode())
    finally:
        for stream in (sys.stdout, sys.stderr):
            with suppress(BaseException):
                stream.flush()
        os._exit(0)


def _set_apart(limits: Limits, parent: int) -> None:
    os.setpgid(0, 0)
    signal.signal(signal.SIGINT, signal.SIG_DFL)  # Ctrl-C goes to the parent
    with suppress(AttributeError, OSError):  # Linux alone; elsewhere a killed parent leaves its child behind
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:
        os._exit(1)
    nothing = os.open(os.devnull, os.O_RDONLY)  # a group in the background that reads the terminal would be stopped
    os.dup2(nothing, 0)
    os.close(nothing)
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    if limits.memory is not None:
        most, allowed = _used() + limits.memory, resource.getrlimit(resource.RLIMIT_AS)[1]
        most = most if allowed == resource.RLIM_INFINITY else min(most, allowed)
        resource.setrlimit(resource.RLIMIT_AS, (most, most))


def _used() -> int:
    """Return the bytes of address space of this process."""
    return int(Path("/proc/self/statm").read_text(encoding="ascii").split()[0]) * resource.getpagesize()


def _packed(result: Arrays) -> bytes:
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w") as archive:  # as `np.savez`, which would pickle objects
        for name, array in result.items():
            with archive.open(f"{name}.npy", "w", force_zip64=True) as file:
                np.lib.format.write_array(file, np.asarray(array), allow_pickle=False)
    return content.getvalue()


def _words(what: str, error: BaseException, limits: Limits) -> str:
    if isinstance(error, UserError):
        return str(error)
    if isinstance(error, MemoryError) and limits.memory is not None:
        return f"{what} takes more than {limits.memory / GIB:.3g} GiB of memory, and was stopped"
    try:
        said = brief(error)
    except BaseException:  # its own class may be unable to say even that
        said = ""
    return plain(f"{what}: {type(error).__name__}{': ' if said else ''}{said}")
