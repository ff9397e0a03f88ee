"""Forecast for an open answer: the probability that more repeats decide, or the number of records needed.

The variances of a study's numbers predict how far more repeats may move them. The forecast draws such later results and
judges each as the study itself is judged (predictive power: Spiegelhalter, Freedman & Blackburn 1986). All leakage
numbers of a setting move together, and so do all numbers of its accuracy. The records stay the same, so the records'
part of the variance stays.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from math import ceil

import numpy as np
from scipy.special import ndtri

from dp_leakage.metrics.contrast import Contrast
from dp_leakage.metrics.intervals import FEWEST_REPEATS
from dp_leakage.report.decision import ALPHA, SINGLE, Conditions, Look, judge

WANTED = 0.8  # the probability that is called enough
TIMES = (1.25, 1.5, 2.0, 3.0, 4.0, 6.0, 8.0)  # how many times the repeats are asked about
DRAWS = 200


@dataclass(frozen=True)
class Forecast:
    """Forecast of what more repeats would decide.

    Attributes:
        repeats: the smallest number tried that decides with probability `WANTED`; otherwise the largest tried.
        probability: probability that a study with so many repeats recommends a setting or finds that none meets both
            limits.
    """

    repeats: int
    probability: float


def forecast(
    settings: Sequence[Conditions], advantage: float, risk: str, aware: bool, look: Look = SINGLE
) -> Forecast | None:
    """Forecast the decision after more repeats; None with too few repeats for a forecast.

    Args:
        settings: all settings of a data set.
        advantage, risk, aware: as for `decision.judge`.
        look: the planned look. The forecast is for the looks to come, each at its own level; after the last one, for
            any number of repeats at the level of the last.
    """
    found, _ = judge(settings, advantage, risk, aware, look.level)
    near = [one for one, own in zip(settings, found, strict=True) if one.chosen_among and not own.aside]
    repeats = min((int(number.repeats) for one in near for number in one.numbers), default=0)
    if repeats < FEWEST_REPEATS:
        return None
    asked = [*(look.later or {2 * ceil(times * repeats / 2): look.level for times in TIMES}).items()]
    likely = partial(_likely, near, advantage, risk, aware)
    low, high, best = 0, len(asked) - 1, likely(*asked[-1])
    if best < WANTED:
        return Forecast(asked[-1][0], best)
    while low < high:  # more repeats decide more often
        middle = (low + high) // 2
        found_there = likely(*asked[middle])
        low, high, best = (low, middle, found_there) if found_there >= WANTED else (middle + 1, high, best)
    return Forecast(asked[high][0], best)


def _likely(
    settings: Sequence[Conditions], advantage: float, risk: str, aware: bool, repeats: int, error: float
) -> float:
    rng = np.random.default_rng(repeats)
    return (
        sum(
            decides([_later(one, repeats, *rng.normal(size=2)) for one in settings], advantage, risk, aware, error)
            for _ in range(DRAWS)
        )
        / DRAWS
    )


def decides(settings: Sequence[Conditions], advantage: float, risk: str, aware: bool, error: float = ALPHA) -> bool:
    """Return whether a setting is recommended, or every setting significantly fails a limit."""
    found, _ = judge(settings, advantage, risk, aware, error)
    fails = ["no" in (own.keeps, own.protects) for one, own in zip(settings, found, strict=True) if one.chosen_among]
    return all(fails) or any(
        own.keeps == own.protects == "yes" for one, own in zip(settings, found, strict=True) if one.chosen_among
    )


def _later(one: Conditions, repeats: int, use: float, leak: float) -> Conditions:
    return replace(
        one,
        use=tuple(number.later(repeats, use) for number in one.use),
        guess=None if one.guess is None else one.guess.later(repeats, use),
        leak=tuple(number.later(repeats, leak) for number in one.leak),
    )


def times_records(one: Conditions, advantage: float, error: float = ALPHA) -> float | None:
    """Return the factor on the number of records that would confirm a setting with probability `WANTED`.

    The number of repeats is unlimited, ``error`` the level of the test. None: a measured number misses its limit, so
    that more records of this kind would not confirm the setting. At most 1: the records suffice.
    """
    reach = float(ndtri(1 - error) + ndtri(WANTED))

    def times(number: Contrast, spare: float) -> float:
        return number.of_records * (reach / spare) ** 2 if spare > 0 else np.inf

    leak = () if one.by_proof else one.leak
    found = [times(number, number.value) for number in one.use] + [
        times(number, advantage - number.value) for number in leak
    ]
    most = max(found, default=np.inf)
    return None if most == np.inf else most
