"""Process that loads the imports and forks a child per job.

``python -m dp_leakage.jobs.server CODE FOLDER SOCKET``, where CODE is the state of the code that the run planned with
(`sources.state`).

When the first job of a step comes, the server imports what the step imports. Before the next one, it also imports what
that job imported while it ran. Standard input is its life line: the run that started it holds the other end. However
the run ends, this process reads an end of file, kills the jobs and ends. Its children die with it.

A child that has used a CUDA device may stay and wait for the next job that can use one (`work.work`): no fork can
inherit its context, which takes seconds to make.
"""

import gc
import importlib
import json
import os
import selectors
import shutil
import signal
import socket
import sys
import weakref
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple, NoReturn

from dp_leakage.jobs import VARIABLE
from dp_leakage.jobs.benchmark import sums, write_usage
from dp_leakage.jobs.handover import ENDED, REFUSED, send
from dp_leakage.jobs.sources import PACKAGE, state
from dp_leakage.jobs.work import IMPORTED, die_with, flush, received, work

LIFE_LINE = 0
SLOW = 10.0  # seconds that a process gets to finish its request
DRIVERS = ("/dev/nvidia", "/dev/dxg")
# Steps that work on a CUDA device if there is one. Only their processes stay, for one another.
ON_DEVICE = {f"dp_leakage.steps.{name}" for name in ("tune", "train", "query", "judge")}
# Variables that a shell or Snakemake sets for each job and that no library reads while it is imported.
PASSING = {VARIABLE, "PWD", "OLDPWD", "SHLVL", "_", "TMPDIR", "TMP", "TEMP", "TEMPDIR"}


class Fork(NamedTuple):
    """A child process that runs jobs."""

    pid: int
    ended: int  # a file that is readable once it has
    line: socket.socket  # its other end says that a job is done and that the child stays, and takes the next one


@dataclass(eq=False)
class Job:
    """A job at work, and the process that waits for it."""

    fork: Fork
    waiting: socket.socket
    imported: int  # a pipe with the names of the modules that it imported
    module: str
    observed: tuple[int, int]  # the process ids that Snakemake may know it by: the waiting process, and its parent


