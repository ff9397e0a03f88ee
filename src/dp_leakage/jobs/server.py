"""The process that has the imports and forks a child per job: ``python -m dp_leakage.jobs.server FOLDER SOCKET``.

When the first job of a step comes, the server imports what the step imports. Before the next one, it also imports what
that job imported while it ran. Standard input is its life line: the run that started it holds the other end. However
the run ends, this process reads an end of file, kills the jobs and ends. Its children die with it.
"""

import atexit
import ctypes
import gc
import importlib
import json
import os
import runpy
import selectors
import shutil
import signal
import socket
import sys
import threading
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NoReturn

from dp_leakage.jobs import VARIABLE
from dp_leakage.jobs.benchmark import write_usage
from dp_leakage.jobs.handover import ENDED, REFUSED

PACKAGE = Path(__file__).parents[1]
LIFE_LINE = 0
FILES = 4  # file descriptors of a request: standard input, output and error, and the working folder
SLOW = 10.0  # seconds that a process gets to finish its request
LEARNT = 60_000  # bytes of a job's list of modules, less than a pipe holds
PR_SET_PDEATHSIG = 1
DRIVERS = ("/dev/nvidia", "/dev/dxg")
# Variables that a shell or Snakemake sets for each job and that no library reads while it is imported.
PASSING = {VARIABLE, "PWD", "OLDPWD", "SHLVL", "_", "TMPDIR", "TMP", "TEMP", "TEMPDIR"}
LIBC = ctypes.CDLL(None, use_errno=True)


@dataclass
class Job:
    """A working fork, and the process that waits for it."""

    pid: int
    ended: int  # a file that is readable once it has
    waiting: socket.socket
    learnt: int  # a pipe with the names of the modules that it imported
    module: str
    observed: tuple[int, int]  # the process ids that Snakemake may know it by: the waiting process, and its parent


