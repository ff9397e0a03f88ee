"""The example of a training in a process of its own, audited as the documentation says."""

from pathlib import Path

import pytest

from dp_leakage.audit_training import REFUTED, main

REPOSITORY = Path(__file__).parents[2]
TRAIN = "docs.examples.audit_training.outside:train"
ASKED = ["--train", TRAIN, "--epsilon", "2", "--claim", "gaussian", "--canary", "blank", "--models", "20"]


@pytest.mark.parametrize(("noise", "status"), [("6.31", 0), ("0.1", REFUTED)])
def test_a_training_in_another_process_is_audited(noise, status, monkeypatch, capsys):
    monkeypatch.chdir(REPOSITORY)
    monkeypatch.setenv("NOISE", noise)
    assert main(ASKED) == status
    assert "It trains 20 models (--models) with the canary 'blank' (--canary)" in capsys.readouterr().out


def test_a_process_that_fails_is_one_sentence(monkeypatch, capsys):
    monkeypatch.chdir(REPOSITORY)
    monkeypatch.setenv("NOISE", "loud")
    assert main(ASKED) == 2
    assert "CalledProcessError" in capsys.readouterr().err
