"""The wheel alone: what it holds, that it runs the quickstart, and that its settings are those of a clone.

Its environment lies outside the repository. What the package needs is borrowed from the environment of the tests.
"""

import json
import os
import subprocess
import sys
import sysconfig
import venv
import zipfile
from pathlib import Path

import pytest

import dp_leakage

REPO = Path(__file__).parents[1]
PACKAGES = ("dp_leakage", "snakemake_logger_plugin_dp_leakage")  # Snakemake finds the second by its name
EPSILON = ["epsilon", "--noise-multiplier", "1.1", "--epochs", "60", "--batch-size", "256", "--dataset-size", "60000"]
ALONE = {key: value for key, value in os.environ.items() if key != "PYTHONPATH"}
SMALL = [
    *("--scale", "smoke", "--set", "models.softmax_regression=null", "--set", "epsilon=[1, 100]"),
    *("--set", "training.epochs=4", "--set", "training.evaluate_every=2", "--cores", "2"),
]
# Prints what the settings of all studies are: each step of each cell and figure.
SETTINGS = """
import json, sys
from pathlib import Path
from dp_leakage.common.places import REPOSITORY, STUDIES
from dp_leakage.common.yaml_files import read_yaml
from dp_leakage.study.file import load_studies, study_files
from dp_leakage.study.plan import figure_settings
from dp_leakage.study.steps import prepare_settings, train_settings
found = {}
for study in load_studies(read_yaml(REPOSITORY / "config.yaml"), study_files(STUDIES)).values():
    for dataset in study.spec["datasets"]:
        found[f"{study.name} {dataset}"] = prepare_settings(study, dataset)
    for cell in study.cells.values():
        found[f"{study.name} {cell.key}"] = train_settings(study, cell)
    for figure in study.spec["figures"]:
        found[f"{study.name} {figure}"] = figure_settings(study, figure)
print(json.dumps(found, sort_keys=True, default=str))
"""


class Installed:
    """An environment of its own that the wheel is installed in."""

    def __init__(self, folder: Path, wheel: Path) -> None:
        self.bin = folder / "bin"
        venv.create(folder, with_pip=False)
        own = Path(self.run("python", "-c", "import sysconfig; print(sysconfig.get_path('purelib'))").strip())
        # What the wheel asks for comes from this environment, behind the new one's own packages.
        (own / "borrowed.pth").write_text(sysconfig.get_path("purelib"), encoding="utf-8")
        self.run(
            "python", "-m", "pip", "install", "--quiet", "--no-deps", "--no-index", "--ignore-installed", str(wheel)
        )
        script = f"#!{self.bin / 'python'}\nfrom snakemake.cli import main\nmain()\n"
        (self.bin / "snakemake").write_text(script, encoding="utf-8")
        (self.bin / "snakemake").chmod(0o755)

    def run(self, program: str, *words: str, folder: Path | None = None) -> str:
        """What a program of this environment prints."""
        command, place = [str(self.bin / program), *words], folder or self.bin
        path = f"{self.bin}{os.pathsep}{os.environ['PATH']}"
        done = subprocess.run(
            command, cwd=place, env=ALONE | {"PATH": path}, text=True, capture_output=True, timeout=900
        )
        assert done.returncode == 0, f"{done.stdout}\n{done.stderr}"
        return done.stdout


