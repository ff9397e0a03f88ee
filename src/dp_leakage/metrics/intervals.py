"""95 % intervals: of proportions, of crossed effects, and rules for differences, ratios and repeats.

The rules are MOVER ("method of variance estimates recovery", Zou & Donner 2008): the distance from a value to its
interval's end represents z·(standard error) on that side, so independent errors add in quadrature on each side. With
score intervals inside, the results stay in range and do not collapse at 0 or 1.

`crossed` is for numbers measured on R trainings and n records at once. It uses the contribution of every record in
every training, so it covers the variance of both, and counts the interaction of record and training only once. From
`FEWEST_REPEATS` trainings on an interval covers further trainings; with fewer it holds for these models only.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from scipy.special import chdtri, ndtri, stdtrit

CONFIDENCE = 0.95
# With fewer repeats an interval is for these very models: by Student's t, two or three say next to nothing of others.
FEWEST_REPEATS = 4
Z = float(ndtri((1 + CONFIDENCE) / 2))
ROUNDING = 1e-12  # by how much equal influences differ if they were added in another order


class Estimate(NamedTuple):
    """A value and its two-sided 95 % interval, low ≤ value ≤ high."""

    value: float
    low: float
    high: float

    @classmethod
    def from_row(cls, row: Any) -> "Estimate":
        """Return the estimate of a row of metrics, with the columns ``value``, ``low`` and ``high``."""
        return cls(*(float(row[column]) for column in cls._fields))


UNKNOWN_FRACTION = Estimate(float("nan"), 0.0, 1.0)
UNKNOWN_DIFFERENCE = Estimate(float("nan"), -1.0, 1.0)


def wilson(fraction: float, n: float, quantile: float = Z) -> Estimate:
    """Return Wilson's score interval for a fraction in [0, 1] among n > 0 independent records.

    n may be an effective size, any real number; n = 0 means no information and gives [0, 1]. Another ``quantile`` of
    the normal distribution gives another confidence.
    """
    if n == 0:
        return UNKNOWN_FRACTION
    shrink = quantile * quantile / n
    center = (fraction + shrink / 2) / (1 + shrink)
    reach = quantile * np.sqrt(fraction * (1 - fraction) / n + shrink / (4 * n)) / (1 + shrink)
    low, high = max(center - reach, 0.0), min(center + reach, 1.0)
    return Estimate(float(fraction), float(min(low, fraction)), float(max(high, fraction)))


def mean_in_unit_range(value: float, variance: float, n: float) -> Estimate:
    """Return the interval of a mean in [0, 1] whose estimate has the given variance.

    Wilson's interval at the effective size v(1-v)/variance. A variance of zero (equal records, or a single one) says
    nothing about the true variance, so then the number of records n is used.
    """
    effective = value * (1 - value) / variance if variance > 0 else 0.0
    return wilson(value, effective if effective > 0 else n)


def mean_of_fractions(values: np.ndarray) -> Estimate:
    """Return the interval of the mean of n independent numbers in [0, 1], shape (n,); for booleans this is Wilson's."""
    n = len(values)
    if n == 0:
        return UNKNOWN_FRACTION
    return mean_in_unit_range(float(np.mean(values)), float(np.var(values)) / n, n)


def difference(a: Estimate, b: Estimate, correlation: float = 0.0) -> Estimate:
    """Return the interval of a − b; for two independent Wilson intervals this is Newcombe's (1998, method 10).

    ``correlation`` in [-1, 1] is the correlation of the two estimates, if they come from the same records.
    """
    value = a.value - b.value
    below, above = a.value - a.low, a.high - a.value
    b_below, b_above = b.value - b.low, b.high - b.value
    low = np.sqrt(max(below**2 + b_above**2 - 2 * correlation * below * b_above, 0.0))
    high = np.sqrt(max(above**2 + b_below**2 - 2 * correlation * above * b_below, 0.0))
    return Estimate(value, float(value - low), float(value + high))


