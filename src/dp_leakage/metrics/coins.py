"""Separation of members from non-members under random inclusion (design ``coins``).

Every function takes values, (R, n), of n records in R independently trained runs, and inclusion ``member``, bool (R,
n). It returns the metric and each record's influence on it in each run, for an interval over both (`crossed`), or for
the difference of two cells with the same inclusion (`paired_difference`). A record is a member in half of the runs, so
its own properties cancel. Only the difference between in and out remains, and the randomness of inclusion.
"""

import numpy as np

from dp_leakage.metrics.intervals import Estimate, Influences, Z, crossed, with_unseen
from dp_leakage.metrics.roc import above_rank, allowed, named_at_rank, placements, rank_range


def rate_difference(values: np.ndarray, member: np.ndarray) -> Influences:
    """Return the mean of the members' values minus the mean of the non-members', averaged over runs; for flags TPR −
    FPR.
    """
    (inside, members), (outside, others) = (_mean_of(values, chosen) for chosen in (member, ~member))
    return _over_runs(inside - outside, members - others)


def balanced_accuracy(flags: np.ndarray, member: np.ndarray) -> Influences:
    """Return (TPR + 1 − FPR) / 2 of flags."""
    advantage = rate_difference(flags, member)
    return Influences((1 + advantage.value) / 2, advantage.times(0.5).blocks)


def auc(scores: np.ndarray, member: np.ndarray) -> Influences:
    """Return the mean area under the ROC of each run: the probability that a member scores higher than a non-member.

    A member's influence is its placement among the others of its run, and vice versa (DeLong, DeLong & Clarke-Pearson
    1988).
    """
    placed = np.empty(scores.shape)
    for row, score, inside in zip(placed, scores, member, strict=True):
        row[inside] = placements(score[inside], score[~inside])
        row[~inside] = 1 - placements(score[~inside], score[inside])
    (each, members), (_, others) = (_mean_of(placed, chosen) for chosen in (member, ~member))
    return _over_runs(each, members + others)


def aligned(scores: np.ndarray) -> np.ndarray:
    """Return each run's scores in units of its own median and quartiles over all records, float64 (R, n).

    Membership takes no part, so an attacker can do the same. One threshold for all runs then has about the same FPR in
    each, also where runs differ in the level or scale of their scores.
    """
    low, middle, high = np.quantile(scores, (0.25, 0.5, 0.75), axis=1, keepdims=True, method="lower")
    known = np.isfinite([low, middle, high]).all(axis=0)
    scale = np.subtract(high, low, out=np.ones(low.shape), where=known)
    return np.asarray((scores - np.where(known, middle, 0.0)) / np.where(scale > 0, scale, 1.0))


def share_above(scores: np.ndarray, member: np.ndarray, fpr: float) -> Influences:
    """Return the value of `rates.tpr_at` (up to one non-member) and each record's influence on it in each run.

    One threshold of the aligned scores holds for all runs. Each non-member shifts it, and with it the share of members
    by the slope of the ROC, estimated over the range that contains the true threshold in 95 % of draws. A record that
    passes in one run tends to pass in all, so the range is computed for the smaller number of independent non-members.
    """
    scores = aligned(scores)
    outside = np.sort(scores[~member])[None, ::-1]
    n = outside.shape[1]
    named = named_at_rank(scores, outside, min(allowed(fpr, n), n - 1))
    inside, tpr, passed, share = scores[member], named[member].mean(), named[~member].mean(), member.mean()
    passes = np.where(member, 0.0, (named - passed) / (1 - share))
    independent = min(max(_independent(Influences(float(passed), (passes,))), int(1 / fpr)), n)
    fewest, most = (min(max(round(rank * n / independent), 1), n) for rank in rank_range(fpr, independent))
    looser, stricter = (float(named_at_rank(inside, outside, rank).mean()) for rank in (most, fewest - 1))
    slope = (looser - stricter) * n / (most - fewest + 1)
    return Influences(float(tpr), (np.where(member, (named - tpr) / share, 0.0) - slope * passes,))


def _independent(share: Influences) -> int:
    """Return the number of independent records that would determine a share equally precisely, from its influences."""
    value, low, high = crossed(share)
    half = (high - low) / 2
    return int(value * (1 - value) * (Z / half) ** 2) if half > 0 else share.blocks[0].size


def named_at_fpr(scores: np.ndarray, member: np.ndarray, fpr: float) -> np.ndarray:
    """Return the records, bool (R, n), above the common threshold of aligned scores with a false positive rate of at
    most ``fpr``.
    """
    scores = aligned(scores)
    outside = np.sort(scores[~member])[None, ::-1]
    return above_rank(scores, outside, allowed(fpr, outside.shape[1]))


def paired_difference(a: Influences, b: Influences) -> Estimate:
    """Return a − b, with a 95 % interval, for two cells with the same records and the same random inclusion.

    Where no record differs in any run, `with_unseen` is added.
    """
    blocks = tuple(one - other for one, other in zip(a.blocks, b.blocks, strict=True))
    value = a.value - b.value
    found = crossed(Influences(value, blocks))
    alike = value == 0 and not any(block.any() for block in blocks)
    return with_unseen(found, blocks[0].shape[1]) if alike else found


def _over_runs(each: np.ndarray, moved: np.ndarray) -> Influences:
    """Return the mean of the runs' values, (R,), given each record's influence on its run's value, (R, n)."""
    return Influences(float(each.mean()), (moved + (each - each.mean())[:, None],))


def _mean_of(values: np.ndarray, chosen: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the mean of each run's selected values, (R,), and each record's influence on it times n, (R, n)."""
    count = chosen.sum(axis=1, keepdims=True)
    mean = np.where(chosen, values, 0.0).sum(axis=1, keepdims=True) / count
    return mean[:, 0], np.where(chosen, values - mean, 0.0) * (values.shape[1] / count)
