"""Separation of members from non-members: advantage, AUC, TPR at a low FPR, members exposed.

Every function takes the members' values, shape (R, m), and the non-members', (R, n), for the same records in each of R
repeats (independently trained models). It returns the mean over repeats with a 95 % interval for both the sampling of
records and the spread between repeats (``intervals.over_repeats``). R = 1 is a single run.
"""

import numpy as np
from scipy.special import bdtrik

from dp_leakage.metrics.intervals import (
    CONFIDENCE,
    FEWEST_REPEATS,
    Estimate,
    Influences,
    difference,
    mean_in_unit_range,
    mean_of_fractions,
    over_repeats,
    widen,
)

# What an area's greatest variance counts for beside what was seen, in records on the wrong side, of which there are
# min(m, n)·θ(1−θ). With 0, intervals for 50 records held an area of .99 in .68 to .92 of studies; a half gives .96.
MISPLACED = 0.5
OF_FEW_RUNS = 1.3  # by how much the choice of thresholds widens an interval if too few runs are there to show it


def rate_difference(members: np.ndarray, nonmembers: np.ndarray) -> Estimate:
    """Return the mean of the members' values minus the mean of the non-members', for values in [0, 1]; for flags TPR −
    FPR.

    For one run of flags the interval is Newcombe's (1998). Values may be fractions, such as the share of a record's
    attributes that were guessed.
    """
    records = difference(mean_of_fractions(members.mean(axis=0)), mean_of_fractions(nonmembers.mean(axis=0)))
    return over_repeats(records, members.mean(axis=1) - nonmembers.mean(axis=1), limits=(-1.0, 1.0))


def reached_advantage(members: np.ndarray, nonmembers: np.ndarray) -> Estimate:
    """Return `rate_difference` with thresholds chosen on other records (`metrics.reached`).

    The folds that choose and the fold that is judged are parts of one sample, which adds about two thirds to the
    variance (0.4 to 0.8 in simulations). From `FEWEST_REPEATS` runs on the spread between them shows it.
    """
    found = rate_difference(members, nonmembers)
    if len(members) >= FEWEST_REPEATS:
        return found
    low, high = (found.value + OF_FEW_RUNS * (end - found.value) for end in found[1:])
    return Estimate(found.value, max(low, -1.0), min(high, 1.0))


def with_choice(found: Influences) -> Influences:
    """Influences on a difference of rates, if thresholds were chosen on other records, as in `reached_advantage`."""
    return found if len(found.blocks[0]) >= FEWEST_REPEATS else found.wider(OF_FEW_RUNS)


def gap(members: np.ndarray, nonmembers: np.ndarray) -> Influences:
    """Return the value of `rate_difference` and each record's influence on it in each run."""
    inside, outside = members.mean(), nonmembers.mean()
    return Influences(float(inside - outside), (members - inside, outside - nonmembers))


def balanced_accuracy(members: np.ndarray, nonmembers: np.ndarray) -> Estimate:
    """Return (TPR + 1 − FPR) / 2 of flags: accuracy when members and non-members are equally frequent."""
    advantage = rate_difference(members, nonmembers)
    return Estimate(*((1 + end) / 2 for end in advantage))


def auc(members: np.ndarray, nonmembers: np.ndarray) -> Estimate:
    """Return the area under the ROC: the probability that a member scores higher than a non-member, ties counting half.

    The variance over records follows DeLong, DeLong & Clarke-Pearson (1988), in O(n log n). The interval is Wilson's at
    the size of a proportion with that variance, so that it stays in [0, 1]. If the variance is zero or unknown (perfect
    separation, constant scores, one record), it is θ(1−θ)/min(m, n), which no continuous score exceeds (Birnbaum &
    Klose 1957). Near 1, few records on the wrong side determine the variance, and a sample without them shows hardly
    any. So this largest variance is added with the weight of half such a record (see `MISPLACED`).
    """
    found = area(members, nonmembers)
    smallest = min(members.shape[1], nonmembers.shape[1])
    greatest = found.value * (1 - found.value) / smallest
    seen = sum(_mean_variance(block.mean(axis=0)) for block in found.blocks) if smallest > 1 else 0.0
    weight = MISPLACED / (MISPLACED + smallest**2 * greatest)
    variance = (1 - weight) * (seen or greatest) + weight * greatest
    records = mean_in_unit_range(found.value, variance, smallest)
    return over_repeats(records, found.value + found.blocks[0].mean(axis=1))


def area(members: np.ndarray, nonmembers: np.ndarray) -> Influences:
    """Return the value of `auc` and each record's influence on it in each run, from its placement among the other
    class.
    """
    over_nonmembers = np.stack([placements(m, n) for m, n in zip(members, nonmembers, strict=True)])
    over_members = np.stack([1 - placements(n, m) for m, n in zip(members, nonmembers, strict=True)])
    value = float(over_nonmembers.mean())
    # The area is a mean over members and over non-members at once. The rows of both blocks would show a run's own
    # strength, which must count only once.
    each = over_members.mean(axis=1, keepdims=True)
    return Influences(value, (over_nonmembers - value, over_members - each))


