"""Copies of the repository's workflow in folders of their own, in which Snakemake runs.

A module, as ``conftest`` is the name of each folder's own.
"""

import json
import os
import re
import select
import shutil
import signal
import subprocess
import sys
from collections import Counter
from dataclasses import dataclass
from functools import cache
from hashlib import sha256
from pathlib import Path
from tempfile import NamedTemporaryFile
from typing import Any

import yaml

REPO = Path(__file__).parents[1]
SPLIT = Path(__file__).parent / "studies" / "quickstart.yaml"
PROMISED = (".safetensors", ".parquet", ".csv", ".npz", ".pdf", ".png")
# Where a run keeps what its parser found in the package's files, by digests of their bytes; and what that was in the
# runs so far, which the first run of each new copy would take seconds to find again.
CODE = Path(".snakemake", "dp_leakage_code.json")
KNOWN: dict[str, Any] = {"found": {}, "recipes": {}}
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
# The figures of a study that `dp-leakage new` wrote, reduced to one and to what the loss attack tells.
ONE_FIGURE = {
    "fig_pareto": {"parts": ["training", "yeom"]},
    "fig_leakage_rmia": None,
    "fig_leakage_lira": None,
    "fig_vulnerability": None,
    "fig_spent_epsilon": None,
    "table_members_exposed": None,
}


@dataclass
class Workflow:
    """A folder in which snakemake can run."""

    folder: Path
    study: str = "quickstart-smoke"  # the folder of results

    def snakemake(self, *arguments: str, check: bool = True, timeout: float = 600) -> str:
        """Runs snakemake on this folder's own copy of the package; its output, both streams."""
        with NamedTemporaryFile() as output:
            status = _forked(
                timeout, folder=self.folder, arguments=arguments, environment=self.environment, output=output.name
            )
            text = output.read().decode()
        if not status and (self.folder / CODE).exists():
            _remember(json.loads((self.folder / CODE).read_text()))
        if check and status:
            raise AssertionError(text)
        return text

    def started(self, *arguments: str) -> subprocess.Popen[str]:
        """Snakemake in the background, in a process group of its own."""
        return subprocess.Popen(
            [sys.executable, "-m", "snakemake", *arguments],
            cwd=self.folder,
            env=self.environment,
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
    def environment(self) -> dict[str, str]:
        """Of a process that uses this folder's own copy of the package."""
        return os.environ | {"PYTHONPATH": str(self.folder / "src")}

    @property
    def results(self) -> Path:
        """The study's folder."""
        return self.folder / "results" / self.study


def _remember(kept: dict[str, Any]) -> None:
    """Adds to what is known of files, and nothing that a run knows of a study or a folder."""
    if kept["made_by"] == KNOWN.setdefault("made_by", kept["made_by"]):
        KNOWN["found"] |= {key: found for key, found in kept["found"].items() if " " not in key}


@cache
def _forks() -> subprocess.Popen[bytes]:
    """What forks the runs; it ends with the tests."""
    script = Path(__file__).with_name("snakemake_forks.py")
    return subprocess.Popen([sys.executable, script], bufsize=0, stdin=subprocess.PIPE, stdout=subprocess.PIPE)


def _forked(timeout: float, **run: object) -> int:
    """The exit status of a run of ``snakemake_forks.py``, which is killed after that many seconds."""
    forks = _forks()
    forks.stdin.write(json.dumps(run, default=str).encode() + b"\n")
    process, ended = int(forks.stdout.readline()), []
    try:
        ended, _, _ = select.select([forks.stdout], [], [], timeout)
    finally:
        if not ended:
            os.killpg(process, signal.SIGKILL)
    status = int(forks.stdout.readline())
    if not ended:
        raise TimeoutError(f"{run['arguments']} went on after {timeout} s")
    return status


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
            shutil.copytree(
                source, folder / part, symlinks=True, ignore=shutil.ignore_patterns("__pycache__", "*.egg-info")
            )
        else:
            shutil.copy2(source, folder / part)
    if KNOWN["found"]:
        (folder / CODE).parent.mkdir()
        (folder / CODE).write_text(json.dumps(KNOWN))
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
