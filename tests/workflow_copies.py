"""Copies of the repository's workflow in folders of their own, in which Snakemake runs.

A module, as ``conftest`` is the name of each folder's own.
"""

import atexit
import os
import re
import shutil
import signal
import subprocess
import sys
from collections import Counter
from dataclasses import dataclass
from hashlib import sha256
from multiprocessing import get_context
from pathlib import Path
from tempfile import NamedTemporaryFile

import yaml

REPO = Path(__file__).parents[1]
SPLIT = Path(__file__).parent / "studies" / "quickstart.yaml"
PROMISED = (".safetensors", ".parquet", ".csv", ".npz", ".pdf", ".png")
PARTS = ("Snakefile", "config.yaml", "workflow", "profiles", "src", "envs")
# The quickstart at smoke scale, smaller still: one model, two accountants, two budgets, no models of the attacker's for
# each cell.
SMALLER = {
    "models": {"softmax_regression": None},
    "epsilon": [1, 100],
    "training": {"epochs": 4, "evaluate_every": 2},
    "defenses": [
        {"defense": "none"},
        {"defense": "gaussian", "accountant": "naive", "sampler": "shuffle"},
        {"defense": "gaussian", "accountant": "rdp", "sampler": "poisson"},
    ],
    "attacks": {"lira_online": None},
    "reference": None,
    "figures": {
        "fig_leakage_lira": None,
        "fig_pareto": {"parts": ["training", "yeom", "shokri"]},
        "table_members_exposed": {"parts": ["yeom"], "settings": {"attack": "yeom"}},
    },
}
# Snakemake's own imports take a second of each of some four hundred runs: processes with them made are forked instead.
FORKS = get_context("forkserver")
FORKS.set_forkserver_preload(["snakemake.cli"])


@dataclass
class Workflow:
    """A folder in which snakemake can run."""

    folder: Path

    def snakemake(self, *arguments: str, check: bool = True, timeout: float = 600) -> str:
        """Runs snakemake on this folder's own copy of the package; its output, both streams."""
        with NamedTemporaryFile() as output:
            run = FORKS.Process(target=_snakemake, args=(self.folder, arguments, output.name, dict(os.environ)))
            run.start()
            try:
                run.join(timeout)
            finally:
                if late := run.is_alive():
                    os.killpg(run.pid, signal.SIGKILL)
            output.seek(0)
            text = output.read().decode()
        if late or (check and run.exitcode):
            raise AssertionError(f"after {timeout} s: {text}" if late else text)
        return text

    def started(self, *arguments: str) -> subprocess.Popen[str]:
        """Snakemake in the background, in a process group of its own."""
        return subprocess.Popen(
            [sys.executable, "-m", "snakemake", *arguments],
            cwd=self.folder,
            env=os.environ | {"PYTHONPATH": str(self.folder / "src")},
            text=True,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )

    def planned(self, *targets: str) -> Counter:
        """Rule → how many of its jobs `snakemake -n` would run."""
        text = self.snakemake("-n", *targets)
        table = re.search(r"^job +count\n[- ]+\n(.*?)^total ", text, re.MULTILINE | re.DOTALL)
        if not table:
            assert "Nothing to be done" in text, text
            return Counter()
        rows = (line.split() for line in table[1].strip().splitlines())
        return Counter({name: int(count) for name, count in rows})

    def run(self, *arguments: str) -> str:
        """Runs the quickstart at smoke scale."""
        return self.snakemake("quickstart", "--cores", "2", *arguments)

    def configure(self, **changes: object) -> None:
        """Sets keys of the quickstart's overrides in config.yaml, and of its scale, which is no larger than it says."""
        path, file = self.folder / "config.yaml", self.folder / "workflow" / "studies" / "quickstart.yaml"
        config, study = yaml.safe_load(path.read_text()), yaml.safe_load(file.read_text())
        overrides = config["overrides"].setdefault("quickstart", {})
        smoke = study.get("scales", {}).get("smoke", {})
        for key, value in changes.items():
            for place in (overrides, smoke) if key in smoke else (overrides,):
                both = isinstance(value, dict) and isinstance(place.get(key), dict)
                place[key] = place[key] | value if both else value
        path.write_text(yaml.safe_dump(config))
        file.write_text(yaml.safe_dump(study))

    def edit(self, file: str, old: str, new: str) -> None:
        """Replaces a piece of a file that must be there."""
        path = self.folder / file
        text = path.read_text()
        assert old in text, f"{old!r} is not in {file}"
        path.write_text(text.replace(old, new, 1))

    def append(self, file: str, text: str) -> None:
        """Adds lines to the end of a file."""
        path = self.folder / file
        path.write_text(path.read_text() + text)

    def hashes(self) -> dict[str, str]:
        """Every file whose bytes are promised → its hash."""
        return {
            str(path.relative_to(self.results)): sha256(path.read_bytes()).hexdigest()
            for path in sorted(self.results.rglob("*"))
            if path.suffix in PROMISED and not path.name.startswith(".")
        }

    @property
    def results(self) -> Path:
        """The study's folder."""
        return self.folder / "results" / "quickstart-smoke"


def _snakemake(folder: Path, arguments: tuple[str, ...], output: str, environment: dict[str, str]) -> None:
    """``python -m snakemake`` in a process of a fork server, as `Workflow.started` starts it."""
    from snakemake.cli import main

    os.setsid()
    os.chdir(folder)
    os.environ.clear()
    os.environ.update(environment | {"PYTHONPATH": str(folder / "src")})
    with open(output, "wb") as file:
        for stream in (1, 2):
            os.dup2(file.fileno(), stream)
    tests = str(REPO / "tests")
    sys.path[:] = [
        str(folder),
        str(folder / "src"),
        *(path for path in sys.path if path and not path.startswith(tests)),
    ]
    sys.argv[:] = ["snakemake", *arguments]
    try:
        main()
    finally:
        atexit._run_exitfuncs()  # which multiprocessing leaves out


def make(folder: Path, target: str, **options: str) -> subprocess.CompletedProcess[str]:
    """A command of the Makefile in another folder, without setting up anything; its two streams are kept apart."""
    venv = Path(sys.executable).parents[1]
    ready = [part for stamp in (".installed", ".runs") for part in ("-o", str(venv / stamp))]
    given = [f"{key}={value}" for key, value in options.items()]
    command = ["make", "-f", str(REPO / "Makefile"), f"VENV={venv}", *ready, target, *given]
    return subprocess.run(command, cwd=folder, text=True, capture_output=True, check=False)


def copied(folder: Path) -> Workflow:
    """The repository's workflow as it is, in another folder."""
    for part in PARTS:
        source = REPO / part
        if source.is_dir():
            shutil.copytree(source, folder / part, ignore=shutil.ignore_patterns("__pycache__", "*.egg-info"))
        else:
            shutil.copy2(source, folder / part)
    return Workflow(folder)


def fresh(folder: Path) -> Workflow:
    """A copy set to the small study, which has run nothing yet.

    Its quickstart has fixed members and shadow models, so that every kind of step is among its jobs.
    """
    workflow = copied(folder)
    shutil.copy2(SPLIT, workflow.folder / "workflow" / "studies" / "quickstart.yaml")
    workflow.edit("config.yaml", "scale: paper", "scale: smoke")
    workflow.configure(**SMALLER)
    return workflow
