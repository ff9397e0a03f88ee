"""Records whose own membership is detectable, under random inclusion.

A record's evidence is the difference of its scores in and out, over its own standard deviation plus one common to all
records (SAM: Tusher, Tibshirani & Chu 2001). The null distribution permutes each record's inclusion among its repeats,
and gives the expected number of false discoveries at each level of evidence. Evidence says that membership is
detectable, not how well.
"""

from typing import NamedTuple

import numpy as np

from dp_leakage.metrics.coins import aligned
from dp_leakage.metrics.discoveries import FALSE

REPEATS = 8  # with fewer, the coins of a record can be dealt in so few ways that each shows the same evidence too often
DEALS = 100
SMALLEST = 1e-9  # deviation, in quartile ranges of a run's scores


class Exposed(NamedTuple):
    """Records with detectable membership.

    Attributes:
        evidence: float64 (n,) of all records; −inf where a record was in no repeat, or in all.
        order: int64, the records that stand out, clearest evidence first; at most a share `FALSE` of them is expected
            to be false.
        at_least: lower bound on the number of truly exposed records among them, with 95 % confidence.
    """

    evidence: np.ndarray
    order: np.ndarray
    at_least: int


def exposed(score: np.ndarray, member: np.ndarray, seed: int = 0) -> Exposed:
    """Return the records with detectable membership; none with fewer than `REPEATS` repeats.

    The common deviation does not depend on inclusion. Otherwise records that leak would distort the estimate of chance.

    Args:
        score: float (R, n); higher means member.
        member: bool (R, n), random inclusion.
        seed: of the re-drawn inclusion.
    """
    rng, score = np.random.default_rng(seed), aligned(score)
    score = score - score.mean(axis=0)
    common = max(float(np.median(score.std(axis=0))), SMALLEST)
    found = evidence(score, member, common)
    if len(score) < REPEATS:
        return Exposed(found, np.array([], dtype=np.int64), 0)
    chance = np.stack([evidence(score, rng.permuted(member, axis=0), common) for _ in range(DEALS)])
    order = np.argsort(-found, kind="stable")
    beyond = (chance.size - np.searchsorted(np.sort(chance, axis=None), found[order], "left") + 1) / DEALS
    listed = np.flatnonzero(beyond / np.arange(1, len(order) + 1) <= FALSE)
    if not len(listed):
        return Exposed(found, order[:0], 0)
    order = order[: listed[-1] + 1]
    by_chance = np.quantile((chance >= found[order[-1]]).sum(axis=1), 1 - FALSE, method="higher")
    return Exposed(found, order, max(len(order) - int(by_chance), 0))


def evidence(score: np.ndarray, member: np.ndarray, common: float) -> np.ndarray:
    """Return each record's excess of scores in over scores out, in moderated standard errors: float64 (n,).

    Args:
        score: float (R, n), each record's with a mean of 0.
        member: bool (R, n).
        common: the deviation that is added to a record's own, > 0.
    """
    k, total = member.sum(axis=0), np.where(member, score, 0.0).sum(axis=0)
    out = len(score) - k
    inside, outside = total / np.maximum(k, 1), -total / np.maximum(out, 1)
    left = (score**2).sum(axis=0) - k * inside**2 - out * outside**2
    own = np.sqrt(np.maximum(left, 0.0) / max(len(score) - 2, 1))
    found = (inside - outside) / np.sqrt(1 / np.maximum(k, 1) + 1 / np.maximum(out, 1)) / (own + common)
    return np.where((k > 0) & (out > 0), found, -np.inf)
