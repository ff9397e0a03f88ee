"""A run without Snakemake: the server, the shells that Snakemake would start, and a step that does what it is told."""

import json
import os
import shutil
import signal
import subprocess
import sys
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import psutil
import pytest

from dp_leakage.jobs import RUN, STATE, VARIABLE
from dp_leakage.training.launcher import ENVIRONMENT

PACKAGE = Path(__file__).parents[2] / "src" / "dp_leakage"
# Announces a run as the Snakefile does, says how, and does what it is told.
WORKFLOW = """
import json, os, sys, time
from dp_leakage.jobs.server import announce
announce(True)
print(json.dumps({name: value for name, value in os.environ.items() if name.startswith("DP_LEAKAGE_")}), flush=True)
exec(sys.argv[1])
"""
PARENTS = "import psutil; print(*(process.pid for process in psutil.Process().parents()))"
# The step `probe` runs the Python that it is given.
PROBE = """
import sys
from dp_leakage.steps import log

if __name__ == "__main__":
    exec(sys.argv[1], {"log": log})
"""


@dataclass
class Run:
    """A process that has announced a run, and the server that its first job has started."""

    process: subprocess.Popen
    environment: dict[str, str]
    cwd: Path
    server: psutil.Process | None = None

    @property
    def package(self) -> Path:
        """The copy of the package that its jobs run."""
        return self.cwd / "src" / "dp_leakage"

    def start(
        self, code: str, step: str = "probe", shell: bool = True, python: str = sys.executable, **options
    ) -> subprocess.Popen:
        """A job at work, standard error in the file ``log``, as Snakemake starts it or without the shell between."""
        command = [python, "-m", f"dp_leakage.steps.{step}", code]
        if shell:
            command = ["bash", "-c", 'set -euo pipefail; "$0" "$@" 2> log', *command]
        given = {"env": self.environment, "cwd": self.cwd, "stdout": subprocess.PIPE, "text": True}
        return subprocess.Popen(command, **(given | options))

    def job(self, code: str, **options) -> tuple[int, str, str]:
        """(exit status, standard output, log) of a job."""
        process = self.start(code, **options)
        out, _ = process.communicate(timeout=120)
        return process.returncode, out, self.log

    @property
    def log(self) -> str:
        """The last job's log."""
        return (self.cwd / "log").read_text() if (self.cwd / "log").exists() else ""

    def serves(self, **options) -> bool:
        """Whether a job is forked from the server."""
        return self.server.pid in self.parents(**options)

    def parents(self, **options) -> list[int]:
        """The process ids of the parents of a job's work, the nearest first."""
        status, out, log = self.job(PARENTS, **options)
        assert status == 0, log
        return [int(pid) for pid in out.split()]

    def works(self) -> list[psutil.Process]:
        """Forks at work."""
        found = []
        for supervisor in self.server.children():
            with suppress(psutil.NoSuchProcess):  # it has just ended
                found += supervisor.children()
        return found


@pytest.fixture
def begin(tmp_path):
    """A function that starts a run, which then does what it is told."""
    cwd = tmp_path / "run"
    shutil.copytree(PACKAGE, cwd / "src" / "dp_leakage", ignore=shutil.ignore_patterns("__pycache__"))
    (cwd / "src" / "dp_leakage" / "steps" / "probe.py").write_text(PROBE)
    started: list[subprocess.Popen] = []

    def begin(code: str = "time.sleep(600)", **changes: str) -> Run:
        environment = os.environ | ENVIRONMENT | {"PYTHONPATH": str(cwd / "src")} | changes
        for name in (
            VARIABLE,
            RUN,
            STATE,
            "PS1",
        ):  # a shell between takes the second away, and one does not always stand there
            environment.pop(name, None)
        process = subprocess.Popen(
            [sys.executable, "-c", WORKFLOW, code],
            cwd=cwd,
            env=environment,
            stdout=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )
        started.append(process)
        run = Run(process, environment | json.loads(process.stdout.readline()), cwd)
        _supervisor, server, *_ = run.parents()
        run.server = psutil.Process(server)
        return run

    yield begin
    for process in started:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()


@pytest.fixture
def run(begin) -> Run:
    """A run that waits."""
    return begin()
