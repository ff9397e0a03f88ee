"""`make audit-training`: a training function of the user's own, called with and without canaries."""

import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

from dp_leakage.audit_training import REFUTED, main

# A "training" that counts its records of label 3 at x = 0, with or without enough noise.
COUNTING = """
    import numpy as np

    def train(x, y, seed):
        noise = np.random.default_rng(seed).normal(0, {deviation})
        blank = (np.abs(x).sum(1) == 0).sum() + noise
        return lambda records: np.full((len(records), 10), 0.0) + blank * np.eye(10)[[{label}] * len(records)]
"""


@pytest.fixture
def module(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    written = []

    def write(text):
        name = f"user_training_{len(list(tmp_path.iterdir()))}_{abs(hash(text))}"
        (tmp_path / f"{name}.py").write_text(textwrap.dedent(text))
        written.append(name)
        return f"{name}:train"

    return write


def audited(path, *more):
    return main(["--train", path, "--epsilon", "1", "--models", "100", "--canary", "blank", "--records", "20", *more])


def blank_label():
    from dp_leakage.audit_training import _data
    from dp_leakage.data.canaries import place

    placed = place(_data("", 20), "blank", 1, False, 0)
    return int(placed.y[placed.held[0]])


def test_a_training_without_noise_is_refuted(module, capsys):
    assert audited(module(COUNTING.format(deviation=0.1, label=blank_label()))) == REFUTED
    assert "This refutes the claim of ε = 1." in capsys.readouterr().out


def test_a_training_with_noise_stands(module, capsys):
    assert audited(module(COUNTING.format(deviation=20, label=blank_label()))) == 0
    assert "The claim of ε = 1 stands" in capsys.readouterr().out


def test_an_audit_that_cannot_reach_the_claim_is_refused_before_anything_is_trained(module, capsys):
    path = module("def train(x, y, seed):\n    raise RuntimeError('trained')\n")
    assert main(["--train", path, "--epsilon", "8", "--models", "20"]) == 2
    said = capsys.readouterr()
    assert "coins would reach it" in said.err
    assert "trained'" not in said.err


BAD = {
    "raises": ("def train(x, y, seed):\n    raise KeyError('k')\n", "line 2: KeyError: 'k'"),
    "no function": ("def train(x, y, seed):\n    return 3\n", "returns int; valid is a function"),
    "wrong shape": ("def train(x, y, seed):\n    return lambda r: r[:, 0]\n", "valid are finite numbers, one row"),
    "exits": ("import sys\ndef train(x, y, seed):\n    sys.exit(0)\n", "line 3: SystemExit: 0"),
    "ends its process": ("import os\ndef train(x, y, seed):\n    os._exit(0)\n", "ended its process (exit status 0)"),
    "ends when imported": ("import os\nos._exit(0)\n", "ended its process (exit status 0)"),
    "is killed": (
        "import os, signal\ndef train(x, y, seed):\n    os.kill(os.getpid(), signal.SIGTERM)\n",
        "was ended by the signal SIGTERM",
    ),
    "interrupts": ("def train(x, y, seed):\n    raise KeyboardInterrupt\n", "KeyboardInterrupt"),
    "reads": ("def train(x, y, seed):\n    return input()\n", "line 2: "),
    "closes files": (
        "import os\ndef train(x, y, seed):\n    os.closerange(0, 256)\n    return lambda r: None\n",
        "the training function",
    ),
    "an array that exits": (
        "class Evil:\n    def __array__(self, *_, **__):\n        exit(0)\n"
        "def train(x, y, seed):\n    return lambda r: Evil()\n",
        "SystemExit",
    ),
}


@pytest.mark.parametrize("case", BAD)
def test_what_is_wrong_with_the_function_is_one_sentence(case, module, capsys):
    text, sentence = BAD[case]
    assert audited(module(text)) == 2
    assert sentence in capsys.readouterr().err.replace("\n", " ")


TAKEN = {
    "forks": "    import os\n    os.fork()\n",
    "closes the output": "    import os, sys\n    sys.stdout.close()\n    os.closerange(1, 2)\n",
    "makes rounding an error": "    np.seterr(all='raise')\n",
    "changes its records": "    x[:], y[:] = 0, 0\n",
}


@pytest.mark.parametrize("case", TAKEN)
def test_what_the_function_does_to_its_process_stays_there(case, module, capsys):
    text = textwrap.dedent(COUNTING.format(deviation=20, label=blank_label()))
    assert audited(module(text)) == 0
    alone = capsys.readouterr().out
    assert audited(module(text.replace("    return", TAKEN[case] + "    return"))) == 0
    assert capsys.readouterr().out == alone


@pytest.mark.parametrize(
    ("text", "verdict", "status"),
    [
        (COUNTING.format(deviation=20, label=0), "stands", 0),
        (COUNTING.format(deviation=0.1, label="BLANK"), "refuted", 3),
        ("import os\ndef train(x, y, seed):\n    os._exit(0)\n", "error", 2),
    ],
)
def test_the_verdict_survives_make(text, verdict, status, module, tmp_path):
    path = module(text.replace("BLANK", str(blank_label())))
    (tmp_path / "verdict.txt").write_text("of yesterday")
    venv = Path(sys.executable).parents[1]
    given = [f"TRAIN={path}", "EPSILON=1", "MODELS=100", "CANARY=blank", "RECORDS=20", "VERDICT=verdict.txt"]
    makefile = Path(__file__).parents[2] / "Makefile"
    command = ["make", "-f", makefile, f"VENV={venv}", "-o", venv / ".installed", "audit-training", *given]
    done = subprocess.run(command, cwd=tmp_path, text=True, capture_output=True, check=False, timeout=120)
    assert (tmp_path / "verdict.txt").read_text() == f"{verdict}\n", done.stderr
    assert done.returncode == (2 if status else 0)
    if status != 2:
        assert done.stdout.splitlines()[-1] == f"verdict: {verdict}"
    else:
        assert done.stderr.startswith("error: ")
    if status:
        assert f"Error {status}" in done.stderr
