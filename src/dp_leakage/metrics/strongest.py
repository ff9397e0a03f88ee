"""The largest of several attacks' numbers, and its interval, which both pay for the choice.

The estimand is the number of the attack whose number is truly largest. The largest measured number is too large, by the
luck of whichever attack came out first. What is expected of that luck is taken off (a parametric bootstrap of the
choice, Efron 2014). To choose the attack on other records than it is judged on counts no luck either. But then each
part of the records is judged by an attack that did worse there than elsewhere: between attacks that are about alike,
the number varies more, and can be below what every one of them reaches.

The interval's upper end is the largest of the attacks' own upper ends: the truly best attack is among them, so no
correction is needed. A lower end could be above the truth by any attack's luck. So the lower ends of all contenders
hold at once, by the quantile of the largest of their correlated normal errors, and the largest of them counts ("max-t",
Hothorn, Bretz & Westfall 2008). Attacks that are surely weaker are no contenders and cost nothing (Chernozhukov, Lee &
Rosen 2013, adaptive selection).
"""

from collections.abc import Sequence
from functools import cache

import numpy as np

from dp_leakage.metrics.intervals import CONFIDENCE, Estimate, Influences, Z

CONTENDS = 3.0  # standard errors of the difference below the best; a truly best attack is dropped once in 700 studies
DRAWS = 50_000  # give quantiles to about 0.01
DRAWS_OF_MEAN = 5_000  # give means to about 0.015 standard deviations


def of_strongest(alone: Sequence[Estimate], moved: Sequence[Influences], limits: tuple[float, float]) -> Estimate:
    """The largest of the numbers that ``alone`` estimate, less the luck of the choice, with a 95 % interval.

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
    wider = largest_quantile(rivals) / Z
    low = max(one.value - wider * (one.value - one.low) for one, kept in zip(alone, contends, strict=True) if kept)
    high = max(one.high for one in alone)
    value = max(each[best] - luck(each[contends], rivals), low)
    return Estimate(float(value), float(max(low, limits[0])), float(min(high, limits[1])))


def covariance(moved: Sequence[Influences]) -> np.ndarray:
    """(k, k): of k numbers measured on the same records and repeats, at most (Owen 2007, as `over_repeats`)."""
    found = np.zeros((len(moved), len(moved)))
    for blocks in zip(*(one.blocks for one in moved), strict=True):
        found += _of_means(np.stack([block.mean(axis=0) for block in blocks]))
    rows = np.stack([np.sum([block.mean(axis=1) for block in one.blocks], axis=0) for one in moved])
    return found + _of_means(rows)


def _of_means(values: np.ndarray) -> np.ndarray:
    """The covariance of the means of (k, n) values; of one value, which says nothing, 0."""
    k, n = values.shape
    return np.cov(values).reshape(k, k) / n if n > 1 else np.zeros((k, k))


def largest_quantile(shared: np.ndarray) -> float:
    """Below which the largest of k standard normal errors with this covariance lies with probability 97.5 %."""
    k = len(shared)
    if k == 1:
        return Z
    deviation = np.sqrt(shared.diagonal())
    known = np.outer(deviation, deviation)
    correlation = np.divide(shared, known, out=np.eye(k), where=known > 0)
    return max(float(np.quantile(_errors(correlation, DRAWS).max(axis=0), (1 + CONFIDENCE) / 2)), Z)


def luck(each: np.ndarray, shared: np.ndarray) -> float:
    """The mean error of the number that is largest as measured, ≥ 0: by how much the choice is too high.

    Args:
        each: (k,) numbers, taken for the truth (a parametric bootstrap).
        shared: (k, k), the covariance of their errors.
    """
    if len(each) == 1:
        return 0.0
    errors = _errors(shared, DRAWS_OF_MEAN)
    best = (each[:, None] + errors).argmax(axis=0)
    return max(float(np.take_along_axis(errors, best[None], axis=0).mean()), 0.0)


def _errors(shared: np.ndarray, draws: int) -> np.ndarray:
    """(k, draws) normal numbers of this covariance."""
    values, vectors = np.linalg.eigh(shared)
    return (vectors * np.sqrt(np.maximum(values, 0.0))) @ _normal(len(shared))[:, :draws]


@cache
def _normal(k: int) -> np.ndarray:
    """(k, DRAWS) standard normal numbers, always the same ones. In this order the largest of k is fast to find."""
    return np.ascontiguousarray(np.random.default_rng(0).standard_normal((DRAWS, k)).T)
