"""Contrasts for one-sided tests at any level: a mean over repeats and records, with the components of its variance.

`intervals.crossed` gives a 95 % interval of such a number. A test that divides its error among settings needs limits at
other levels, also long after the scores were read. So a `Contrast` stores what every level needs.
"""

from dataclasses import dataclass, replace
from functools import lru_cache
from math import inf

import numpy as np
from scipy.special import stdtrit

from dp_leakage.data.persons import effective_of
from dp_leakage.metrics.intervals import FEWEST_REPEATS, Estimate, Z, hall_shift, layout, of_repeats, residual
from dp_leakage.metrics.people import RightAnswers
from dp_leakage.metrics.utility import Use, independent_blocks


@dataclass(frozen=True)
class Contrast:
    """A mean over R repeats × n records.

    Attributes:
        value: the number.
        var_repeats: variance of the number from the spread of the repeats' means.
        var_records: variance of the number from the spread of the records' means.
        var_cells: the part of both variances that single records in single repeats cause.
        repeats: R; with fewer than `FEWEST_REPEATS` the number is about these models alone, and its variance lacks the
            first and the last part.
        records: n; the effective number if people have several records or few records decide.
        asked: number of records or people, if it differs from ``records``.
        third: third central moment of the number over the choice of records; 0 for many similar records.
    """

    value: float
    var_repeats: float
    var_records: float
    var_cells: float
    repeats: float
    records: float
    asked: float | None = None
    third: float = 0.0

    @classmethod
    def measured(cls, value: float, influences: np.ndarray, records: float | None = None) -> "Contrast":
        """Return the contrast with these influences, float64 (R, n), of which ``records`` are independent (None: n).

        The records' variance is at least the contribution of one record. A single record has no information on it.
        """
        repeats, n = influences.shape
        if n < 2:
            return cls(value, 0.0, inf, 0.0, repeats, 2.0)
        parts = layout(influences)
        var_records = max(float(np.var(parts.columns, ddof=1)) / n, 1 / n**2)
        independent = float(n if records is None else records)
        if repeats < FEWEST_REPEATS:
            return cls(value, 0.0, var_records, 0.0, repeats, independent)
        var_cells = residual(parts).variance
        return cls(value, of_repeats(parts.rows, var_cells).variance, var_records, var_cells, repeats, independent)

    @classmethod
    def unpaired(cls, own: Estimate, base: Estimate, weight: float) -> "Contrast":
        """Return own − weight · base of two independent numbers with known 95 % intervals."""
        halves = [(one.high - one.low) / 2 / Z for one in (own, base)]
        return cls(own.value - weight * base.value, 0.0, halves[0] ** 2 + (weight * halves[1]) ** 2, 0.0, 1, inf)

    def reach(self, level: float) -> float:
        """Return the one-sided distance from the value to its limit, with an error of ``level`` in (0, ½).

        As `intervals.crossed`: the root of the mean square of Satterthwaite's half-width and MOVER's.
        """
        parts = self.var_repeats, self.var_records, self.var_cells
        return _reach(*parts, self.repeats, self.records, level)

    @property
    def of_records(self) -> float:
        """Return the component of the variance that does not shrink with more repeats."""
        return max(self.var_records - self.var_cells, 0.0)

    def _reach_to(self, side: int, level: float) -> float:
        """Return the reach to the lower (1) or upper (−1) limit, moved for skewed records as in `intervals.crossed`.

        Where the mean of few records with a long lower tail is too high by chance, these records also vary too little
        by chance. A symmetric lower limit is then above the truth too often, and the upper one too rarely below it.
        """
        reach, error = self.reach(level), float(np.sqrt(self.var_repeats + self.of_records))
        if not 0 < error < inf:
            return reach
        quantile = side * _student(max(self.records - 1, 1.0), level)
        return max(reach + side * error * hall_shift(quantile, self.third / error**3), 0.0)

    def later(self, repeats: int, moved: float = 0.0) -> "Contrast":
        """Return a possible result with ``repeats`` repeats on the same records, at least as many as now.

        The number moves by ``moved`` standard deviations of its remaining uncertainty.
        """
        share = self.repeats / repeats
        cells = self.var_cells * share
        variance = self.var_repeats + self.of_records
        found = replace(
            self,
            var_repeats=self.var_repeats * share,
            var_records=self.of_records + cells,
            var_cells=cells,
            repeats=repeats,
        )
        still = max(variance - found.var_repeats - found.of_records, 0.0)
        return replace(found, value=self.value + moved * float(np.sqrt(still)))

    def is_above(self, limit: float, level: float) -> bool:
        """Return whether the number is shown to be above the limit."""
        return self.value - self._reach_to(1, level) > limit

    def is_below(self, limit: float, level: float) -> bool:
        """Return whether the number is shown to be below the limit."""
        return self.value + self._reach_to(-1, level) < limit


@lru_cache(1 << 16)
def _reach(
    var_repeats: float, var_records: float, var_cells: float, repeats: float, records: float, level: float
) -> float:
    within = max(var_records - var_cells, 0.0)
    variance = var_repeats + within
    if not 0 < variance < inf:
        return variance
    alone = repeats < FEWEST_REPEATS
    few, many = (inf if alone else repeats - 1), max(records - 1, 1.0)
    squares = var_repeats**2 / few + var_records**2 / many + var_cells**2 / (few * many)
    freedom = max(variance**2 / squares, many if alone else few) if squares > 0 else inf
    both, rows, columns = (_student(one, level) ** 2 for one in (freedom, few, many))
    return float(np.sqrt((both * variance + rows * var_repeats + columns * within) / 2))


def _student(freedom: float, level: float) -> float:
    return float(stdtrit(min(freedom, 1e9), 1 - level))


def kept(own: RightAnswers, base: RightAnswers, weight: float = 1.0) -> Contrast:
    """Return accuracy(own) − weight · accuracy(base) of the same people, paired by repeat.

    ``base`` may have one repeat, such as a constant guess, which is then paired with each repeat of the other.
    """
    repeats = min(len(own.right), len(base.right)) if len(base.right) > 1 else len(own.right)
    difference = own.right[:repeats] - weight * base.right[: repeats if len(base.right) > 1 else 1]
    records, people = own.asked.sum(), len(own.asked)
    value = float(difference.mean(axis=0).sum() / records)
    influences = (difference - value * own.asked) * (people / records)
    return Contrast.measured(value, influences, effective_of(own.asked))


def kept_use(own: Use, base: Use, weight: float = 1.0) -> Contrast:
    """Return own − weight · base in a measure of use on the same blocks, paired by repeat as in `kept`."""
    repeats = min(len(own.values), len(base.values)) if len(base.values) > 1 else len(own.values)
    own, base = own.of_models(slice(repeats)), base.of_models(slice(repeats))
    values = own.values - weight * base.values
    influences = own.influences - weight * base.influences + (values - values.mean())[:, None]
    found = Contrast.measured(float(values.mean()), influences, independent_blocks(influences))
    return replace(found, asked=own.units, third=_third_moment(influences.mean(axis=0)))


def _third_moment(records: np.ndarray) -> float:
    """Return the third central moment of the mean of n records' influences, float64 (n,).

    Few records of a rare class have large influences, and are skewed: most of them rank above nearly all others.
    """
    return float(np.mean((records - records.mean()) ** 3)) / len(records) ** 2


def above_share(own: RightAnswers, share: float) -> Contrast:
    """Return accuracy(own) − a share that is known."""
    found = kept(own, RightAnswers(np.zeros((1, len(own.asked)), np.int32), own.asked))
    return replace(found, value=found.value - share)