class Server:
    """Listens for requests until the run that started it ends."""

    def __init__(self, folder: Path, listener: socket.socket) -> None:
        self.folder, self.listener = folder, listener
        self.environment = _lasting(os.environ)
        self.sources = _sources()
        self.wanted: dict[str, dict[str, None]] = {}  # step → modules that its jobs import, in their order
        self.fit = True
        self.jobs: list[Job] = []
        self.events = selectors.PollSelector()
        self.events.register(LIFE_LINE, selectors.EVENT_READ)
        self.events.register(listener, selectors.EVENT_READ)

    def serve(self) -> NoReturn:
        """Forks, reaps and passes signals on until the life line is cut."""
        while True:
            for key, _ in self.events.select():
                if key.fileobj is self.listener:
                    self._answer(self.listener.accept()[0])
                elif key.fileobj == LIFE_LINE:
                    self._end()
                elif key.fileobj is key.data.waiting:
                    self._pass_on(key.data)
                elif key.data in self.jobs:
                    self._reap(key.data)

    def _answer(self, waiting: socket.socket) -> None:
        waiting.settimeout(SLOW)
        try:
            request, files = _received(waiting)
        except (OSError, EOFError, ValueError):
            waiting.close()
            return
        if self._serves(request) and self._prepared(request["module"], files):
            self._fork(request, files, waiting)
        else:
            with suppress(OSError):
                waiting.sendall(REFUSED + bytes(4))
            waiting.close()
        for file in files:
            os.close(file)

    def _serves(self, request: dict[str, Any]) -> bool:
        """Whether a fork of this process would run the same code in the same environment as the waiting process."""
        return (
            self.fit
            and request["executable"] == sys.executable
            and request["package"] == str(PACKAGE)
            and _lasting(request["environment"]) == self.environment
            and _sources() == self.sources
        )

    def _prepared(self, module: str, files: list[int]) -> bool:
        """Imports what jobs of a step import. Anything that this prints goes to the job's log. False if it fails."""
        names = [name for name in [module, *self.wanted.get(module, ())] if name not in sys.modules]
        if not names:
            return True
        own = [os.dup(stream) for stream in (1, 2)]
        for file, stream in zip(files[1:3], (1, 2), strict=True):
            os.dup2(file, stream)
        for name in names:
            try:
                importlib.import_module(name)
            except BaseException:
                # If it is the step's own module, the job will say so. Others may fail alone, in a circle of imports.
                self.fit &= name != module
        _flush()
        for file, stream in zip(own, (1, 2), strict=True):
            os.dup2(file, stream)
            os.close(file)
        gc.collect()
        gc.freeze()  # the forks' garbage collector leaves these objects alone, so their pages stay shared
        self.fit &= _may_fork()
        return self.fit

    def _fork(self, request: dict[str, Any], files: list[int], waiting: socket.socket) -> None:
        learnt, tell = os.pipe()
        server = os.getpid()
        pid = os.fork()
        if pid == 0:
            _die_with(server)
            os.setpgid(0, 0)
            self.events.close()
            for file in (self.listener, waiting, *(job.waiting for job in self.jobs)):
                file.close()
            for number in (learnt, *(job.learnt for job in self.jobs), *(job.ended for job in self.jobs)):
                os.close(number)
            _work(request, files, tell)
        os.close(tell)
        with suppress(OSError):  # the child has set it already, or is gone
            os.setpgid(pid, pid)
        client = int.from_bytes(waiting.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 4), sys.byteorder)
        job = Job(pid, os.pidfd_open(pid), waiting, learnt, request["module"], (client, request["parent"]))
        waiting.setblocking(False)
        self.jobs.append(job)
        self.events.register(waiting, selectors.EVENT_READ, job)
        self.events.register(job.ended, selectors.EVENT_READ, job)
        write_usage(self.folder, job.observed, pid)

    def _pass_on(self, job: Job) -> None:
        """Passes on the signals that the waiting process got. If that process is gone, the work ends."""
        try:
            numbers = job.waiting.recv(64)
        except OSError:
            numbers = b""
        if not numbers:
            self.events.unregister(job.waiting)
        for number in numbers or (signal.SIGKILL,):
            with suppress(OSError):
                os.killpg(job.pid, number)

    def _reap(self, job: Job) -> None:
        _, status, used = os.wait4(job.pid, 0)
        with suppress(OSError):  # processes that the job started and left behind
            os.killpg(job.pid, signal.SIGKILL)
        if status == 0:
            names = os.read(job.learnt, LEARNT).decode().split()
            self.wanted.setdefault(job.module, {}).update(dict.fromkeys(names))
        write_usage(self.folder, job.observed, job.pid, used)
        with suppress(OSError):
            job.waiting.setblocking(True)
            job.waiting.sendall(ENDED + status.to_bytes(4))
        self.jobs.remove(job)
        self.events.unregister(job.ended)
        with suppress(KeyError):
            self.events.unregister(job.waiting)
        job.waiting.close()
        os.close(job.ended)
        os.close(job.learnt)

    def _end(self) -> NoReturn:
        for job in self.jobs:
            with suppress(OSError):
                os.killpg(job.pid, signal.SIGKILL)
        shutil.rmtree(self.folder, ignore_errors=True)
        os._exit(0)


def _received(waiting: socket.socket) -> tuple[dict[str, Any], list[int]]:
    """A request and its files. Raises EOFError, OSError or ValueError if it does not arrive whole."""
    size, files, _, _ = socket.recv_fds(waiting, 8, FILES)
    try:
        if len(size) < 8 or len(files) < FILES:
            raise EOFError
        text = bytearray()
        while len(text) < int.from_bytes(size):
            if not (more := waiting.recv(1 << 20)):
                raise EOFError
            text += more
        return json.loads(text), files
    except BaseException:
        for file in files:
            os.close(file)
        raise


def _lasting(environment: Mapping[str, str]) -> dict[str, str]:
    return {name: value for name, value in environment.items() if name not in PASSING}


