"""Power before the run: the planned probability against what happens in planted worlds.

`python tests/report/test_planned_power.py 100` prints both for studies of several sizes.
"""

import sys
from dataclasses import replace

import numpy as np
import pytest
from scipy.special import ndtr, ndtri

from dp_leakage.metrics.contrast import Contrast, kept
from dp_leakage.metrics.people import RightAnswers
from dp_leakage.metrics.thresholds import measure_thresholds, of_row
from dp_leakage.report.answer import Acceptable
from dp_leakage.report.decision import Conditions, look_of
from dp_leakage.report.forecast import WANTED, decides
from dp_leakage.report.planned import LEAKS, LOSES, REACHED, REPEATS, Planned

LIMITS = Acceptable()
OWN, OF_MODEL = 0.5, 0.0025  # shares of the variance of what is right that belong to a record and to a model
Attacked = tuple[np.ndarray, np.ndarray]  # scores and members, (repeats, records)


def world(planned: Planned, rng: np.random.Generator) -> list[list[Conditions]]:
    """At each look: a setting with half of both acceptable numbers, one that surely leaks and one that surely loses."""
    lost = 1 - LOSES * LIMITS.accuracy_loss
    hard = rng.normal(size=planned.tested)
    bases = [right(REACHED, hard, planned, rng) for _ in range(planned.undefended)]
    own = right(lost * REACHED, hard, planned, rng)
    attacks = [attacked(planned, rng) for _ in range(planned.attacks)]
    return [seen(own, bases, attacks, repeats) for repeats in planned.looks]


def seen(own: np.ndarray, bases: list[np.ndarray], attacks: list[Attacked], repeats: int) -> list[Conditions]:
    first = RightAnswers.of(own[:repeats])
    use = tuple(kept(first, RightAnswers.of(base[:repeats]), 1 - LIMITS.accuracy_loss) for base in bases)
    rows = [measure_thresholds(score[:repeats], member[:repeats], "attack") for score, member in attacks]
    leak = tuple(of_row(row) for rows_of in rows for row in rows_of)
    sure = Contrast(0.2, 1e-6, 1e-6, 1e-7, repeats, 1000.0)
    return [
        Conditions(use, None, leak, False, 1.0, True),
        Conditions((sure,), None, (replace(sure, value=0.3),), False, 1.0, True),
        Conditions((replace(sure, value=-0.2),), None, (replace(sure, value=0.0),), False, 1.0, True),
    ]


def right(accuracy: float, hard: np.ndarray, planned: Planned, rng: np.random.Generator) -> np.ndarray:
    repeats = planned.looks[-1]
    own = np.sqrt(OF_MODEL) * rng.normal(size=(repeats, 1))
    chance = np.sqrt(1 - OWN - OF_MODEL) * rng.normal(size=(repeats, planned.tested))
    return np.sqrt(OWN) * hard + own + chance < ndtri(accuracy)


def attacked(planned: Planned, rng: np.random.Generator) -> Attacked:
    shape = planned.looks[-1], planned.records
    member = rng.random(shape) < 0.5
    shift = 2 * ndtri((1 + LEAKS * LIMITS.advantage) / 2)
    chance = np.sqrt(1 - OWN) * rng.normal(size=shape)
    return np.sqrt(OWN) * rng.normal(size=planned.records) + chance + shift * member, member


def shares_decided(planned: Planned, worlds: int, seed: int = 0) -> np.ndarray:
    """Return in how many worlds something is decided by each look, at the levels of the looks, float64 (looks,)."""
    rng, levels = np.random.default_rng(seed), look_of(planned.looks[0], planned.looks).levels
    decided = [
        [decides(one, LIMITS.advantage, "measured", True, level) for one, level in zip(found, levels, strict=True)]
        for found in (world(planned, rng) for _ in range(worlds))
    ]
    return np.logical_or.accumulate(decided, axis=1).mean(axis=0)


