"""The wheel alone, without the repository: what it holds, and that its commands run."""

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
SOURCE = REPO / "src"
PACKAGES = ("dp_leakage", "snakemake_logger_plugin_dp_leakage")  # Snakemake finds the second by its name
EPSILON = ["epsilon", "--noise-multiplier", "1.1", "--epochs", "60", "--batch-size", "256", "--dataset-size", "60000"]


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("wheel")
    command = [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--wheel-dir", str(folder), str(REPO)]
    subprocess.run(command, check=True, capture_output=True, timeout=300)
    (built,) = folder.glob("*.whl")
    return built


@pytest.mark.slow
def test_it_holds_every_file_of_the_package(wheel: Path) -> None:
    assert dp_leakage.__version__ in wheel.name
    with zipfile.ZipFile(wheel) as archive:
        inside = {name for name in archive.namelist() if ".dist-info/" not in name}
    files = (path for package in PACKAGES for path in (SOURCE / package).rglob("*") if path.is_file())
    own = {path.relative_to(SOURCE).as_posix() for path in files}
    assert inside == {name for name in own if "__pycache__" not in name}


@pytest.mark.slow
def test_it_accounts_without_the_repository(wheel: Path, tmp_path: Path) -> None:
    venv.create(tmp_path / "env", with_pip=True)
    alone = {key: value for key, value in os.environ.items() if key != "PYTHONPATH"}

    def said(*arguments: str) -> str:
        command = [str(tmp_path / "env" / "bin" / "python"), *arguments]
        done = subprocess.run(command, cwd=tmp_path, env=alone, text=True, capture_output=True, timeout=300)
        assert done.returncode == 0, done.stderr
        return done.stdout

    said("-m", "pip", "install", "--quiet", "--no-deps", "--no-index", str(wheel))
    # What the wheel asks for comes from this environment, behind the new one's own packages.
    own = said("-c", "import sysconfig; print(sysconfig.get_path('purelib'))").strip()
    Path(own, "borrowed.pth").write_text(sysconfig.get_path("purelib"), encoding="utf-8")
    assert said("-c", "import dp_leakage; print(dp_leakage.__file__)").startswith(str(tmp_path))
    here = subprocess.run(
        [sys.executable, "-m", "dp_leakage", *EPSILON], cwd=REPO, text=True, capture_output=True, check=True
    )
    assert said("-m", "dp_leakage", *EPSILON) == here.stdout
    assert "rdp" in here.stdout
