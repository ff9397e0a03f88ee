"""Largest of several attacks' numbers and its interval, both corrected for the choice.

The estimand is the number of the attack whose number is truly largest. The largest measured number is biased upward by
the choice. A parametric bootstrap estimates this bias (Efron 2014, from shrunken numbers as in empirical Bayes) and
subtracts it. Choosing the attack on other records than it is judged on also avoids the bias. But then each part of the
records is judged by an attack that did worse there than elsewhere: between similar attacks the number varies more, and
can be below the number of every attack.

The interval's upper end is the largest of the attacks' own upper ends: the truly best attack is among them, so no
correction is needed. A lower end could exceed the truth by any attack's error. So the lower ends of all contenders hold
simultaneously, by the quantile of the largest of their correlated normal errors, and the largest of them counts
("max-t", Hothorn, Bretz & Westfall 2008). Attacks that are significantly weaker are no contenders and cost nothing
(Chernozhukov, Lee & Rosen 2013, adaptive selection).
"""

from collections.abc import Sequence
from functools import cache

import numpy as np
from scipy.special import ndtr

from dp_leakage.metrics.intervals import CONFIDENCE, FEWEST_REPEATS, Estimate, Influences, Z, layout, residual
from dp_leakage.metrics.simultaneous import farther

CONTENDS = 3.0  # standard errors of the difference below the best; a truly best attack is dropped once in 700 studies
DRAWS = 50_000  # give quantiles to about 0.01
DRAWS_OF_MEAN = 5_000  # give means to about 0.015 standard deviations


def of_strongest(alone: Sequence[Estimate], moved: Sequence[Influences], limits: tuple[float, float]) -> Estimate:
    """Return the largest of the numbers estimated by ``alone``, corrected for the choice, with a 95 % interval.

    Args:
        alone: each attack's own number with its 95 % interval.
        moved: the influences of the same records and repeats on each, from which their correlations come.
        limits: the ends of its range.
    """
    shared = covariance(moved)
    each = np.array([one.value for one in alone])
    best = int(each.argmax())
    variance = shared.diagonal()
    apart = np.sqrt(np.maximum(variance + variance[best] - 2 * shared[best], 0.0))
    contends = each[best] - each <= CONTENDS * apart
    rivals = shared[np.ix_(contends, contends)]
    # As many independent errors would have that quantile; with few repeats far quantiles are Student's.
    comparisons = float(ndtr(-Z) / ndtr(-largest_quantile(rivals)))
    ends = zip(alone, moved, contends, strict=True)
    low = max(_lower_end(one, influences, comparisons) for one, influences, kept in ends if kept)
    high = max(one.high for one in alone)
    value = max(each[best] - luck(each[contends], rivals), low)
    return Estimate(float(value), float(max(low, limits[0])), float(min(high, limits[1])))


def _lower_end(one: Estimate, moved: Influences, comparisons: float) -> float:
    """Return the lower end of one of several simultaneous intervals."""
    below, repeats = one.value - one.low, np.sum([block.mean(axis=1) for block in moved.blocks], axis=0)
    return one.value - (below * farther(below, comparisons, repeats) if below > 0 else 0.0)


def covariance(moved: Sequence[Influences]) -> np.ndarray:
    """Return (k, k): the covariance of k numbers measured on the same records and repeats, as in `crossed`.

    The records' means show what comes from the records, and from records and repeats together. From `FEWEST_REPEATS` on
    the trainings count too: the part of the repeats' covariance that these two together do not explain.
    """
    pairs = list(zip(*(one.blocks for one in moved), strict=True))  # each block of all numbers
    of_records = sum(_of_means(np.stack([block.mean(axis=0) for block in blocks])) for blocks in pairs)
    if len(pairs[0][0]) < FEWEST_REPEATS:
        return np.asarray(of_records)
    of_repeats = _of_means(np.stack([np.sum([block.mean(axis=1) for block in one.blocks], axis=0) for one in moved]))
    of_cells = sum(residual(layout(block)).variance for blocks in pairs for block in blocks)
    seen = of_repeats.trace()
    return np.asarray(of_records + of_repeats * (max(1 - of_cells / seen, 0.0) if seen > 0 else 0.0))


def _of_means(values: np.ndarray) -> np.ndarray:
    """Return the covariance of the means of (k, n) values; 0 for a single value, which has no information."""
    k, n = values.shape
    return np.cov(values).reshape(k, k) / n if n > 1 else np.zeros((k, k))


def largest_quantile(shared: np.ndarray) -> float:
    """Return the 97.5 % quantile of the largest of k standard normal errors with this covariance."""
    k = len(shared)
    if k == 1:
        return Z
    deviation = np.sqrt(shared.diagonal())
    known = np.outer(deviation, deviation)
    correlation = np.divide(shared, known, out=np.eye(k), where=known > 0)
    return max(float(np.quantile(_errors(correlation, DRAWS).max(axis=0), (1 + CONFIDENCE) / 2)), Z)


def luck(each: np.ndarray, shared: np.ndarray) -> float:
    """Return the mean error of the largest measured number, ≥ 0: the bias of the choice.

    The true numbers are estimated by shrinking the measured ones toward each other, until true spread plus errors
    equals the observed spread. Without shrinkage they would be too far apart, and the choice would seem easier.

    Args:
        each: (k,) numbers as measured.
        shared: (k, k), the covariance of their errors.
    """
    k = len(each)
    if k == 1:
        return 0.0
    errors = _errors(shared, DRAWS_OF_MEAN)
    by_chance = (shared.trace() - shared.sum() / k) / (k - 1)
    seen = float(np.var(each, ddof=1))
    truth = each * np.sqrt(max(1 - by_chance / seen, 0.0)) if seen > 0 else each
    best = (truth[:, None] + errors).argmax(axis=0)
    return max(float(np.take_along_axis(errors, best[None], axis=0).mean()), 0.0)


def _errors(shared: np.ndarray, draws: int) -> np.ndarray:
    """Return (k, draws) normal numbers of this covariance."""
    values, vectors = np.linalg.eigh(shared)
    return (vectors * np.sqrt(np.maximum(values, 0.0))) @ _normal(len(shared))[:, :draws]


@cache
def _normal(k: int) -> np.ndarray:
    """(k, DRAWS) standard normal numbers, always the same ones. In this order the largest of k is fast to find."""
    return np.ascontiguousarray(np.random.default_rng(0).standard_normal((DRAWS, k)).T)