def share_above(members: np.ndarray, nonmembers: np.ndarray, fpr: float) -> Influences:
    """Return the value of `rates.tpr_at` (up to one non-member) and each record's influence on it in each run.

    A non-member moves the threshold, and with it the share of members by the slope of the ROC. The slope is taken over
    the range in which 95 % of draws of the non-members put the true threshold.
    """
    n, descending = nonmembers.shape[1], _descending(nonmembers)
    fewest, most = rank_range(fpr, n)
    flagged, passed = (named_at_rank(x, descending, allowed(fpr, n)) for x in (members, nonmembers))
    looser, stricter = (named_at_rank(members, descending, k).mean(axis=1) for k in (most, fewest - 1))
    slope = (looser - stricter) / ((most - fewest + 1) / n)
    moved = -slope[:, None] * (passed - passed.mean(axis=1, keepdims=True))
    return Influences(float(flagged.mean()), (flagged - flagged.mean(), moved))


def placements(values: np.ndarray, among: np.ndarray) -> np.ndarray:
    """Return for each value, (n,), the share of ``among``, (m,), below it, ties counting half: float64 in [0, 1]."""
    ordered = np.sort(among)
    below, up_to = np.searchsorted(ordered, values, "left"), np.searchsorted(ordered, values, "right")
    return (below + up_to) / (2.0 * len(ordered))


def members_exposed(members: np.ndarray, nonmembers: np.ndarray, fpr: float, counting: str) -> Estimate:
    """Count the members above the threshold of the last ROC point with FPR *below* ``fpr``.

    The code of jayaraman2019 counts in this way. The threshold is found on the same non-members. So the interval
    combines, in quadrature, the sampling of the members (Wilson) and of the threshold: the counts at the stricter and
    the looser threshold between which 95 % of draws of the non-members put the true one (order statistics, exact
    binomial).

    Args:
        members: scores, (R, m).
        nonmembers: scores, (R, n).
        fpr: limit of the false positive rate, in (0, 1).
        counting: ``mean``, the mean count of the runs, or ``all_runs``, the number of members flagged in every one (the
            intersection falls with the number of runs; its interval is given these runs).
    """
    descending, n = _descending(nonmembers), nonmembers.shape[1]
    over_runs = np.all if counting == "all_runs" else np.mean

    def share(rank: int) -> np.ndarray:
        return over_runs(above_rank(members, descending, rank), axis=0)

    passing = allowed(fpr, n, below=True)
    fraction = mean_of_fractions(share(passing))
    fewest, most = rank_range(fpr, n)
    below_by = max(fraction.value - share(fewest - 1).mean(), 0.0)
    above_by = max(share(most).mean() - fraction.value, 0.0)
    found = widen(fraction, (below_by, above_by), limits=(0.0, 1.0))
    if counting == "mean":
        found = over_repeats(found, above_rank(members, descending, passing).mean(axis=1))
    return Estimate(*(round(end * members.shape[1], 6) for end in found))


def _descending(scores: np.ndarray) -> np.ndarray:
    return -np.sort(-scores, axis=1)


def above_rank(members: np.ndarray, descending: np.ndarray, passing: int) -> np.ndarray:
    """Return the members above a threshold that ``passing`` non-members pass; −1: a threshold above all scores."""
    if passing < 0:
        return np.zeros(members.shape, dtype=bool)
    if passing >= descending.shape[1]:
        return np.ones(members.shape, dtype=bool)
    return members > descending[:, passing, None]


def named_at_rank(values: np.ndarray, descending: np.ndarray, passing: int) -> np.ndarray:
    """Return the probability that each value, (R, n), is flagged if ``passing`` non-members are: 1 above the threshold,
    a fraction for ties.
    """
    if not 0 <= passing < descending.shape[1]:
        return above_rank(values, descending, passing).astype(np.float64)
    at = descending[:, passing, None]
    above, tied = (descending > at).sum(axis=1, keepdims=True), (descending == at).sum(axis=1, keepdims=True)
    return np.where(values == at, (passing - above) / tied, values > at)


def allowed(fpr: float, n: int, below: bool = False) -> int:
    """Return how many of n may pass for a rate of at most (or below) ``fpr``. A tolerance of 1e-9 covers 0.29·100 <
    29.
    """
    return int(np.ceil(fpr * n - 1e-9)) - 1 if below else int(np.floor(fpr * n + 1e-9))


def rank_range(fpr: float, n: int) -> tuple[int, int]:
    """Return the numbers of n scores above a threshold with true rate ``fpr``: the central 95 % of the binomial."""
    tail = (1 - CONFIDENCE) / 2
    fewest, most = (int(np.ceil(bdtrik(p, n, fpr))) for p in (tail, 1 - tail))
    return max(fewest, 0), min(most, n)


def _mean_variance(values: np.ndarray) -> float:
    return float(np.var(values, ddof=1)) / len(values) if len(values) > 1 else 0.0