class Server:
    """Listens for requests until the run that started it ends."""

    def __init__(self, code: str, folder: Path, listener: socket.socket) -> None:
        self.code, self.folder, self.listener = code, folder, listener
        self.environment = _lasting(os.environ)
        self.wanted: dict[str, dict[str, None]] = {}  # step → modules that its jobs import, in their order
        self.fit = True
        self.jobs: list[Job] = []
        self.staying: list[Fork] = []  # that wait for their next job
        self.events = selectors.PollSelector()
        self.events.register(LIFE_LINE, selectors.EVENT_READ)
        self.events.register(listener, selectors.EVENT_READ)

    def serve(self) -> NoReturn:
        """Fork, reap and forward signals until the lifeline is cut."""
        while True:
            for key, _ in self.events.select():
                if key.fileobj is self.listener:
                    self._answer(self.listener.accept()[0])
                elif key.fileobj == LIFE_LINE:
                    self._end()
                elif isinstance(key.data, Fork):
                    self._lose(key.data)
                elif key.data not in self.jobs:
                    continue  # it was finished a moment ago
                elif key.fileobj is key.data.waiting:
                    self._pass_on(key.data)
                elif key.fileobj is key.data.fork.line:
                    self._keep(key.data)
                else:
                    self._reap(key.data)

    def _answer(self, waiting: socket.socket) -> None:
        waiting.settimeout(SLOW)
        try:
            request, files = received(waiting)
        except (OSError, EOFError, TypeError, ValueError):
            waiting.close()
            return
        if self._serves(request) and self._prepared(request["module"], files):
            self._begin(request, files, waiting)
        else:
            with suppress(OSError):
                waiting.sendall(REFUSED + bytes(4))
            waiting.close()
        for file in files:
            os.close(file)

    def _serves(self, request: dict[str, Any]) -> bool:
        """Return whether a fork of this process would run the planned code, in the environment of the waiting
        process.
        """
        return (
            self.fit
            and request["interpreter"] == [os.path.realpath(sys.executable), sys.prefix]
            and request["package"] == str(PACKAGE)
            and _lasting(request["environment"]) == self.environment
            and state() == self.code
        )

    def _prepared(self, module: str, files: list[int]) -> bool:
        """Import the modules of a step's jobs. Printed text goes to the job's log. Returns False if an import
        fails.
        """
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
        flush()
        for file, stream in zip(own, (1, 2), strict=True):
            os.dup2(file, stream)
            os.close(file)
        gc.collect()
        gc.freeze()  # the forks' garbage collector leaves these objects alone, so their pages stay shared
        _keep_finalizers()
        self.fit &= _may_fork()
        return self.fit

    def _begin(self, request: dict[str, Any], files: list[int], waiting: socket.socket) -> None:
        """Start a job: in a fork that stayed, where the step can use its device, or else in a new one."""
        imported, tell = os.pipe()
        os.set_blocking(imported, False)
        client = int.from_bytes(waiting.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 4), sys.byteorder)
        files = [*files, tell]
        fork = self._stayed(request, files) or self._forked(request, files, (waiting, imported))
        os.close(tell)
        job = Job(fork, waiting, imported, request["module"], (client, request["parent"]))
        waiting.setblocking(False)
        self.jobs.append(job)
        for file in (waiting, fork.line, fork.ended):
            self.events.register(file, selectors.EVENT_READ, job)
        write_usage(self.folder, job.observed, fork.pid)

    def _stayed(self, request: dict[str, Any], files: list[int]) -> Fork | None:
        """Return a waiting fork that has taken this job, or None."""
        while request["module"] in ON_DEVICE and self.staying:
            fork = self.staying[-1]
            with suppress(OSError):  # it is gone
                send(fork.line, request, files)
                self.staying.remove(fork)
                self.events.unregister(fork.ended)
                return fork
            self._lose(fork)
        return None

    def _lose(self, fork: Fork) -> None:
        """Remove a waiting fork that has ended."""
        if fork in self.staying:
            self.staying.remove(fork)
            self.events.unregister(fork.ended)
            _remove(fork)

    def _forked(self, request: dict[str, Any], files: list[int], ours: tuple[socket.socket, int]) -> Fork:
        """Fork for this job. ``ours`` are files of this job that the fork does not need."""
        line, theirs = socket.socketpair()
        line.settimeout(SLOW)
        server = os.getpid()
        pid = os.fork()
        if pid == 0:
            die_with(server)
            os.setpgid(0, 0)
            self.events.close()
            forks = [job.fork for job in self.jobs] + self.staying
            sockets = [job.waiting for job in self.jobs] + [fork.line for fork in forks]
            for file in (self.listener, line, ours[0], *sockets):
                file.close()
            for number in (ours[1], *(job.imported for job in self.jobs), *(fork.ended for fork in forks)):
                os.close(number)
            work(request, files, theirs if request["module"] in ON_DEVICE else None)
        theirs.close()
        with suppress(OSError):  # the child has set it already, or is gone
            os.setpgid(pid, pid)
        return Fork(pid, os.pidfd_open(pid), line)

    def _pass_on(self, job: Job) -> None:
        """Forward the signals of the waiting process. If that process has ended, kill the work."""
        try:
            numbers = job.waiting.recv(64)
        except OSError:
            numbers = b""
        if not numbers:
            self.events.unregister(job.waiting)
        for number in numbers or (signal.SIGKILL,):
            with suppress(OSError):
                os.killpg(job.fork.pid, number)

    def _keep(self, job: Job) -> None:
        """End a job whose fork waits for another one, or note that the fork has ended."""
        self.events.unregister(job.fork.line)
        with suppress(OSError, ValueError):
            used = json.loads(job.fork.line.recv(IMPORTED))  # nothing if it ends
            self._finish(job, 0, used)
            self.staying.append(job.fork)
            self.events.register(job.fork.ended, selectors.EVENT_READ, job.fork)

    def _reap(self, job: Job) -> None:
        _, status, used = os.wait4(job.fork.pid, 0)
        with suppress(KeyError):
            self.events.unregister(job.fork.line)
        self._finish(job, status, sums(used))
        _remove(job.fork)

    def _finish(self, job: Job, status: int, used: list[float]) -> None:
        if status == 0:
            # They are there by now. A process that the job left behind may hold the pipe open, and would never write.
            with suppress(BlockingIOError):
                names = os.read(job.imported, IMPORTED).decode().split()
                self.wanted.setdefault(job.module, {}).update(dict.fromkeys(names))
        write_usage(self.folder, job.observed, job.fork.pid, used)
        with suppress(OSError):
            job.waiting.setblocking(True)
            job.waiting.sendall(ENDED + status.to_bytes(4))
        self.jobs.remove(job)
        self.events.unregister(job.fork.ended)
        with suppress(KeyError):
            self.events.unregister(job.waiting)
        job.waiting.close()
        os.close(job.imported)

    def _end(self) -> NoReturn:
        for fork in [job.fork for job in self.jobs] + self.staying:
            with suppress(OSError):
                os.killpg(fork.pid, signal.SIGKILL)
        shutil.rmtree(self.folder, ignore_errors=True)
        os._exit(0)


def _remove(fork: Fork) -> None:
    """Kill a fork, and processes that its jobs left behind."""
    with suppress(OSError):
        os.killpg(fork.pid, signal.SIGKILL)
    with suppress(ChildProcessError):  # it has been waited for
        os.waitpid(fork.pid, 0)
    fork.line.close()
    os.close(fork.ended)


def _lasting(environment: Mapping[str, str]) -> dict[str, str]:
    return {name: value for name, value in environment.items() if name not in PASSING}


def _keep_finalizers() -> None:
    """Let a fork end without the finalizers of objects that are the server's: PyTorch has 20 ms of them."""
    for finalizer in weakref.finalize._registry:  # type: ignore[attr-defined]
        finalizer.atexit = False


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


if __name__ == "__main__":
    gc.disable()
    Server(sys.argv[1], Path(sys.argv[2]), socket.socket(fileno=int(sys.argv[3]))).serve()
