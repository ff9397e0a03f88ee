"""Whatever is set around a command, it does what it is asked, or says in one sentence what it cannot do."""

import os
import subprocess
import sys

import pytest

from dp_leakage.commands import COMMANDS

pytestmark = pytest.mark.fuzz
ASKED = ("sigma", "--epsilon=1", "--epochs=10", "--batch-size=10", "--dataset-size=100", "--sampler=shuffle")
ASCII = {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}
SET = {
    "no docstrings": {"PYTHONOPTIMIZE": "2"},
    "an ASCII locale": ASCII,
    "an ASCII terminal": {"PYTHONIOENCODING": "ascii"},
    "threads abc": {"OMP_NUM_THREADS": "abc", "MKL_NUM_THREADS": "-1"},
    "a terminal of no width": {"COLUMNS": "0"},
    "a terminal of width abc": {"COLUMNS": "abc", "TERM": ""},
    "no home": {"HOME": None},
    "a home that is none": {"HOME": "/no/such/home"},
    "no temporary folder": {"TMPDIR": "/no/such/folder"},
}


def ran(around: dict[str, str | None], *command: str, **options: object) -> subprocess.CompletedProcess[bytes]:
    env = {key: value for key, value in (os.environ | around).items() if value is not None}
    return subprocess.run([sys.executable, *command], env=env, capture_output=True, check=False, **options)


@pytest.mark.parametrize("around", SET)
@pytest.mark.parametrize("asked", [ASKED, ("--help",)], ids=["asked", "help"])
def test_a_command_answers_whatever_is_set_around_it(around, asked):
    done = ran(SET[around], "-m", "dp_leakage", *asked)
    assert done.returncode == 0, done.stderr.decode()
    assert b"Traceback" not in done.stderr
    assert b"sigma" in done.stdout


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_has_help_without_docstrings_on_an_ascii_terminal(command):
    done = ran(SET["no docstrings"] | ASCII, "-m", "dp_leakage", command, "--help")
    assert done.returncode == 0, done.stderr.decode()
    assert b"usage: " in done.stdout


def test_figures_are_drawn_whatever_backend_matplotlib_is_told_to_use():
    draw = "import os; from dp_leakage.training.launcher import ENVIRONMENT; os.environ.update(ENVIRONMENT); "
    done = ran(
        {"MPLBACKEND": "nonsense"}, "-c", draw + "from matplotlib.figure import Figure; Figure().savefig(os.devnull)"
    )
    assert done.returncode == 0, done.stderr.decode()


@pytest.mark.parametrize("name", ["no/such/folder", "\x7f", "a" * 5000])
def test_plugins_of_a_job_that_are_not_there_are_named(name):
    done = ran({"DP_LEAKAGE_PLUGINS": name}, "-m", "dp_leakage.steps.verify", "--settings={}")
    assert done.returncode == 1, done.stderr.decode()
    assert done.stderr.decode().count("error: ") == 1
    assert b"Traceback" not in done.stderr
