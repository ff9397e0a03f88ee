"""Runs of Snakemake as forks of a process that has its imports: hundreds of them cost their planning and their jobs.

A run is a process in a session of its own, as ``snakemake`` typed into a terminal is, and can be killed. So is the
server that its jobs are forked from, which is a fork too, and is there before the first job would start it.
"""

import atexit
import logging
import multiprocessing
import os
import resource
import signal
import socket
import sys
import tempfile
import weakref
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from dp_leakage.jobs import VARIABLE

STEPS = (
    "attack", "attack_models", "figure", "fit_attack", "judge", "measure", "measure_attack", "measure_training",
    "prepare", "project", "query", "report",
)  # fmt: skip
LOADED = [  # what `snakemake`, the Snakefile and the steps import
    *("snakemake.cli", "snakemake.workflow", "snakemake.dag", "snakemake.scheduling.greedy", "snakemake.report"),
    *("dp_leakage.study.file", "dp_leakage.jobs.remote"),
    *("dp_leakage.jobs.server", *(f"dp_leakage.steps.{step}" for step in (*STEPS, "train", "verify"))),
    *("matplotlib.backends.backend_agg", "matplotlib.backends.backend_pdf", "sklearn.decomposition"),
    "preloaded",
]


@dataclass
class Run:
    """One run of Snakemake, which goes on until it ends or is killed."""

    process: Any
    output: Path

    def ended(self, timeout: float) -> tuple[int, str]:
        """Its exit status, negative after a signal, and what it printed. Raises TimeoutError."""
        self.process.join(timeout)
        if self.process.exitcode is None:
            raise TimeoutError(self.output.read_text())
        return self.process.exitcode, self.output.read_text()

    def kill(self) -> None:
        """Kills it, and all that it started and that stayed in its session."""
        with suppress(ProcessLookupError):  # it has no session of its own yet, or has ended
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.kill()
        self.process.join()


class Runner:
    """Starts Snakemake in a folder; it and its jobs use the folder's own copy of the package.

    That must stand first in ``PYTHONPATH`` when the first run starts, and this file's folder too.

    Args:
        folder: where the workflow is.
        seconds: of processor time, after which a run is killed (SIGXCPU); without its jobs.
        temporary: the folder for temporary files of its runs, in place of the system's.
    """

    def __init__(self, folder: Path, seconds: int = resource.RLIM_INFINITY, temporary: Path | None = None) -> None:
        self.folder, self.started, self.seconds, self.temporary = folder, 0, seconds, temporary
        self.context = multiprocessing.get_context("forkserver")
        self.context.set_forkserver_preload(LOADED)

    def start(self, *arguments: str) -> Run:
        """A run with these arguments, in the background."""
        self.started += 1
        output = self.folder.parent / f"run-{self.started}.txt"
        output.touch()
        given = (self.folder, arguments, output, self.seconds, self.temporary)
        process = self.context.Process(target=_snakemake, args=given)
        process.start()
        return Run(process, output)


def _snakemake(folder: Path, arguments: tuple[str, ...], output: Path, seconds: int, temporary: Path | None) -> None:
    os.setsid()
    if temporary:
        tempfile.tempdir = os.environ["TMPDIR"] = str(temporary)
    resource.setrlimit(resource.RLIMIT_CPU, (seconds, resource.getrlimit(resource.RLIMIT_CPU)[1]))
    with output.open("wb", buffering=0) as file:
        for stream in (1, 2):
            os.dup2(file.fileno(), stream)
    os.chdir(folder)
    os.environ["PYTHONPATH"] = str(folder / "src")
    sys.argv = ["snakemake", *arguments]
    from snakemake.cli import main

    from dp_leakage.jobs import server

    assert Path(server.__file__).is_relative_to(folder)
    server.announce = _with_server(server.announce)
    try:
        main(list(arguments))
    except KeyboardInterrupt:  # as an interpreter would; `multiprocessing` prints a traceback and asks no hook
        sys.excepthook(*sys.exc_info())
        sys.exit(1)
    finally:
        atexit._run_exitfuncs()  # which a process of `multiprocessing` leaves out


def _with_server(announce: Callable[[bool], None]) -> Callable[[bool], None]:
    """The function that announces a run, and starts the server at once in a fork, not in a new interpreter."""

    def announced(serving: bool) -> None:
        announce(serving)
        with socket.socket(socket.AF_UNIX) as listener:
            listener.bind(f"{os.environ[VARIABLE]}/socket")
            listener.listen(1024)
            if os.fork() == 0:
                os.setsid()
                weakref.finalize._registry.clear()  # or a job that ends would delete the run's temporary folder
                logging._handlerList.clear()  # or it would close the run's logger, whose lock may be held for ever
                for stream in (0, 1):
                    os.dup2(os.open(os.devnull, os.O_RDWR), stream)
                _server_of_the_first()(Path(os.environ[VARIABLE]), listener).serve()

    return announced


def _server_of_the_first() -> Any:
    """A server in the environment of the first job that asks, as one that this job has started."""
    from dp_leakage.jobs import server

    class Server(server.Server):
        def _serves(self, request: dict[str, Any]) -> bool:
            if not self.wanted and self.environment != server._lasting(request["environment"]):
                os.environ.update(request["environment"])
                self.environment = server._lasting(request["environment"])
            return bool(super()._serves(request))

    return Server