@pytest.mark.parametrize("planned", [Planned(400, 200, (16,), 1, 1), Planned(700, 350, (12,), 3, 2)])
def test_where_four_in_five_are_planned_three_quarters_decide(planned):
    """Fewer than 44 of 60 worlds that decide with .85 do so once in 100 times."""
    assert 0.8 <= planned.probabilities(LIMITS)[-1] <= 0.92
    assert shares_decided(planned, 60)[-1] >= 0.75 - 0.02


def test_where_little_is_planned_few_decide():
    planned = Planned(200, 100, (8,), 3, 2)
    assert planned.probabilities(LIMITS)[-1] < 0.05
    assert shares_decided(planned, 40)[-1] <= 0.2


def test_over_three_looks_about_as_many_decide_as_are_planned():
    """Of 40 worlds; by chance fewer than planned by .2 (three standard errors) at one of three looks once in 300."""
    planned = Planned(500, 250, (8, 16, 32), 1, 1)
    found, told = shares_decided(planned, 40), planned.probabilities(LIMITS)
    assert told == sorted(told)
    assert told[0] < 0.5 < 0.8 < told[-1]
    assert all(found >= np.array(told) - 0.2)


def test_a_plan_with_looks_promises_less_at_each_than_a_single_look_there():
    """All of the 5 % at each look, which the study does not spend, would promise more."""
    looks = (8, 16, 32)
    by_look = Planned(500, 250, looks, 1, 1).probabilities(LIMITS)
    alone = [Planned(500, 250, (repeats,), 1, 1).probabilities(LIMITS)[0] for repeats in looks]
    assert all(planned < single - 0.01 for planned, single in zip(by_look[:2], alone[:2], strict=True))
    assert by_look[-1] <= alone[-1]


def test_a_single_look_has_the_probability_of_two_independent_normal_numbers():
    one = Planned(500, 250, (12,), 1, 1)
    numbers = one._use(LIMITS.accuracy_loss, 12), one._room(LIMITS.advantage, 12)
    passes = [ndtr((x.value - x.reach(0.025)) / np.sqrt(x.var_repeats + x.of_records)) for x in numbers]
    assert one.probabilities(LIMITS) == pytest.approx([np.prod(passes)], abs=0.01)


def test_more_of_anything_helps_and_more_attacks_and_models_cost():
    one = Planned(700, 350, (8,), 1, 1)
    (known,) = one.probabilities(LIMITS)
    for more in ({"records": 1400}, {"tested": 700}, {"looks": (16,)}):
        assert replace(one, **more).probabilities(LIMITS)[0] > known
    for more in ({"attacks": 3}, {"undefended": 2}):
        assert replace(one, **more).probabilities(LIMITS)[0] < known


def test_what_is_said_to_suffice_does_and_what_is_less_does_not():
    one = Planned(700, 350, (4, 8), 1, 1)
    looks = one.enough(LIMITS)
    assert looks[1] == 2 * looks[0]
    assert replace(one, looks=looks).probabilities(LIMITS)[-1] >= WANTED
    less = [(few, 2 * few) for few in REPEATS if few < looks[0]]
    assert all(replace(one, looks=few).probabilities(LIMITS)[-1] < WANTED for few in less)
    small = Planned(300, 150, (16,), 3, 2)
    assert small.enough(LIMITS) is None
    times = small.times_records(LIMITS)
    grown = [replace(small, records=int(300 * by) + 1, tested=int(150 * by) + 1) for by in (times, times - 0.2)]
    assert grown[0].probabilities(LIMITS)[-1] >= WANTED > grown[1].probabilities(LIMITS)[-1]


def main(worlds: int) -> None:
    """Prints the planned probabilities and the shares decided, by each look, of studies of several sizes."""
    for *size, looks in [
        (700, 350, (16,)),
        (1000, 500, (12,)),
        (500, 250, (8, 16, 32)),
        (1000, 500, (8, 16, 32)),
        (800, 400, (16, 32)),
    ]:
        for attacks, models in ((1, 1), (3, 2)):
            study = Planned(*size, looks, attacks, models)
            told = " ".join(f"{one:.2f}" for one in study.probabilities(LIMITS))
            print(study, f"planned {told}, decided", shares_decided(study, worlds), flush=True)


if __name__ == "__main__":
    main(int(sys.argv[1]))
