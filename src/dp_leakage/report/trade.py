"""The trade of an answer that decides nothing: what one step of the budget costs, and what it saves.

More noise never adds use, and never adds leakage. So along a chain of budgets both are fitted as rising with the budget
(isotonic regression, weighted by the numbers' variances), and their limits narrow by each other: what a stronger noise
surely keeps, a weaker one keeps too. The limits hold together for all private settings with 95 % confidence, so that
the step may be chosen by looking. Where they contradict a rise, nothing is said: at most one study in twenty if both
really rise.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from dp_leakage.metrics.contrast import Contrast
from dp_leakage.metrics.intervals import Estimate
from dp_leakage.metrics.thresholds import TWO_SIDED
from dp_leakage.report.answer import Answer, Setting, candidates
from dp_leakage.report.decision import ALPHA

FURTHER = ("sampler", "partition", "most")  # columns that tell chains apart beside model and series


@dataclass(frozen=True)
class Trade:
    """A step to a smaller budget.

    Attributes:
        weaker, stronger: the settings before and after it, by their noise.
        cost: what it takes of the measure of use; not relative.
        saved: what it takes of the strongest attack's advantage.
        among: how many numbers the limits hold for together.
    """

    weaker: Setting
    stronger: Setting
    cost: Estimate
    saved: Estimate
    among: int


def trade_of(answer: Answer) -> Trade | None:
    """Return the step from the setting of an open answer toward the limit that it misses most, or else the other step.

    None if the answer is decided, its setting has no neighbor in its chain, use or leakage was not measured on each,
    members and others differ by themselves, or the numbers contradict a rise with the budget.
    """
    if answer.kind != "open" or answer.best is None:
        return None
    (one,) = answer.told
    private = candidates(answer.settings)
    chain = chain_of(one, private)
    if len({other.spent for other in chain}) < max(len(chain), 2):
        return None
    bases = [other for other in answer.settings if other.defense == "none"]
    base = bases.index(answer.best)
    among = 2 * len(private)  # use and leakage of each
    level = ALPHA / 2 / among
    uses = rising([within(other.conditions.use[base], level) for other in chain])
    advantages = [_advantage(other, level) for other in chain]
    leaks = None if None in advantages else rising([found for found in advantages if found is not None])
    if uses is None or leaks is None:
        return None
    place = chain.index(one)
    leaky = one.advantage / answer.acceptable.advantage > one.loss.value / max(answer.acceptable.accuracy_loss, 1e-9)
    to = place if place == len(chain) - 1 or (leaky and place > 0) else place + 1
    return Trade(chain[to], chain[to - 1], _step(uses, to), _step(leaks, to), among)


def within(number: Contrast, level: float) -> Estimate:
    """Return a number between its two one-sided limits."""
    reach = number.reach(level)
    return Estimate(number.value, number.value - reach, number.value + reach)


def rising(found: Sequence[Estimate]) -> list[Estimate] | None:
    """Return numbers that never fall from one to the next, with the limits that this leaves.

    Args:
        found: K ≥ 1 numbers with limits of one level, which are taken for equally many standard errors.

    Returns:
        The isotonic fit, moved into the limits; None if limits contradict a rise.
    """
    from scipy.optimize import isotonic_regression

    values, lows, highs = np.array(found, dtype=float).T
    lows, highs = np.maximum.accumulate(lows), np.minimum.accumulate(highs[::-1])[::-1]
    if (lows > highs).any():
        return None
    widths = np.maximum(np.array([one.high - one.low for one in found]), 1e-9)
    fitted = np.clip(isotonic_regression(values, weights=widths**-2.0).x, lows, highs)
    return [Estimate(*map(float, one)) for one in zip(fitted, lows, highs, strict=True)]


def _step(rises: Sequence[Estimate], to: int) -> Estimate:
    """Return by how much the number before ``to`` lies below it; never negative."""
    lower, upper = rises[to - 1], rises[to]
    return Estimate(upper.value - lower.value, max(upper.low - lower.high, 0.0), upper.high - lower.low)


def chain_of(one: Setting, settings: Iterable[Setting]) -> list[Setting]:
    """Return the settings that differ from one in their budget alone, the smallest budget first."""
    return sorted((other for other in settings if _chain(other) == _chain(one)), key=lambda other: other.spent)


def _chain(one: Setting) -> tuple[object, ...]:
    """Return what settings share that differ in their budget alone."""
    return one.model, one.series, one.neighbors, *(str(one.row.get(column, "")) for column in FURTHER)


def _advantage(one: Setting, level: float) -> Estimate | None:
    """Return the strongest attack's advantage within limits of a level.

    They are those of its 95 % interval, moved outward as those at the threshold that finds most.
    """
    if one.leak is None or not one.conditions.leak or one.leak.explained or one.leak.shifted:
        return None
    most = max(one.conditions.leak, key=lambda number: number.value)
    (value, low, high), alone = one.leak.advantage, most.reach(TWO_SIDED)
    times = most.reach(level) / alone if alone > 0 else 1.0
    return Estimate(value, value - times * (value - low), value + times * (high - value))