def _sources() -> dict[str, tuple[int, int, int]]:
    """The package's source files and their times, since a fork of code imported earlier would ignore an edit."""
    found = {}
    for folder, _, names in os.walk(PACKAGE):
        for name in names:
            if name.endswith(".py"):
                state = os.stat(path := os.path.join(folder, name))
                found[path] = (state.st_mtime_ns, state.st_size, state.st_ino)
    return found


def _may_fork() -> bool:
    """Whether it is safe to fork: no second thread, which a fork would lose, and no CUDA context, which it could not
    use, whichever library made it.
    """
    return len(os.listdir("/proc/self/task")) == 1 and not _holds_driver()


def _holds_driver() -> bool:
    """Whether this process has a file of NVIDIA's driver open. A fork of it would find no device, and say nothing."""
    for file in os.listdir("/proc/self/fd"):
        with suppress(FileNotFoundError):  # the listing itself
            if os.readlink(f"/proc/self/fd/{file}").startswith(DRIVERS):
                return True
    return False


def _die_with(server: int) -> None:
    LIBC.prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != server:
        os._exit(1)


def _work(request: dict[str, Any], files: list[int], tell: int) -> NoReturn:
    """Runs in the fork, from start to end, as the process of ``python -m MODULE ARGUMENTS`` would."""
    before = set(sys.modules)
    for number, file in enumerate(files[:3]):
        os.dup2(file, number)
    os.fchdir(files[3])
    for file in files:
        os.close(file)
    os.umask(request["umask"])
    os.environ.clear()
    os.environ.update(request["environment"])
    module, arguments = request["module"], request["arguments"]
    sys.argv, sys.orig_argv = [module, *arguments], [sys.executable, "-m", module, *arguments]
    if not sys.flags.safe_path:
        sys.path[0] = os.getcwd()
    if "numpy.random" in sys.modules:
        sys.modules["numpy.random"].seed()
    # A module run as __main__ is not the same object as the imported one.
    sys.modules.pop(module, None)
    gc.enable()
    status, interrupted = _run(module)
    if status == 0:
        _tell(tell, before)
    with suppress(BaseException):
        threading._shutdown()  # type: ignore[attr-defined]
        atexit._run_exitfuncs()
    _flush()
    if interrupted:
        signal.signal(signal.SIGINT, signal.SIG_DFL)
        os.kill(os.getpid(), signal.SIGINT)
    os._exit(status)


def _run(module: str) -> tuple[int, bool]:
    """(exit status, whether Ctrl-C ended it), as the interpreter would end."""
    try:
        runpy.run_module(module, run_name="__main__", alter_sys=True)
    except SystemExit as end:
        if end.code is None or isinstance(end.code, int):
            return (end.code or 0) & 0xFF, False
        print(end.code, file=sys.stderr)
        return 1, False
    except BaseException as error:
        sys.excepthook(type(error), error, error.__traceback__)
        return 1, isinstance(error, KeyboardInterrupt)
    return 0, False


def _tell(pipe: int, before: set[str]) -> None:
    """The modules that a job imported and that later jobs may share: installed ones and this package's."""
    names = [name for name, module in list(sys.modules.items()) if name not in before and _lasts(name, module)]
    text = "\n".join(names).encode()
    os.write(pipe, text if len(text) <= LEARNT else b"")


def _lasts(name: str, module: object) -> bool:
    """Whether a module may be shared: it has a file, and it is not the user's own, which may be edited."""
    origin = getattr(getattr(module, "__spec__", None), "origin", None) or ""
    installed = "site-packages" in origin or origin.startswith(os.path.dirname(os.__file__))
    return name != "__main__" and (name.startswith("dp_leakage.") or installed)


def _flush() -> None:
    for stream in (sys.stdout, sys.stderr):
        with suppress(Exception):
            stream.flush()
    LIBC.fflush(None)


if __name__ == "__main__":
    gc.disable()
    Server(Path(sys.argv[1]), socket.socket(fileno=int(sys.argv[2]))).serve()
