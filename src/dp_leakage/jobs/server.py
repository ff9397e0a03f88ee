"""Process that loads the imports, and forks for each job a supervisor and the job's work.

``python -m dp_leakage.jobs.server FOLDER SOCKET``, as the run's first job starts it (``handover``). When the first job
of a step comes, the server imports what the step imports. Before the next one, it also imports what that job imported
while it ran.

However the run ends, the server sees the end of its process and ends. The supervisors see that, and kill the work.
"""

import atexit
import ctypes
import gc
import importlib
import marshal
import os
import runpy
import select
import shutil
import signal
import socket
import sys
import threading
import weakref
from collections.abc import Mapping
from contextlib import suppress
from hashlib import blake2b
from pathlib import Path
from typing import Any, NoReturn

from dp_leakage import jobs
from dp_leakage.common.temporary import own_folder
from dp_leakage.jobs import RUN, STATE, VARIABLE

PACKAGE = Path(__file__).parents[1]
FILES = 5  # of a request: standard input, output and error, the working folder, and what is asked
SLOW = 10.0  # seconds that a process gets to finish its request
LONGEST = 100_000  # bytes of the names of a job's modules; a longer message is not sent
DRIVERS = ("/dev/nvidia", "/dev/dxg")
PR_SET_PDEATHSIG = 1
LIBC = ctypes.CDLL(None, use_errno=True)
# Variables that a shell or Snakemake sets for each job and that no library reads while it is imported.
PASSING = {"PWD", "OLDPWD", "SHLVL", "_", "TMPDIR", "TMP", "TEMP", "TEMPDIR"}


def state() -> str:
    """Return a digest of the names, times, sizes and inodes of the package's source files; 32 hexadecimal digits."""
    found = []
    for folder, _, names in os.walk(PACKAGE):
        for name in names:
            if name.endswith(".py"):
                file = os.stat(path := os.path.join(folder, name))
                found.append((path, file.st_mtime_ns, file.st_size, file.st_ino))
    return blake2b(repr(sorted(found)).encode(), digest_size=16).hexdigest()


def announce(serving: bool) -> None:
    """Tell the jobs of this process, which runs the workflow, of the run, of its code, and where a server may be.

    Call it before anything is planned: a fork of later code would leave results under the identity of the earlier one.
    """
    os.environ.update({RUN: str(os.getpid()), STATE: state()})
    os.environ.pop(VARIABLE, None)
    if serving and sys.platform == "linux":  # only Linux kills a child together with its parent
        with suppress(OSError):
            os.environ[VARIABLE] = str(own_folder())


