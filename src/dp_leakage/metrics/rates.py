"""TPR at a small FPR, with an interval that covers the threshold, and the rule for unmeasurable rates.

Estimand: T = P(a member scores above c), where P(a non-member scores above c) = f exactly. It is the ROC at f.

With random inclusion all runs share one threshold on aligned scores (`coins.aligned`). Fixed members have one threshold
per run. Scores of one record in several runs are one draw, so N non-members are worth fewer independent ones, n_out.
The number of these above c is Binomial(n_out, f). The share of members above c, given that number, is a Beta variable
of n_in independent members. Their mixture is the distribution of T ("melded interval": Fay, Proschan & Brittain 2015,
*Biometrics* 71). It needs neither slope nor density of the ROC, which few non-members cannot show.

Below 299 independent non-members for 1 %, and 2,995 for 0.1 %, no attack has an interval that excludes 0, not even a
perfect one (the rule of three: Hanley & Lippman-Hand 1983). Such a rate is not measured.
"""

from typing import NamedTuple

import numpy as np
from scipy.optimize import brentq
from scipy.special import betainc, ndtr, ndtri

from dp_leakage.metrics.coins import aligned
from dp_leakage.metrics.intervals import CONFIDENCE, UNKNOWN_FRACTION, Estimate, Influences, Z, crossed

TAIL = (1 - CONFIDENCE) / 2
RUNS = 4  # with fewer runs an interval is for these models: they do not show how trainings differ
PASSING = 20  # scores above the threshold at which the dependence between a record's scores is judged
GRID = (np.arange(400) + 0.5) / 400  # probabilities that stand for a distribution
CLOSEST = 0.95  # largest correlation between the errors of members and non-members
ENDS = 1e-7  # to which an interval's ends are found


class Rate(NamedTuple):
    """A TPR at a small FPR.

    Attributes:
        found: its value, and a 95 % interval whose lower end is 0 where the rate is not measured.
        worth: number of independent non-members that measure the FPR as precisely as these.
        measured: whether these are enough (`fewest`).
    """

    found: Estimate
    worth: float
    measured: bool

    @property
    def told(self) -> Estimate:
        """The number to print; NaN in [0, 1] if the rate cannot be measured."""
        return self.found if self.measured else UNKNOWN_FRACTION


def fewest(fpr: float) -> int:
    """Return the number of independent non-members needed for an FPR in (0, 1): 299 for 1 %, 2,995 for 0.1 %."""
    return int(np.ceil(np.log(2 * TAIL) / np.log1p(-fpr)))


def lowest(worth: float) -> float:
    """Return the lowest FPR that so many independent non-members can measure, the inverse of `fewest`."""
    return float(-np.expm1(np.log(2 * TAIL) / max(worth, 1.0)))


def tpr_at(score: np.ndarray, member: np.ndarray, fpr: float, owner: np.ndarray | None = None) -> Rate:
    """Return the TPR at an FPR of exactly ``fpr``, with its 95 % interval.

    The value lies between two ranks of non-members, so that a further non-member is named at this rate. Tied scores
    are flagged at random, as many as the rate allows. With fewer than four runs the interval is for these models.

    Args:
        score: float (R, n), of n records in R runs; higher means member.
        member: bool (R, n) by coins, or (n,) if all runs have the same members.
        fpr: in (0, 1).
        owner: int64 (n,) from 0 on: the owner of each record, if only owners are independent.
    """
    by_coins = member.ndim == 2
    score = aligned(score) if by_coins else score
    inside, outside = (
        np.sort(score[chosen][None] if by_coins else score[:, chosen], axis=1) for chosen in (member, ~member)
    )
    shares, others = _shares_above(inside, outside), outside.shape[1]
    out, within = _influences(score, member, _cuts(inside, outside, fpr), owner)
    n_out, n_in = min(_worth(out), outside.size), min(_worth(within, over_runs=True), inside.size)
    ranks = np.clip(np.rint(_ranks(n_out, fpr) * others / n_out), 0, others + 1).astype(int)
    low, high = _melded(shares[ranks], n_in, _correlation(out, within) if by_coins else 0.0)
    value = float(np.interp(fpr * (others + 1), np.arange(others + 2), shares))
    measured = n_out >= fewest(fpr)
    return Rate(Estimate(value, min(low, value) if measured else 0.0, max(high, value)), n_out, measured)


def _shares_above(inside: np.ndarray, outside: np.ndarray) -> np.ndarray:
    """Return the share of members above the k-th largest of N non-members, float64 (N + 2,), the mean over the sets.

    It is 0 at k = 0 and 1 at k = N + 1. Where scores are tied, it is the mean over all orders of them.

    Args:
        inside, outside: scores of members (sets, m) and non-members (sets, N), ascending.
    """
    found = []
    for members, others in zip(inside, outside, strict=True):
        above = len(members) - np.searchsorted(members, others, "right")
        tied = len(members) - np.searchsorted(members, others, "left") - above
        first, last = np.searchsorted(others, others, "left"), np.searchsorted(others, others, "right")
        place = (last - np.arange(len(others))) / (last - first + 1)
        found.append((above + tied * place) / len(members))
    return np.concatenate([[0.0], np.mean(found, axis=0)[::-1], [1.0]])


