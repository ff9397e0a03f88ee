"""An audit of a training by Opacus with a target ε, and what is said if each call searches the noise anew."""

from pathlib import Path

import numpy as np
import pytest

from dp_leakage.audit_training import main

EXAMPLE = "docs.examples.audit_training.opacus_target"
FEW = ["--epsilon", "2", "--models", "2", "--beyond-reach"]


@pytest.fixture
def here(monkeypatch):
    monkeypatch.chdir(Path(__file__).parents[2])
    monkeypatch.syspath_prepend(Path(__file__).parents[2])


def test_a_search_of_the_noise_in_each_call_is_said(here, capsys):
    assert main(["--train", f"{EXAMPLE}:train_slowly", *FEW]) == 0
    said = capsys.readouterr().out
    assert "are the search of the noise for a target ε, which make_private_with_epsilon repeats in each call" in said


def test_one_search_for_all_calls_is_not(here, capsys):
    assert main(["--train", f"{EXAMPLE}:train", *FEW]) == 0
    assert "search of the noise" not in capsys.readouterr().out


def test_both_ways_train_the_same(here):
    from docs.examples.audit_training import opacus_target

    rng = np.random.default_rng(0)
    x, y = rng.random((100, 8)).astype(np.float32), rng.integers(0, 10, 100)
    outputs = [train(x, y, 3)(x) for train in (opacus_target.train, opacus_target.train_slowly)]
    np.testing.assert_array_equal(*outputs)