def ratio(a: Estimate, b: Estimate, correlation: float = 0.0) -> Estimate:
    """Return the interval of a / b, b > 0 (MOVER-R, Donner & Zou 2012; Fieller's if symmetric).

    ``correlation`` in [-1, 1] is the correlation of the two estimates. The end E of the interval solves (a − E b)² =
    (a's reach)² + E² (b's reach)² − 2 E · correlation · (a's reach) (b's reach). If b's interval reaches so low that
    the ratio is unbounded, an end is infinite.
    """
    if not b.value > 0:
        return Estimate(float("nan"), float("nan"), float("nan"))

    def end(a_end: float, sign: int) -> float:
        inward = sign * a_end <= 0  # towards 0, where a larger b moves the end
        b_end = b.high if inward else b.low
        a_part, b_part = a_end * (2 * a.value - a_end), b_end * (2 * b.value - b_end)
        if b_part <= 0:
            return 0.0 if inward else sign * float("inf")
        product = a.value * b.value - correlation * abs((a.value - a_end) * (b.value - b_end))
        return float((product + sign * np.sqrt(max(product**2 - a_part * b_part, 0.0))) / b_part)

    return Estimate(a.value / b.value, end(a.low, -1), end(a.high, 1))


def widen(estimate: Estimate, *reaches: tuple[float, float], limits: tuple[float, float]) -> Estimate:
    """Add further independent errors (below, above) ≥ 0 to an estimate in quadrature, within limits."""
    value = estimate.value
    low = value - np.hypot.reduce([value - estimate.low, *(below for below, _ in reaches)])
    high = value + np.hypot.reduce([estimate.high - value, *(above for _, above in reaches)])
    return Estimate(value, float(max(low, limits[0])), float(min(high, limits[1])))


def over_repeats(records: Estimate, values: np.ndarray, limits: tuple[float, float] = (0.0, 1.0)) -> Estimate:
    """Return the interval of a mean over R repeats with the same records, both errors added in quadrature.

    Args:
        records: the mean over repeats, with an interval for the sampling of records only.
        values: (R,) the value of each repeat; their spread gives Student's t interval of the mean over trainings. With
            fewer than `FEWEST_REPEATS` the interval is for these models only, from ``records``.
        limits: the range of the metric.

    Records and repeats are crossed, so the variance of the mean is at most the sum of the two (Owen 2007, "The
    pigeonhole bootstrap"). The interaction of record and repeat is counted twice, which is conservative.
    """
    n = len(values)
    if n < FEWEST_REPEATS:
        return records
    reach = float(_student(n - 1) * np.std(values, ddof=1) / np.sqrt(n))
    return widen(records, (reach, reach), limits=limits)


class Influences(NamedTuple):
    """A number measured on R repeats (trainings) with the same records, and each record's influence on it in each
    repeat.

    Attributes:
        value: the number, a mean over the repeats or close to one.
        blocks: float64 (R, n) for each set of records, such as members and non-members: to first order, n times how far
            that record in that repeat moves the repeat's value from ``value``. A block's row means are its
            contributions to each repeat's deviation; they sum to 0 over all repeats and blocks.
        judged: number of records that the number rests on, if other records have no influence because they are not
            queried; None for all.
    """

    value: float
    blocks: tuple[np.ndarray, ...]
    judged: int | None = None

    def times(self, factor: float) -> "Influences":
        """Scale the number by a factor > 0."""
        return Influences(self.value * factor, tuple(block * factor for block in self.blocks), self.judged)

    def wider(self, factor: float) -> "Influences":
        """Scale the errors by ``factor`` and keep the number."""
        return self.times(factor)._replace(value=self.value)

    def of(self, owner: np.ndarray) -> "Influences":
        """Aggregate to the records' owners, int64 (n,) from 0 on, who are independent where their records are not.

        An owner's influence is the sum of the records' (Obuchowski 1997 for the area under a ROC; the sandwich of Liang
        & Zeger 1986 for rates), scaled so that the mean over the owners is the mean over the records.
        """
        owners = int(owner.max()) + 1

        def summed(block: np.ndarray) -> np.ndarray:
            return np.stack([np.bincount(owner, row, owners) for row in block]) * (owners / len(owner))

        return Influences(self.value, tuple(summed(block) for block in self.blocks), self.judged)


def influences_of_mean(values: np.ndarray) -> Influences:
    """Return the influences on the mean of (R, n) values; NaN is a missing value."""
    there = ~np.isnan(values)
    mean = float(values[there].mean()) if there.any() else float("nan")
    return Influences(mean, (np.where(there, values - mean, 0.0) * (values.size / max(int(there.sum()), 1)),))