def _cuts(inside: np.ndarray, outside: np.ndarray, fpr: float) -> tuple[np.ndarray, np.ndarray]:
    """Return the thresholds, (sets, 1) each, at which the dependence of non-members and of members is judged.

    About 20 non-members pass the first, if fewer pass at ``fpr``; about 20 members pass the second, if fewer do.
    """
    members, others = inside.shape[1], outside.shape[1]
    passing = int(fpr * others)
    loose = min(max(passing, min(PASSING, others // 10)), others // 2)
    strict = max(members - min(PASSING, members // 10) - 1, 0)
    at_rate = outside[:, others - 1 - min(passing, others - 1)]
    return outside[:, others - 1 - loose, None], np.minimum(at_rate, inside[:, strict])[:, None]


def _influences(
    score: np.ndarray, member: np.ndarray, cuts: tuple[np.ndarray, np.ndarray], owner: np.ndarray | None
) -> list[Influences]:
    """Return the shares of non-members and of members above their thresholds, with the records' influences on them."""
    found = []
    for chosen, cut in zip((~member, member), cuts, strict=True):
        chosen, above = np.broadcast_to(chosen, score.shape), ((score > cut) * 1.0 + (score >= cut)) / 2
        share = float(above[chosen].mean())
        moved = Influences(share, (np.where(chosen, above - share, 0.0) / chosen.mean(),))
        found.append(moved if owner is None else moved.of(owner))
    return found


def _worth(share: Influences, over_runs: bool = False) -> float:
    """Return the number of independent scores that would determine a share equally precisely; all scores of a record
    are one draw.

    ``over_runs``: from four runs on, the variance between trainings is included.
    """
    (block,) = share.blocks
    means = block.mean(axis=0)
    variance = float(np.var(means, ddof=1)) / len(means) if len(means) > 1 else 0.0
    if over_runs and len(block) >= RUNS:
        found = crossed(share)
        variance = max(variance, ((found.high - found.low) / 2 / Z) ** 2)
    return float(share.value * (1 - share.value) / variance) if variance > 0 else float("inf")


def _correlation(out: Influences, within: Influences) -> float:
    """Return the correlation over records of two shares' influences; 0 for one run, since no record is in both."""
    (one,), (other,) = out.blocks, within.blocks
    a, b = one.mean(axis=0), other.mean(axis=0)
    if len(one) == 1 or not (a.std() > 0 and b.std() > 0):
        return 0.0
    return float(np.clip(np.corrcoef(a, b)[0, 1], -CLOSEST, CLOSEST))


def _ranks(n_out: float, fpr: float) -> np.ndarray:
    """Return the ranks (2, 400) among n_out independent non-members between which the true threshold lies.

    K ~ Binomial(n_out, fpr) of them are above it: columns are quantiles of K, rows the ranks K and K + 1.
    """
    n = max(n_out, 1.0)  # need not be whole
    far = 9 * np.sqrt(n * fpr * (1 - fpr)) + 20  # from the mean, beyond all quantiles of the grid
    k = np.arange(max(np.floor(n * fpr - far), 0.0), min(np.ceil(n * fpr + far), np.floor(n)) + 1)
    at_most = np.where(k < n, betainc(np.maximum(n - k, 1e-300), k + 1, 1 - fpr), 1.0)
    above = k[0] + np.searchsorted(at_most, GRID)
    return np.stack([above, above + 1])


def _melded(shares: np.ndarray, n_in: float, together: float) -> tuple[float, float]:
    """Return the 2.5 and 97.5 % quantiles of a mixture of Beta variables, one for each share of members above.

    Args:
        shares: (2, 400), in [0, 1], over the ranks of `_ranks`.
        n_in: number of independent members behind these shares.
        together: correlation over records of the errors of both sides, in (−1, 1).
    """
    each, place = np.unique(shares, return_inverse=True)
    place, z = place.reshape(shares.shape), ndtri(GRID)

    def beyond(tpr: float, p: float) -> float:
        tail = betainc(each * n_in + 0.5, (1 - each) * n_in + 0.5, tpr)[place]
        if together:
            tail = ndtr((ndtri(tail.clip(1e-12, 1 - 1e-12)) + together * z) / np.sqrt(1 - together**2))
        return float(tail.mean()) - p

    low, high = (brentq(beyond, 0.0, 1.0, (p,), xtol=ENDS) for p in (TAIL, 1 - TAIL))
    return float(low), float(high)
