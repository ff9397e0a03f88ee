"""`make audit-training`: a training function of the user's own, called with and without canaries."""

import textwrap

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
}


@pytest.mark.parametrize("case", BAD)
def test_what_is_wrong_with_the_function_is_one_sentence(case, module, capsys):
    text, sentence = BAD[case]
    assert audited(module(text)) == 2
    assert sentence in capsys.readouterr().err.replace("\n", " ")
