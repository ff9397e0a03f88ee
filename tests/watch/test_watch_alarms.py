"""Correct scripts hold, with seeds of ten trainings by default and of two hundred behind `slow`."""

from collections import Counter
from functools import cache

import pytest
from modes import MODES
from watched import watched

from dp_leakage.privacy.accounting import library


@pytest.mark.parametrize("seed", range(10))
def test_correct_scripts_raise_no_alarm(seed, tmp_path):
    """Each of some dozen tests has a false-alarm rate of 1e-6."""
    name = ("image", "ghost", "text", "lora")[seed % 4]
    seen, _ = watched(tmp_path, name, (), ["--seed", 100 + seed])
    assert seen.verdict == "holds", seen.findings


@pytest.mark.slow
@pytest.mark.timeout(7200)
def test_correct_scripts_in_every_mode_raise_no_alarm_in_two_hundred_trainings(tmp_path, monkeypatch):
    """Ten seeds for each of twenty modes. A failing script counts too."""
    for name in ("pld_epsilon", "loss_profile"):  # the same for each seed
        monkeypatch.setattr(library, name, cache(getattr(library, name)))
    alarms, trainings = [], Counter()
    for seed in range(200):
        name = list(MODES)[seed % len(MODES)]
        script, edits, arguments, _ = MODES[name]
        arguments = [*arguments, "--save", tmp_path / "weights.pt", "--seed", 1000 + seed, "--epochs", 2]
        seen, status = watched(tmp_path, script, edits, arguments)
        trainings[name] += len(seen.trainings)
        print(seed, name, status, seen.verdict, [t.noise.ratio for t in seen.trainings], flush=True)
        if status or seen.verdict != "holds":
            alarms.append((name, seed, status, seen.findings))
    assert alarms == []
    assert len(trainings) == len(MODES)
    assert min(trainings.values()) >= 10
