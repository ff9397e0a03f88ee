"""A command in a folder that is no longer there, or with hardly any memory, says so in one sentence."""

import os
import resource
import subprocess
import sys
from pathlib import Path

import pytest

REPO = Path(__file__).parents[2]
COMMANDS = {
    "console": ["-c", "import sys; from dp_leakage.commands import main; sys.exit(main(['list']))"],
    "module": ["-m", "dp_leakage.privacy", "--help"],
    "release": ["-m", "dp_leakage.release", "verify", "released"],
}


def said(command: list[str], **how: object) -> str:
    """The complaint of a command that fails."""
    around = os.environ | {"PYTHONPATH": str(REPO / "src")}
    done = subprocess.run(
        [sys.executable, *command], env=around, capture_output=True, text=True, timeout=60, check=False, **how
    )
    assert done.returncode == 1, done.stderr
    assert "Traceback" not in done.stderr
    (text,) = [line for line in done.stderr.splitlines() if line.startswith("error: ")]
    return text


@pytest.mark.parametrize("command", COMMANDS)
def test_a_deleted_working_folder_is_told_in_one_sentence(tmp_path, command):
    (tmp_path / "gone").mkdir()

    def leave() -> None:
        os.chdir(tmp_path / "gone")
        (tmp_path / "gone").rmdir()

    assert said(COMMANDS[command], preexec_fn=leave).startswith("error: the current folder was deleted; ")


@pytest.mark.parametrize("command", [*COMMANDS, "snakemake"])
def test_too_little_memory_is_told_in_one_sentence(command):
    def limit() -> None:
        resource.setrlimit(resource.RLIMIT_AS, (600_000 * 1024, 600_000 * 1024))  # Snakemake itself starts in less

    words = COMMANDS.get(command, ["-m", "snakemake", "-n", "--logger", "dp-leakage", "--quiet", "all"])
    text = said(words, preexec_fn=limit, cwd=REPO)
    assert text.startswith("error: the address space of this process is limited to 586 MiB; it must be 3,072 MiB")


def test_a_folder_that_takes_no_byte_is_named_before_anything_runs(tmp_path):
    """A full disk under .snakemake, or a file where the folder should be, was a traceback of Snakemake's."""
    (tmp_path / "logs").write_text("a file")
    code = (
        "import resource, sys\n"
        "from dp_leakage.common.errors import UserError\n"
        "from dp_leakage.common.surroundings import check_writable\n"
        "if sys.argv[1] == 'full': resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))\n"
        "try: check_writable(sys.argv[2:])\n"
        "except UserError as error: sys.exit(f'error: {error}')\n"
    )
    for how, folder, why in (("full", ".snakemake", "File too large"), ("", "logs", "")):
        assert said(["-c", code, how, folder], cwd=tmp_path).startswith(f"error: {folder} cannot be written: {why}")
    assert list((tmp_path / ".snakemake").iterdir()) == []


@pytest.mark.parametrize("place", ["", "beside"])
@pytest.mark.parametrize("command", ["console", "snakemake"])
def test_a_file_that_hides_a_library_is_named(tmp_path, monkeypatch, command, place):
    """A job imported the user's matplotlib.py, and its figure ended in a traceback."""
    (tmp_path / "beside").mkdir()
    (tmp_path / place / "matplotlib.py").touch()
    monkeypatch.setitem(os.environ, "PYTHONPATH", f"{REPO / 'src'}{os.pathsep}beside")
    words = COMMANDS.get(command, ["-m", "snakemake", "-n", "--snakefile", str(REPO / "Snakefile"), "--quiet", "all"])
    done = subprocess.run(
        [sys.executable, *words], cwd=tmp_path, capture_output=True, text=True, timeout=120, check=False
    )
    assert done.returncode == 1, done.stderr
    sentence = f"error: {Path(place) / 'matplotlib.py'} hides the library matplotlib; rename it"
    assert sum(line.startswith(sentence) for line in done.stderr.splitlines()) == 1, done.stderr
    assert "Traceback" not in done.stderr
