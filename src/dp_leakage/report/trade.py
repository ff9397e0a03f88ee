"""Cost and benefit of one step of the budget, for an answer that decides nothing.

More noise adds neither use nor leakage. So along a chain of budgets, both are fitted as increasing functions of the
budget (isotonic regression, weighted by the variances). This also narrows their limits: the use that stronger noise is
shown to keep, weaker noise keeps too. All limits hold simultaneously with 95 % confidence, so the step may be chosen by
looking at them. If the limits contradict an increase, no step is reported. That happens in at most one study in twenty
if both truly increase.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from dp_leakage.common.utilities import ACCURACY
from dp_leakage.metrics.contrast import Contrast
from dp_leakage.metrics.intervals import Estimate
from dp_leakage.metrics.thresholds import TWO_SIDED
from dp_leakage.report.answer import Answer
from dp_leakage.report.claims import Claim, ClaimWriter
from dp_leakage.report.decision import ALPHA
from dp_leakage.report.phrases import cell_fields, name_budget, name_series
from dp_leakage.report.setting import Setting, candidates
from dp_leakage.table.numbers import rounded

FURTHER = ("sampler", "partition", "most")  # columns that define a chain, in addition to model and series


@dataclass(frozen=True)
class Trade:
    """A step to a smaller budget.

    Attributes:
        weaker, stronger: the settings with weaker and with stronger noise.
        cost: absolute decrease of the measure of use.
        saved: decrease of the strongest attack's advantage.
        among: number of simultaneous limits.
    """

    weaker: Setting
    stronger: Setting
    cost: Estimate
    saved: Estimate
    among: int


def trade_of(answer: Answer) -> Trade | None:
    """Return the step that brings the setting of an open answer closer to the limit that it misses most.

    At the end of the chain, return the step in the other direction. None: the answer is decided, the chain has one
    setting, use or leakage was not measured for all, member and non-member records differ, or the numbers contradict an
    increase with the budget.
    """
    if answer.kind != "open" or answer.best is None:
        return None
    (one,) = answer.told
    private = candidates(answer.settings)
    chain = sorted((other for other in private if _chain(other) == _chain(one)), key=lambda other: other.spent)
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
    """Fit a non-decreasing sequence, and narrow the limits accordingly.

    Args:
        found: K ≥ 1 numbers with limits at one level, whose widths are taken as proportional to standard errors.

    Returns:
        The isotonic fit, moved into the limits; None if the limits contradict an increase.
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
    """Return the increase from the number before ``to`` to number ``to``; its lower limit is at least 0."""
    lower, upper = rises[to - 1], rises[to]
    return Estimate(upper.value - lower.value, max(upper.low - lower.high, 0.0), upper.high - lower.low)


def _chain(one: Setting) -> tuple[object, ...]:
    """Return the properties that settings of one chain share: all but the budget."""
    return one.model, one.series, one.neighbors, *(str(one.row.get(column, "")) for column in FURTHER)


def _advantage(one: Setting, level: float) -> Estimate | None:
    """Return the strongest attack's advantage with limits at a level.

    Its 95 % interval is widened by the factor between both levels at the threshold with the largest advantage.
    """
    if one.leak is None or not one.conditions.leak or one.leak.explained or one.leak.shifted:
        return None
    most = max(one.conditions.leak, key=lambda number: number.value)
    (value, low, high), alone = one.leak.advantage, most.reach(TWO_SIDED)
    times = most.reach(level) / alone if alone > 0 else 1.0
    return Estimate(value, value - times * (value - low), value + times * (high - value))


def trade_claims(answer: Answer, prefix: str) -> list[Claim]:
    """Return the claim on what one step of the budget costs and saves; none if the answer is decided."""
    found = trade_of(answer)
    if found is None:
        return []
    old, new, writer = found.weaker, found.stronger, ClaimWriter({"among": found.among})
    accuracy = old.measure == ACCURACY
    cost = _write_step(writer, "step_cost", found.cost, 100 if accuracy else 1, of=old.measure, **cell_fields(new))
    unit = "points of accuracy" if accuracy else f"in {old.use_label}"
    step = f"The step from {name_budget(old, writer)} to {name_budget(new, writer)} ({name_series(new)})"
    saved = _write_step(writer, "step_saved", found.saved, 1, **cell_fields(new))
    words = f"{prefix}{step} costs {cost} {unit} and saves {saved} of the strongest attack's advantage."
    cells = tuple((one.model, one.defense) for one in (old, new))
    return [writer.claim(f"{answer.dataset}.trade", "trade", answer.dataset, words, cells=cells, screen=1)]


def _write_step(writer: ClaimWriter, metric: str, found: Estimate, unit: int, **fields: str) -> str:
    """Return a step with its interval, in hundredths if ``unit`` is 100."""
    value, low, high = (rounded(unit * number, decimals=1 if unit > 1 else 2) for number in found)
    return writer(metric, found.value, f"{value} [{low}, {high}]", low=found.low, high=found.high, **fields)