def crossed(found: Influences, limits: tuple[float, float] | None = None) -> Estimate:
    """Return the interval of a number over both its records and its repeats.

    Args:
        found: the number and its influences.
        limits: the ends of a metric's range, if it has both. The interval is then Wilson's at the effective size of a
            proportion with that spread, which stays inside and is right for rare events.

    Let a, b and c be the variances of the number that come from repeats, from records and from both together. Then the
    spread between the repeats' values shows a + c, that between the records' values b + c, and the residual c (the
    two-way layout with random effects, Searle, Casella & McCulloch 1992, chapter 4). Satterthwaite's (1946) half-width
    of such a sum is too small if few repeats happen to agree, and MOVER's is too large by about as much, so the root of
    their mean square is used. Since a ≥ 0, repeats may agree better than c alone allows in nine of ten studies only by
    chance. Their spread is then replaced by the tenth percentile under c alone. The spread of heavy-tailed records is
    worth fewer degrees of freedom, Var(s²) = σ⁴(2/(n−1) + κ/n) with κ the excess kurtosis, and the ends are moved for
    skewed records (Hall 1992). Fewer than `FEWEST_REPEATS` say next to nothing about other trainings, so then the
    interval is for these models only. Influences of 0 say nothing of the spread; then Wilson's interval of as many
    records as were judged is used, if there are limits.
    """
    return over_layouts(found.value, [layout(block) for block in found.blocks], limits, found.judged)


class Layout(NamedTuple):
    """Sufficient statistics of a block of influences, (R, n), for an interval.

    Attributes:
        rows: (R,) means over the records of each repeat.
        columns: (n,) means over the repeats of each record.
        left: the residual sum of squares, which neither row nor column explains.
    """

    rows: np.ndarray
    columns: np.ndarray
    left: float


def layout(block: np.ndarray) -> Layout:
    """Return the layout of a block, (R, n)."""
    repeats, n = block.shape
    rows, columns, mean = block.mean(axis=1), block.mean(axis=0), block.mean()
    squares = float(np.sum((block - mean) ** 2))
    squares -= n * float(np.sum((rows - mean) ** 2))
    squares -= repeats * float(np.sum((columns - mean) ** 2))
    return Layout(rows, columns, max(squares, 0.0))


def over_layouts(
    value: float,
    blocks: Sequence[Layout],
    limits: tuple[float, float] | None = None,
    judged: int | None = None,
) -> Estimate:
    """As `crossed`, from the layouts of a number's blocks; ``judged`` as in `Influences`."""
    below, above = _reach([blocks])
    if limits is None:
        return Estimate(value, value - below, value + above)
    low, high = limits
    span, fewest = high - low, min(len(block.columns) for block in blocks) if judged is None else judged
    variance = ((below + above) / 2 / Z / span) ** 2
    scaled = mean_in_unit_range((value - low) / span, variance, fewest)
    return Estimate(value, *(low + span * end for end in scaled[1:]))


def crossed_difference(a: Influences, b: Influences) -> Estimate:
    """Return the interval of a − b, each measured on its own repeats and both on the same records, in the same order.

    If the repeats are paired too (the same splits, drawn again for each repeat), subtract the blocks and use `crossed`.
    If no record differs over its repeats, `with_unseen` is added.
    """
    below, above = _reach([[layout(block) for block in a.blocks], [layout(-block) for block in b.blocks]])
    value = a.value - b.value
    found = Estimate(value, value - below, value + above)
    apart = [one.mean(axis=0) - other.mean(axis=0) for one, other in zip(a.blocks, b.blocks, strict=True)]
    alike = all(np.allclose(each, 0.0, rtol=0.0, atol=ROUNDING) for each in (value, *apart))
    return with_unseen(found, min(len(each) for each in apart)) if alike else found


def with_unseen(difference: Estimate, n: int) -> Estimate:
    """Widen the difference of two cells that agree on all n records, for unseen kinds of records on which they differ.

    If no record differs, the observed spread is 0, although other records might differ. The interval then includes the
    effect of a share of up to 1 − 0.025^(1/n) of such records, each at most 1 (the rule of three: Hanley & Lippman-Hand
    1983; 0.018 for n = 200).
    """
    unseen = 1 - ((1 - CONFIDENCE) / 2) ** (1 / n)
    return widen(difference, (unseen, unseen), limits=(-1.0, 1.0))


