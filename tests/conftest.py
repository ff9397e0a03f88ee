"""A copy of the real workflow and package, with one small study run to its end, for tests that edit and rerun."""

import fcntl
import os
import re
import shutil
import signal
import subprocess
import sys
from collections import Counter
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path

import hypothesis
import pytest
import yaml

# A shell starts what runs in its background with the first two ignored, nohup with the third, and what the tests start
# would inherit that.
signal.signal(signal.SIGINT, signal.default_int_handler)
signal.signal(signal.SIGQUIT, signal.SIG_DFL)
signal.signal(signal.SIGHUP, signal.SIG_DFL)

# The same examples each time, as seeds are fixed elsewhere; and how long one takes says how busy the machine is.
hypothesis.settings.register_profile(
    "repeatable", derandomize=True, deadline=None, suppress_health_check=[hypothesis.HealthCheck.too_slow]
)
hypothesis.settings.load_profile("repeatable")

REPO = Path(__file__).parents[1]
SHARED = REPO.parent / "shared" / "data"
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


@dataclass
class Workflow:
    """A folder in which snakemake can run."""

    folder: Path

    def snakemake(self, *arguments: str, check: bool = True, timeout: float = 600) -> str:
        """Runs snakemake on this folder's own copy of the package; its output, both streams."""
        process = self.started(*arguments)
        try:
            text, _ = process.communicate(timeout=timeout)
        finally:
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)
        if check and process.returncode:
            raise AssertionError(text)
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


@pytest.fixture(scope="session")
def finished(tmp_path_factory) -> Workflow:
    """The small study, run to its end once for all processes of the tests. Do not edit: ask for `workflow`, a copy."""
    shared = tmp_path_factory.getbasetemp()
    if "PYTEST_XDIST_WORKER" in os.environ:
        shared = shared.parent
    folder = shared / "finished"
    with (shared / "finished.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not (shared / "finished.done").exists():
            folder.mkdir()
            fresh(folder).run()
            (shared / "finished.done").touch()
    return Workflow(folder)


@pytest.fixture(scope="session")
def quickstart(tmp_path_factory) -> Workflow:
    """The quickstart as its file says, run to its end once. Do not edit."""
    workflow = copied(tmp_path_factory.mktemp("quickstart"))
    workflow.snakemake("quickstart", "--cores", "2", timeout=3000)
    return workflow


@pytest.fixture(scope="session")
def another(tmp_path_factory):
    """A function: name → the repository's workflow as it is, in a folder of its own for several tests."""
    return lambda name: copied(tmp_path_factory.mktemp(name))


@pytest.fixture
def workflow(finished, tmp_path) -> Workflow:
    """A copy of the finished study, times and Snakemake's records included."""
    folder = tmp_path / "copy"
    shutil.copytree(finished.folder, folder, copy_function=shutil.copy2)
    return Workflow(folder)


@pytest.fixture
def unrun(tmp_path) -> Workflow:
    """A copy of the repository's workflow that has run nothing yet."""
    return fresh(tmp_path)


@pytest.fixture
def whole(tmp_path) -> Workflow:
    """The repository's workflow as it is, in a folder of its own."""
    return copied(tmp_path)


# ------------------------------------------------------------------ real data sets beside the repository
@pytest.fixture(scope="session")
def unpacked(tmp_path_factory):
    """A function that writes a real data set of ../shared/data in its official layout and returns the data_dir."""

    def unpack(name: str) -> Path:
        if not (SHARED / "unpack.py").exists():
            pytest.skip(f"no real data sets at {SHARED}")
        data_dir = tmp_path_factory.mktemp(name)
        sys.path.insert(0, str(SHARED))
        try:
            import unpack

            unpack.main(data_dir, [name])
        finally:
            sys.path.remove(str(SHARED))
        return data_dir

    return unpack


@pytest.fixture
def shared():
    if not SHARED.exists():
        pytest.skip(f"no real data sets at {SHARED}")
    return SHARED
