"""Power before the run: the planned probability against what happens in planted worlds.

`python tests/report/test_planned_power.py 100` prints both for studies of several sizes.
"""

import sys
from dataclasses import replace

import numpy as np
import pytest
from scipy.special import ndtri

from dp_leakage.metrics.contrast import Contrast, kept
from dp_leakage.metrics.people import RightAnswers
from dp_leakage.metrics.thresholds import measure_thresholds, of_row
from dp_leakage.report.answer import Acceptable
from dp_leakage.report.decision import Conditions
from dp_leakage.report.forecast import WANTED, decides
from dp_leakage.report.planned import LEAKS, LOSES, REACHED, Planned

LIMITS = Acceptable()
OWN, OF_MODEL = 0.5, 0.0025  # shares of the variance of what is right that belong to a record and to a model


def world(planned: Planned, rng: np.random.Generator) -> list[Conditions]:
    """A setting with half of both acceptable numbers, between one that surely leaks and one that surely loses."""
    lost = 1 - LOSES * LIMITS.accuracy_loss
    hard = rng.normal(size=planned.tested)
    bases = [right(REACHED, hard, planned, rng) for _ in range(planned.undefended)]
    own = right(lost * REACHED, hard, planned, rng)
    use = tuple(kept(own, base, 1 - LIMITS.accuracy_loss) for base in bases)
    leak = [row for _ in range(planned.attacks) for row in attacked(planned, rng)]
    sure = Contrast(0.2, 1e-6, 1e-6, 1e-7, planned.repeats, 1000.0)
    return [
        Conditions(use, None, tuple(leak), False, 1.0, True),
        Conditions((sure,), None, (replace(sure, value=0.3),), False, 1.0, True),
        Conditions((replace(sure, value=-0.2),), None, (replace(sure, value=0.0),), False, 1.0, True),
    ]


def right(accuracy: float, hard: np.ndarray, planned: Planned, rng: np.random.Generator) -> RightAnswers:
    shape = planned.repeats, planned.tested
    own = np.sqrt(OF_MODEL) * rng.normal(size=(planned.repeats, 1))
    chance = np.sqrt(1 - OWN - OF_MODEL) * rng.normal(size=shape)
    return RightAnswers.of(np.sqrt(OWN) * hard + own + chance < ndtri(accuracy))


def attacked(planned: Planned, rng: np.random.Generator) -> list[Contrast]:
    shape = planned.repeats, planned.records
    member = rng.random(shape) < 0.5
    shift = 2 * ndtri((1 + LEAKS * LIMITS.advantage) / 2)
    chance = np.sqrt(1 - OWN) * rng.normal(size=shape)
    score = np.sqrt(OWN) * rng.normal(size=planned.records) + chance + shift * member
    return [of_row(row) for row in measure_thresholds(score, member, "attack")]


def share_decided(planned: Planned, worlds: int, seed: int = 0) -> float:
    rng = np.random.default_rng(seed)
    return float(np.mean([decides(world(planned, rng), LIMITS.advantage, "measured", True) for _ in range(worlds)]))


@pytest.mark.parametrize("planned", [Planned(400, 200, 16, 1, 1), Planned(700, 350, 12, 3, 2)])
def test_where_four_in_five_are_planned_three_quarters_decide(planned):
    """Fewer than 44 of 60 worlds that decide with .85 do so once in 100 times."""
    assert 0.8 <= planned.probability(LIMITS) <= 0.92
    assert share_decided(planned, 60) >= 0.75 - 0.02


def test_where_little_is_planned_few_decide():
    planned = Planned(200, 100, 8, 3, 2)
    assert planned.probability(LIMITS) < 0.05
    assert share_decided(planned, 40) <= 0.2


def test_more_of_anything_helps_and_more_attacks_and_models_cost():
    one = Planned(700, 350, 8, 1, 1)
    known = one.probability(LIMITS)
    for more in ({"records": 1400}, {"tested": 700}, {"repeats": 16}):
        assert replace(one, **more).probability(LIMITS) > known
    for more in ({"attacks": 3}, {"undefended": 2}):
        assert replace(one, **more).probability(LIMITS) < known


def test_what_is_said_to_suffice_does_and_what_is_less_does_not():
    one = Planned(700, 350, 4, 1, 1)
    many = one.enough(LIMITS)
    assert replace(one, repeats=many).probability(LIMITS) >= WANTED
    assert all(replace(one, repeats=few).probability(LIMITS) < WANTED for few in range(4, many) if few in (4, 6, 8, 12))
    small = Planned(300, 150, 16, 3, 2)
    assert small.enough(LIMITS) is None
    times = small.times_records(LIMITS)
    grown = [replace(small, records=int(300 * by) + 1, tested=int(150 * by) + 1) for by in (times, times - 0.2)]
    assert grown[0].probability(LIMITS) >= WANTED > grown[1].probability(LIMITS)


if __name__ == "__main__":
    for size in [(700, 350, 16, 1, 1), (1200, 600, 8, 3, 2), (1000, 500, 12, 3, 2), (600, 300, 16, 3, 2)]:
        study = Planned(*size)
        print(size, f"planned {study.probability(LIMITS):.2f}", share_decided(study, int(sys.argv[1])), flush=True)
