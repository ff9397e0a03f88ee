"""Accuracy lost against another model that was tested on the same records.

Two models are right on mostly the same records, so the choice of the test records affects both accuracies alike. Their
difference is the share of records that only the first classifies correctly, minus the share that only the second does.
The intervals of these two shares give its interval (MOVER, Zou & Donner 2008; Newcombe 1998, method 10). Wilson's
intervals do not collapse if the models never differ, and are valid if only one of them is ever right. An interval from
the correlation of the two accuracies (Newcombe 1998, *Improved confidence intervals for the difference between binomial
proportions based on paired data*) is not.

The models' trainings are treated as independent, so their variances add and nothing cancels. This is conservative where
the same repeat of both trains on the same records (design ``coins``). With fewer than `intervals.FEWEST_REPEATS`
trainings the interval is for these models, and has no such variance.
"""

from collections.abc import Sequence
from typing import TypeAlias

import numpy as np
import pandas as pd
from scipy.special import ndtri, stdtrit

from dp_leakage.data.persons import effective_of
from dp_leakage.metrics.intervals import (
    CONFIDENCE,
    FEWEST_REPEATS,
    Estimate,
    Z,
    difference,
    freedom_of,
    ratio,
    widen,
    wilson,
)
from dp_leakage.metrics.people import ASKED, RIGHT, RightAnswers, covariance
from dp_leakage.metrics.simultaneous import half_width
from dp_leakage.metrics.utility import INFLUENCES, VALUE

Spread: TypeAlias = Sequence[tuple[float, int]]  # parts of a variance, each with its degrees of freedom
READ = ("repeat", RIGHT, ASKED, VALUE, INFLUENCES)  # columns of a training's history that a comparison reads


def right_answers(history: pd.DataFrame) -> RightAnswers | None:
    """Return the right answers after the last epoch from a training's history, or None if the history lacks them."""
    if RIGHT not in history:
        return None
    rows = history[history[RIGHT].notna()].sort_values("repeat")
    return RightAnswers(np.stack(rows[RIGHT].to_list()), np.asarray(rows[ASKED].iloc[0]))


def pairs(own: RightAnswers, base: RightAnswers) -> bool:
    """Return whether two models can be compared person by person: both were queried about the same two or
    more people.
    """
    return len(own.asked) > 1 and np.array_equal(own.asked, base.asked)


def unpaired_loss(own: Estimate, base: Estimate) -> Estimate:
    """Return 1 − own / base of two accuracies on different records."""
    kept = ratio(own, base)
    return Estimate(1 - kept.value, 1 - kept.high, 1 - kept.low)


def paired_loss(own: RightAnswers, base: RightAnswers) -> Estimate:
    """Return 1 − own / base of the mean accuracies of R and S models on the same records, for which `pairs` holds.

    The difference is divided by the accuracy of ``base`` (`ratio`); the correlation is the one from the choice of
    records.

    Args:
        own, base: right answers. Repeats of one side are independent trainings.
    """
    level, far = (1 + CONFIDENCE) / 2, Z
    theirs = base.right.mean(axis=0)
    more = theirs - own.right.mean(axis=0)
    counts = np.stack([np.maximum(more, 0.0), np.maximum(-more, 0.0), theirs])
    shares, variances = counts.sum(axis=1) / base.asked.sum(), covariance(counts, base.asked)
    farther = float(stdtrit(_freedom(more, base.asked), level))
    known = _as_independent(shares, np.diag(variances), base.asked) * (far / farther) ** 2
    lost, won = (wilson(float(shares[k]), float(known[k]), far) for k in (0, 1))
    apart = _over_trainings(difference(lost, won, _correlation(variances)), [*_spread(own), *_spread(base)], level)
    whole = _share_over_trainings(float(shares[2]), float(known[2]), _spread(base), level)
    shared = far**2 * float(variances[0, 2] - variances[1, 2])
    reaches = (apart.high - apart.low) * (whole.high - whole.low) / 4
    found = ratio(apart, whole, float(np.clip(shared / reaches, -1, 1)) if reaches > 0 else 0.0)
    return found._replace(high=min(found.high, 1.0))


def _as_independent(shares: np.ndarray, variances: np.ndarray, asked: np.ndarray) -> np.ndarray:
    """Return the number of independent records that would determine each share equally precisely, float64 (k,).

    A share without variance gets the number of the last one, between the effective number of people and the number of
    records.
    """
    spread, fewest = shares * (1 - shares), effective_of(asked)
    last = float(spread[-1] / variances[-1]) if variances[-1] > 0 else fewest
    least = max(min(last, float(asked.sum())), fewest)
    return np.divide(spread, variances, out=np.full(len(shares), least), where=variances > 0)


def _freedom(more: np.ndarray, asked: np.ndarray) -> float:
    """Return the degrees of freedom of a variance between people, few if it comes from few of them.

    For single records the number alone decides: Wilson's interval contains the distribution of a share.
    """
    most = max(effective_of(asked) - 1, 1.0)
    if asked.max() == 1:
        return most
    return min(most, freedom_of(more - asked * (more.sum() / asked.sum())))


def _correlation(variances: np.ndarray) -> float:
    """Return the correlation of the first two shares."""
    scale = float(np.sqrt(variances[0, 0] * variances[1, 1]))
    return float(variances[0, 1]) / scale if scale > 0 else 0.0


def _spread(models: RightAnswers) -> Spread:
    """Return the variance of a mean accuracy between trainings, and its degrees of freedom; empty for too few
    trainings.
    """
    n = len(models.right)
    return [(float(np.var(models.accuracies, ddof=1)) / n, n - 1)] if n >= FEWEST_REPEATS else []


def _over_trainings(records: Estimate, between: Spread, level: float) -> Estimate:
    """Add the variance between trainings to the interval of a difference."""
    within = ((records.high - records.low) / 2 / float(ndtri(level))) ** 2
    added = float(np.sqrt(max(half_width(within, between, level) ** 2 - half_width(within, (), level) ** 2, 0.0)))
    return widen(records, (added, added), limits=(-1.0, 1.0))


def _share_over_trainings(share: float, known: float, between: Spread, level: float) -> Estimate:
    """Return Wilson's interval of a share based on ``known`` independent records, with the variance of the trainings
    added.
    """
    far, spread = float(ndtri(level)), share * (1 - share)
    half = half_width(spread / known, between, level)
    return wilson(share, spread * (far / half) ** 2 if half > 0 else known, far)
