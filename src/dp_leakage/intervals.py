"""95 % intervals: of proportions, and rules that carry them through differences, ratios and repeats.

Everything here is MOVER ("method of variance estimates recovery", Zou & Donner 2008): the distance from a
value to its interval's end stands for z·(standard error) on that side, so independent errors add in
quadrature, side by side. With score intervals inside, the results stay in range and do not collapse at 0 or
1.
"""

from typing import NamedTuple

import numpy as np
from scipy.special import ndtri, stdtrit

CONFIDENCE = 0.95
Z = float(ndtri((1 + CONFIDENCE) / 2))


class Estimate(NamedTuple):
    """A value and its two-sided 95 % interval, low ≤ value ≤ high."""

    value: float
    low: float
    high: float


UNKNOWN_FRACTION = Estimate(float("nan"), 0.0, 1.0)


def wilson(fraction: float, n: float) -> Estimate:
    """Wilson's score interval for a fraction in [0, 1] seen among n > 0 independent records.

    n may be an effective size, any real number; n = 0 knows nothing and gives [0, 1].
    """
    if n == 0:
        return UNKNOWN_FRACTION
    shrink = Z * Z / n
    centre = (fraction + shrink / 2) / (1 + shrink)
    reach = Z * np.sqrt(fraction * (1 - fraction) / n + shrink / (4 * n)) / (1 + shrink)
    low, high = max(centre - reach, 0.0), min(centre + reach, 1.0)
    return Estimate(float(fraction), float(min(low, fraction)), float(max(high, fraction)))


def mean_in_unit_range(value: float, variance: float, n: float) -> Estimate:
    """Interval of a mean in [0, 1] whose estimate has the given variance.

    Wilson's interval at the effective size v(1-v)/variance; a variance of zero (all records alike, or a
    single one) says nothing about the true variance, and the number of records n stands in.
    """
    effective = value * (1 - value) / variance if variance > 0 else 0.0
    return wilson(value, effective if effective > 0 else n)


def mean_of_fractions(values: np.ndarray) -> Estimate:
    """Interval of the mean of n independent numbers in [0, 1], shape (n,); for booleans it is Wilson's."""
    n = len(values)
    if n == 0:
        return UNKNOWN_FRACTION
    return mean_in_unit_range(float(np.mean(values)), float(np.var(values)) / n, n)


def difference(a: Estimate, b: Estimate, correlation: float = 0.0) -> Estimate:
    """Interval of a − b; of two independent Wilson intervals it is Newcombe's (1998, method 10).

    ``correlation`` in [-1, 1] is that of the two estimates, where they come from the same records.
    """
    value = a.value - b.value
    below, above = a.value - a.low, a.high - a.value
    b_below, b_above = b.value - b.low, b.high - b.value
    low = np.sqrt(max(below**2 + b_above**2 - 2 * correlation * below * b_above, 0.0))
    high = np.sqrt(max(above**2 + b_below**2 - 2 * correlation * above * b_below, 0.0))
    return Estimate(value, float(value - low), float(value + high))


def ratio(a: Estimate, b: Estimate) -> Estimate:
    """Interval of a / b, a ≥ 0, b > 0 independent (MOVER-R, Donner & Zou 2012; Fieller's if symmetric).

    Where b's interval reaches so low that the ratio is unbounded, high is infinite.
    """
    if not b.value > 0:
        return Estimate(float("nan"), float("nan"), float("nan"))
    product = a.value * b.value

    def end(a_end: float, b_end: float, sign: int) -> float:
        a_part, b_part = a_end * (2 * a.value - a_end), b_end * (2 * b.value - b_end)
        if b_part <= 0:
            return 0.0 if sign < 0 else float("inf")
        return float((product + sign * np.sqrt(max(product**2 - a_part * b_part, 0.0))) / b_part)

    return Estimate(a.value / b.value, end(a.low, b.high, -1), end(a.high, b.low, 1))


def widen(estimate: Estimate, *reaches: tuple[float, float], limits: tuple[float, float]) -> Estimate:
    """The estimate with further independent errors (below, above) ≥ 0 added in quadrature, kept in limits."""
    value = estimate.value
    low = value - np.hypot.reduce([value - estimate.low, *(below for below, _ in reaches)])
    high = value + np.hypot.reduce([estimate.high - value, *(above for _, above in reaches)])
    return Estimate(value, float(max(low, limits[0])), float(min(high, limits[1])))


def over_repeats(records: Estimate, values: np.ndarray, limits: tuple[float, float] = (0.0, 1.0)) -> Estimate:
    """Interval of a mean over R repeats that share their records: both kinds of chance, added in quadrature.

    Args:
        records: the mean over repeats, with the interval that holds the sampling of records alone.
        values: (R,) the value of each repeat; their spread gives Student's t interval of the mean over
            trainings.
        limits: the range of the metric.

    Records and repeats are crossed, so the variance of the mean is at most the sum of the two (Owen 2007,
    "The pigeonhole bootstrap"); what belongs to one record in one repeat is counted twice, on the safe side.
    """
    n = len(values)
    if n < 2:
        return records
    reach = float(stdtrit(n - 1, (1 + CONFIDENCE) / 2) * np.std(values, ddof=1) / np.sqrt(n))
    return widen(records, (reach, reach), limits=limits)
