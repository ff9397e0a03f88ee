"""Work of a fork of the server: one job or, with a CUDA context, one job after another."""

import atexit
import ctypes
import gc
import json
import marshal
import os
import resource
import runpy
import signal
import socket
import sys
import threading
from contextlib import suppress
from typing import Any, NoReturn

from dp_leakage import jobs
from dp_leakage.jobs.benchmark import sums

FILES = 4  # file descriptors of a request: standard input, output and error, and the working folder
IMPORTED = 60_000  # bytes of a job's list of modules, less than a pipe holds
PR_SET_PDEATHSIG = 1
LIBC = ctypes.CDLL(None, use_errno=True)


def die_with(server: int) -> None:
    """Arrange that this process is killed when the server ends."""
    LIBC.prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != server:
        os._exit(1)


def received(waiting: socket.socket, count: int = FILES) -> tuple[dict[str, Any], list[int]]:
    """Return a message of `handover.send`. Raises EOFError, OSError, TypeError or ValueError if it is incomplete."""
    size, files, _, _ = socket.recv_fds(waiting, 8, count)
    try:
        if len(size) < 8 or len(files) < count:
            raise EOFError
        text = bytearray()
        while len(text) < int.from_bytes(size):
            if not (more := waiting.recv(1 << 20)):
                raise EOFError
            text += more
        return marshal.loads(text), files
    except BaseException:
        for file in files:
            os.close(file)
        raise


def work(request: dict[str, Any], files: list[int], line: socket.socket | None) -> NoReturn:
    """Run the job in the fork, from start to end.

    Args:
        request: the job.
        files: those of the request, and a pipe for the names of the modules that the job imports.
        line: to the server, for a fork that may stay; else None.
    """
    torch = sys.modules.get("torch")
    random = torch.get_rng_state() if torch else None
    while True:
        before, spent = set(sys.modules), sums(resource.getrusage(resource.RUSAGE_SELF))
        *own, tell = files
        status, interrupted = _do(request, own)
        if status == 0:
            _tell(tell, before)
        os.close(tell)
        flush()
        if status or line is None or not _stays(before):
            break
        _leave()
        seconds, most, *blocks = sums(resource.getrusage(resource.RUSAGE_SELF))
        line.sendall(json.dumps([seconds - spent[0], most, blocks[0] - spent[2], blocks[1] - spent[3]]).encode())
        request, files = received(line, FILES + 1)
        if torch:
            torch.set_rng_state(random)
    with suppress(BaseException):
        threading._shutdown()  # type: ignore[attr-defined]
        atexit._run_exitfuncs()
    flush()
    if interrupted:
        signal.signal(signal.SIGINT, signal.SIG_DFL)
        os.kill(os.getpid(), signal.SIGINT)
    os._exit(status)


def _do(request: dict[str, Any], files: list[int]) -> tuple[int, bool]:
    """Run a job like ``python -m MODULE ARGUMENTS``; return its exit status, and whether Ctrl-C ended it."""
    for number, file in enumerate(files[:3]):
        os.dup2(file, number)
    os.fchdir(files[3])
    for file in files:
        os.close(file)
    os.umask(request["umask"])
    jobs.served = True
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
    return _run(module)


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


def _stays(before: set[str]) -> bool:
    """Return whether this process may run another job: it has a CUDA context, and no state of the job or the user.

    After a failed job or a device error, the process ends.
    """
    if not _holds_context() or threading.active_count() > 1:
        return False
    from dp_leakage.common.paths import COPIES
    from dp_leakage.common.user_code import FILES as PLUGINS

    if PLUGINS or COPIES or any(_is_own(name, sys.modules[name]) for name in sys.modules.keys() - before):
        return False
    gc.collect()
    return _gives_back_memory()


def _holds_context() -> bool:
    torch: Any = sys.modules.get("torch")
    return torch is not None and torch.cuda.is_initialized()


def _gives_back_memory() -> bool:
    """Free the device's memory for other jobs. Returns False after an error of the device."""
    torch: Any = sys.modules["torch"]
    try:
        torch.cuda.synchronize()
        torch.cuda.empty_cache()
    except RuntimeError:
        return False
    return True


def _leave() -> None:
    """Release the job's memory, files and folder."""
    with suppress(AttributeError):  # glibc's: jobs are told to keep what they free
        LIBC.malloc_trim(0)
    nowhere = os.open(os.devnull, os.O_RDWR)
    for number in range(3):
        os.dup2(nowhere, number)
    os.close(nowhere)
    os.chdir("/")


def _tell(pipe: int, before: set[str]) -> None:
    """Report the modules that a job imported and that later jobs may share: installed ones and this package's."""
    names = [name for name, module in list(sys.modules.items()) if name not in before and _lasts(name, module)]
    text = "\n".join(names).encode()
    os.write(pipe, text if len(text) <= IMPORTED else b"")


def _lasts(name: str, module: object) -> bool:
    """Return whether a module may be shared: it has a file and is not the user's own, which may be edited."""
    return name != "__main__" and (name.startswith("dp_leakage.") or _is_installed(_origin(module)))


def _is_own(name: str, module: object) -> bool:
    """Return whether a module comes from a file of the user."""
    return os.sep in _origin(module) and not _lasts(name, module)


def _is_installed(origin: str) -> bool:
    return "site-packages" in origin or origin.startswith(os.path.dirname(os.__file__))


def _origin(module: object) -> str:
    return getattr(getattr(module, "__spec__", None), "origin", None) or ""


def flush() -> None:
    """Write out what Python and C hold back."""
    for stream in (sys.stdout, sys.stderr):
        with suppress(Exception):
            stream.flush()
    LIBC.fflush(None)
