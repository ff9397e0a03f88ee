"""Correct scripts hold, with seeds of ten trainings by default and of two hundred behind `slow`."""

import pytest
from watched import watched


@pytest.mark.parametrize("seed", range(10))
def test_correct_scripts_raise_no_alarm(seed, tmp_path):
    """Each of some dozen tests has a false-alarm rate of 1e-6."""
    name = ("image", "ghost", "text", "lora")[seed % 4]
    seen, _ = watched(tmp_path, name, (), ["--seed", 100 + seed])
    assert seen.verdict == "holds", seen.findings


@pytest.mark.slow
def test_correct_scripts_raise_no_alarm_in_two_hundred_trainings(tmp_path):
    verdicts = []
    for seed in range(200):
        name = ("image", "ghost", "text", "lora")[seed % 4]
        seen, _ = watched(tmp_path, name, (), ["--seed", 1000 + seed, "--epochs", 2])
        verdicts.append((name, seed, seen.verdict))
    assert [entry for entry in verdicts if entry[2] != "holds"] == []