def built(source: Path, folder: Path) -> Path:
    """The wheel of a source tree."""
    command = [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--wheel-dir", str(folder), str(source)]
    subprocess.run(command, check=True, capture_output=True, timeout=300)
    (wheel,) = folder.glob("*.whl")
    return wheel


@pytest.fixture(scope="module")
def source(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What git holds of the working tree, without what a build or a run left beside it."""
    folder = tmp_path_factory.mktemp("source")
    files = subprocess.run(["git", "ls-files", "-z"], cwd=REPO, check=True, capture_output=True).stdout
    there = b"\0".join(name for name in files.split(b"\0") if name and os.path.lexists(REPO / os.fsdecode(name)))
    tar = ["tar", "--create", "--null", "--no-recursion", "--files-from=-"]
    packed = subprocess.run(tar, cwd=REPO, input=there, check=True, capture_output=True).stdout
    subprocess.run(["tar", "--extract"], cwd=folder, input=packed, check=True)
    return folder


@pytest.fixture(scope="module")
def wheel(source: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return built(source, tmp_path_factory.mktemp("wheel"))


@pytest.fixture(scope="module")
def installed(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Installed:
    return Installed(tmp_path_factory.mktemp("env"), wheel)


@pytest.mark.slow
def test_it_holds_every_file_of_the_package(wheel: Path, source: Path) -> None:
    assert dp_leakage.__version__ in wheel.name
    with zipfile.ZipFile(wheel) as archive:
        inside = {name for name in archive.namelist() if ".dist-info/" not in name}
    own = set()
    for package in PACKAGES:
        for folder, _, names in os.walk(source / "src" / package, followlinks=True):  # `repository` holds links
            own |= {Path(folder, name).relative_to(source / "src").as_posix() for name in names}
    assert inside == {name for name in own if "__pycache__" not in name}


@pytest.mark.slow
def test_it_accounts_without_the_repository(installed: Installed, tmp_path: Path) -> None:
    place = installed.run("python", "-c", "import dp_leakage; print(dp_leakage.__file__)")
    assert place.startswith(str(installed.bin.parent))
    command = [sys.executable, "-m", "dp_leakage", *EPSILON]
    here = subprocess.run(command, cwd=REPO, text=True, capture_output=True, check=True)
    assert installed.run("dp-leakage", *EPSILON, folder=tmp_path) == here.stdout
    assert "pld" in here.stdout


@pytest.mark.slow
def test_the_demo_in_an_empty_folder_draws_the_figures_of_a_clone(installed, another, tmp_path) -> None:
    (tmp_path / "empty").mkdir()
    installed.run("dp-leakage", "demo", *SMALL, folder=tmp_path / "empty")
    results = tmp_path / "empty" / "results" / "quickstart-smoke"
    assert (results / "report.html").exists()
    made = {path: path.stat().st_mtime_ns for path in results.rglob("*") if path.is_file()}
    installed.run("dp-leakage", "demo", *SMALL, folder=tmp_path / "empty")
    assert {path: path.stat().st_mtime_ns for path in results.rglob("*") if path.is_file()} == made
    clone = another("clone")
    overrides = {"models": {"softmax_regression": None}, "epsilon": [1, 100]}
    overrides |= {"training": {"epochs": 4, "evaluate_every": 2}}
    given = ["scale=smoke", f"overrides={json.dumps({'quickstart': overrides})}"]
    clone.snakemake("quickstart", "--cores", "2", "--config", *given)
    theirs = {path.name: path.read_bytes() for path in (clone.results / "figures").glob("*.csv")}
    assert {path.name: path.read_bytes() for path in (results / "figures").glob("*.csv")} == theirs
    assert len(theirs) > 5


@pytest.mark.slow
def test_settings_depend_on_no_place_no_version_and_no_date(installed, wheel, source, tmp_path) -> None:
    """A results folder is current for a clone, a wheel, a second environment and the next version alike."""
    environment = os.environ | {"PYTHONPATH": str(REPO / "src")}
    command = [sys.executable, "-c", SETTINGS]
    done = subprocess.run(command, cwd=tmp_path, env=environment, text=True, capture_output=True, timeout=600)
    assert done.returncode == 0, done.stderr
    clone = json.loads(done.stdout)
    assert len(clone) > 300
    for place in (REPO, installed.bin.parent, tmp_path, Path(sysconfig.get_path("purelib"))):
        assert str(place) not in done.stdout
    assert json.loads(installed.run("python", "-c", SETTINGS, folder=tmp_path)) == clone
    module = source / "src" / "dp_leakage" / "__init__.py"
    text = module.read_text(encoding="utf-8")
    module.write_text(
        text.replace(f'__version__ = "{dp_leakage.__version__}"', '__version__ = "99.0"'), encoding="utf-8"
    )
    (tmp_path / "next").mkdir()
    second = Installed(tmp_path / "another place" / "env", built(source, tmp_path / "next"))
    for path in (tmp_path / "another place" / "env").rglob("dp_leakage/**/*.py"):
        os.utime(path, (1e9, 1e9))
    assert second.run("dp-leakage", "--version", folder=tmp_path) == "dp-leakage 99.0\n"
    assert json.loads(second.run("python", "-c", SETTINGS, folder=tmp_path)) == clone
