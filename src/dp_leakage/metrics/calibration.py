"""False positive rates pooled over records, and rates of single records.

A threshold that 1 % of all non-members exceed may be exceeded by one record in every model and by another in none. Then
the pooled rate says little about the first record, which is always accused ("rates over pooled records are not
calibrated per record", arXiv 2605.25819). An attacker with reference models can set a threshold for each record
instead, from models trained without it. That needs no members and no other records.
"""

from collections.abc import Mapping

import numpy as np
import pandas as pd
from scipy.special import stdtr

from dp_leakage.metrics.coins import named_at_fpr
from dp_leakage.metrics.intervals import Estimate, Influences, crossed
from dp_leakage.metrics.roc import allowed
from dp_leakage.metrics.rows import row
from dp_leakage.metrics.runs import ALL, by_repeat

FEWEST = 4  # other models without a record that set its threshold; fewer say nothing about it
FEWEST_ACCUSED = 10  # records that must be accused; fewer do not say how often that happens to a record again
FPRS = (0.01, 0.001)


def measure_calibration(frames: Mapping[str, pd.DataFrame]) -> list[dict]:
    """Return rows of the membership attacks on one cell with random inclusion.

    Args:
        frames: attack → scores as for `measure.measure_membership`.

    Returns:
        For each attack and false positive rate, over all repeats: own_tpr and own_fpr, the shares of members and of
        non-members that are named at thresholds of the records' own (`own_rates`); and accused_again (`accused_again`),
        of the one threshold for all. Nothing of too few repeats.
    """
    rows = []
    for attack, frame in frames.items():
        (score,), member = by_repeat(frame, ["score"], ["record"])
        member = np.broadcast_to(member, score.shape)
        rates = own_rates(score, member)
        for fpr in FPRS:
            for metric, chosen in (("own_tpr", member), ("own_fpr", ~member)):
                if not np.isnan(rates[chosen]).all():
                    rows.append(row(metric, ALL, _within(named_by_own(rates, chosen, fpr)), attack=attack, fpr=fpr))
            again = accused_again(score, member, fpr)
            if not np.isnan(again.value):
                rows.append(row("accused_again", ALL, _within(again), attack=attack, fpr=fpr))
    return rows


def _within(found: Influences) -> Estimate:
    return crossed(found, (0.0, 1.0))


def own_rates(score: np.ndarray, member: np.ndarray) -> np.ndarray:
    """Return the false positive rate at which each record is identified by its own threshold: float64 (R, n), NaN for
    too few models.

    Args:
        score: float (R, n), of n records in R models; higher means more likely a member.
        member: bool (R, n), random inclusion.

    A record's scores in models without it are treated as normal. A further one exceeds ``score`` with a probability
    given by Student's t of its distance from their mean, with one degree of freedom less than their number (a normal
    prediction interval: Hahn 1969). The model itself is not among them.
    """
    outside = ~member
    values = np.where(outside, score, 0.0)
    count = outside.sum(axis=0) - outside
    mean = (values.sum(axis=0) - values) / np.maximum(count, 1)
    squares = (values**2).sum(axis=0) - values**2 - count * mean**2
    spread = np.sqrt(np.maximum(squares, 0.0) / np.maximum(count - 1, 1) * (1 + 1 / np.maximum(count, 1)))
    distance = np.divide(score - mean, spread, out=np.zeros(score.shape), where=spread > 0)
    distance = np.where((spread == 0) & (score != mean), np.sign(score - mean) * np.inf, distance)
    return np.where(count >= FEWEST, stdtr(np.maximum(count - 1, 1), -distance), np.nan)


def named_by_own(rates: np.ndarray, chosen: np.ndarray, fpr: float) -> Influences:
    """Return the share of the chosen, bool (R, n), that are flagged at their own false positive rate of at most
    ``fpr``.
    """
    there = chosen & ~np.isnan(rates)
    named = there & (rates <= fpr)
    value = float(named.sum() / there.sum())
    return Influences(value, (np.where(there, named - value, 0.0) * (there.size / there.sum()),))


def accused_again(score: np.ndarray, member: np.ndarray, fpr: float) -> Influences:
    """Return how likely a record that is wrongly accused in one model is wrongly accused in another.

    One threshold for all records lets a share ``fpr`` of the non-members pass. The result is about ``fpr`` if all
    records are accused equally often, and 1 if always the same ones are. It is NaN if at most one accusation is allowed
    in all models together, or if fewer than `FEWEST_ACCUSED` records that are excluded from two models are accused. The
    number rests on the accused records alone.
    """
    named, outside = named_at_fpr(score, member, fpr) & ~member, (~member).sum(axis=0)
    times = named.sum(axis=0)
    both, of = (times * (times - 1)).astype(float), (times * np.maximum(outside - 1, 0)).astype(float)
    accused = int((of > 0).sum())
    if allowed(fpr, int(outside.sum())) < 2 or accused < FEWEST_ACCUSED:
        return Influences(float("nan"), (np.zeros((1, score.shape[1])),))
    value = both.sum() / of.sum()
    return Influences(float(value), (((both - value * of) / of.mean())[None],), judged=accused)