class _Spread(NamedTuple):
    """A variance, the degrees of freedom that it was estimated with, and the third central moment."""

    variance: float
    freedom: float
    third: float = 0.0


def _reach(groups: Sequence[Sequence[Layout]]) -> tuple[float, float]:
    """Return the distances from a sum over groups of repeats to the lower and upper ends of its interval.

    A group is given by the layouts of its blocks. The k-th blocks of all groups have the same records.
    """
    repeats, cells = [], []
    for blocks in groups:
        if len(blocks[0].rows) >= FEWEST_REPEATS:
            alone = [residual(block) for block in blocks]
            repeats.append(
                of_repeats(np.sum([block.rows for block in blocks], axis=0), sum(part.variance for part in alone))
            )
            cells += alone
    records = [_of_records(sum(block.columns for block in shared)) for shared in zip(*groups, strict=True)]
    between, shared, both = (sum(part.variance for part in parts) for parts in (repeats, records, cells))
    within = max(shared - both, 0.0)
    total = between + within
    if not total > 0:
        return 0.0, 0.0
    freedom = total**2 / sum(part.variance**2 / part.freedom for part in (*repeats, *records, *cells))
    fewest = min(part.freedom for part in (*repeats, *records))
    quantile = _student(min(part.freedom for part in records))
    satterthwaite = _student(max(freedom, fewest)) ** 2 * total
    mover = sum(_student(part.freedom) ** 2 * part.variance for part in repeats) + quantile**2 * within
    half, error = np.sqrt((satterthwaite + mover) / 2), np.sqrt(total)
    skewness = sum(part.third for part in records) / error**3
    below, above = (half + error * side * hall_shift(side * quantile, skewness) for side in (1, -1))
    return float(max(below, 0.0)), float(max(above, 0.0))


def hall_shift(quantile: float, skewness: float) -> float:
    """Return the shift of a quantile of a studentized mean with this skewness (Hall 1992, cubic transformation)."""
    if abs(skewness) < 1e-6:
        return 0.0
    moved = 3 / skewness * (np.cbrt(1 + skewness * (quantile - skewness / 6)) - 1)
    return float(moved - quantile)


def of_repeats(means: np.ndarray, of_cells: float) -> _Spread:
    """Return two components of the variance of a mean of R repeats' means: from the repeats, and from the cells.

    The cells alone give ``of_cells``. So the result is at least the tenth percentile of studies with that variance.
    """
    n, freedom = len(means), len(means) - 1
    least = of_cells * float(chdtri(freedom, 0.9)) / freedom
    return _Spread(max(float(np.var(means, ddof=1)) / n, least), freedom)


def _of_records(means: np.ndarray) -> _Spread:
    """Return the part of the variance of a mean of n records' influences that comes from the choice of the records."""
    n = len(means)
    deviations = means - means.mean()
    square = float(np.mean(deviations**2))
    if n < 2 or not square > 0:
        return _Spread(0.0, max(n - 1, 1))
    return _Spread(square / (n - 1), freedom_of(deviations), float(np.mean(deviations**3)) / n**2)


def freedom_of(deviations: np.ndarray) -> float:
    """Return the degrees of freedom of the variance of n ≥ 2 deviations from their mean, with excess kurtosis κ.

    Var(s²) = σ⁴(2/(n−1) + κ/n). No variance has n − 1.
    """
    n, square = len(deviations), float(np.mean(deviations**2))
    kurtosis = max(float(np.mean(deviations**4)) / square**2 - 3, 0.0) if square > 0 else 0.0
    return max(2 / (2 / (n - 1) + kurtosis / n), 1.0)


def residual(block: Layout) -> _Spread:
    """Return the part of the variance of a mean of (R, n) that comes from neither the repeat nor the record alone."""
    repeats, n = len(block.rows), len(block.columns)
    if n < 2:
        return _Spread(0.0, 1)
    freedom = (repeats - 1) * (n - 1)
    return _Spread(block.left / freedom / (repeats * n), freedom)


def _student(freedom: float) -> float:
    return float(stdtrit(freedom, (1 + CONFIDENCE) / 2))