class Server:
    """Listener for requests, until the run that started it ends."""

    def __init__(self, folder: Path, listener: socket.socket) -> None:
        self.folder, self.listener, self.run = folder, listener, os.pidfd_open(int(os.environ[RUN]))
        self.environment = _lasting(os.environ)
        self.wanted: dict[str, dict[str, None]] = {}  # step → modules that its jobs import, in their order
        self.told, self.tell = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self.fit = True

    def serve(self) -> NoReturn:
        """Fork until the run ends."""
        while True:
            ready = _ready(self.run, self.listener, self.told)
            if self.run in ready:
                shutil.rmtree(self.folder, ignore_errors=True)
                os._exit(0)
            if self.told in ready:
                module, names = marshal.loads(self.told.recv(LONGEST))
                self.wanted.setdefault(module, {}).update(dict.fromkeys(names))
            if self.listener in ready:
                self._answer(self.listener.accept()[0])
            with suppress(ChildProcessError):
                while os.waitpid(-1, os.WNOHANG)[0]:
                    pass

    def _answer(self, waiting: socket.socket) -> None:
        """Fork for a request, or refuse it by closing the connection."""
        waiting.settimeout(SLOW)
        files: list[int] = []
        with waiting, suppress(OSError, EOFError, TypeError, ValueError):
            files = socket.recv_fds(waiting, 1, FILES)[1]
            request = marshal.loads(os.pread(files[-1], os.fstat(files[-1]).st_size, 0)) if files else {}
            if len(files) == FILES and self._serves(request) and self._prepared(request["module"], files):
                server = os.getpid()
                if os.fork() == 0:
                    try:
                        self._supervise(server, request, files, waiting)
                    finally:
                        os._exit(1)
        for file in files:
            os.close(file)

    def _serves(self, request: dict[str, Any]) -> bool:
        """Return whether a fork would run the planned code, in the environment of the waiting process."""
        return (
            self.fit
            and request["interpreter"] == [os.path.realpath(sys.executable), sys.prefix]
            and request["package"] == str(PACKAGE)
            and _lasting(request["environment"]) == self.environment
            and state() == self.environment[STATE]
        )

    def _prepared(self, module: str, files: list[int]) -> bool:
        """Import the modules of a step's jobs. Printed text goes to the job's log. Returns False if an import
        fails.
        """
        names = [name for name in [module, *self.wanted.get(module, ())] if name not in sys.modules]
        if not names:
            return True
        own = [os.dup(stream) for stream in (1, 2)]
        _redirect(files[1:3], (1, 2))
        for name in names:
            try:
                importlib.import_module(name)
            except BaseException:
                # If it is the step's own module, the job will say so. Others may fail alone, in a circle of imports.
                self.fit &= name != module
        _flush()
        _redirect(own, (1, 2))
        for file in own:
            os.close(file)
        gc.collect()
        gc.freeze()  # the forks' garbage collector leaves these objects alone, so their pages stay shared
        for finalizer in weakref.finalize._registry:  # type: ignore[attr-defined]
            finalizer.atexit = False  # a fork ends without the server's: PyTorch has 20 ms of them
        self.fit &= _may_fork()
        return self.fit

    def _supervise(self, server: int, request: dict[str, Any], files: list[int], waiting: socket.socket) -> None:
        """Fork for the work, and kill it if the waiting process or the server ends before it."""
        alive, supervisor = os.pidfd_open(server), os.getpid()
        self.listener.close()
        self.told.close()
        if (work := os.fork()) == 0:
            os.setpgid(0, 0)
            waiting.close()
            os.close(alive)
            self._work(supervisor, request, files)
        with suppress(OSError):  # the child has set it already, or is gone
            os.setpgid(work, work)
        for file in files:
            os.close(file)
        waiting.setblocking(True)
        with suppress(OSError):  # nobody waits any more
            waiting.sendall(work.to_bytes(4))
        ended = os.pidfd_open(work)
        ready = _ready(ended, alive, waiting)
        if ended not in ready:
            os.killpg(work, signal.SIGKILL)
        _, status = os.waitpid(work, 0)
        with suppress(OSError):
            os.killpg(work, signal.SIGKILL)  # what the job left behind
        if alive not in ready:
            with suppress(OSError):
                waiting.sendall(status.to_bytes(4))

    def _work(self, supervisor: int, request: dict[str, Any], files: list[int]) -> NoReturn:
        """Run the job like ``python -m MODULE ARGUMENTS``, to the end of this process."""
        LIBC.prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
        if os.getppid() != supervisor:
            os._exit(1)
        _redirect(files[:3], (0, 1, 2))
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
        jobs.served, before = True, set(sys.modules)
        # A module run as __main__ is not the same object as the imported one.
        sys.modules.pop(module, None)
        gc.enable()
        status, interrupted = _run(module)
        names = marshal.dumps((module, [name for name in list(sys.modules) if name not in before and _lasts(name)]))
        if status == 0 and len(names) <= LONGEST:
            self.tell.send(names)
        with suppress(BaseException):
            threading._shutdown()  # type: ignore[attr-defined]
            atexit._run_exitfuncs()
        _flush()
        if interrupted:
            signal.signal(signal.SIGINT, signal.SIG_DFL)
            os.kill(os.getpid(), signal.SIGINT)
        os._exit(status)


def _run(module: str) -> tuple[int, bool]:
    """Run a job like an interpreter; return its exit status, and whether Ctrl-C ended it."""
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


def _ready(*files: int | socket.socket) -> list[int | socket.socket]:
    """Wait for some files; return those that can be read, or have ended."""
    return select.select(files, [], [])[0]


def _redirect(files: list[int], streams: tuple[int, ...]) -> None:
    for file, stream in zip(files, streams, strict=True):
        os.dup2(file, stream)


def _lasting(environment: Mapping[str, str]) -> dict[str, str]:
    return {name: value for name, value in environment.items() if name not in PASSING}


def _lasts(name: str) -> bool:
    """Return whether later jobs may share a module: it is this package's or installed, not the user's own, which may
    be edited.
    """
    origin = getattr(getattr(sys.modules[name], "__spec__", None), "origin", None) or ""
    installed = "site-packages" in origin or origin.startswith(os.path.dirname(os.__file__))
    return name != "__main__" and (name.startswith("dp_leakage.") or installed)


def _may_fork() -> bool:
    """Return whether forking is safe: without a second thread, which a fork loses, or a CUDA context, which it
    cannot use.
    """
    return len(os.listdir("/proc/self/task")) == 1 and not _holds_driver()


def _holds_driver() -> bool:
    """Return whether this process has a file of NVIDIA's driver open. A fork of it would silently find no device."""
    for file in os.listdir("/proc/self/fd"):
        with suppress(FileNotFoundError):  # the listing itself
            if os.readlink(f"/proc/self/fd/{file}").startswith(DRIVERS):
                return True
    return False


def _flush() -> None:
    """Write out what Python and C hold back."""
    for stream in (sys.stdout, sys.stderr):
        with suppress(Exception):
            stream.flush()
    LIBC.fflush(None)


if __name__ == "__main__":
    gc.disable()
    Server(Path(sys.argv[1]), socket.socket(fileno=int(sys.argv[2]))).serve()
