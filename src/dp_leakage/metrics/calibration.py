"""Rates over all records together, and rates of single records, which they are not.

A threshold that 1 % of all non-members pass may be passed by one record in every model and by another in none: then the
first is accused wherever it asks, and the rate says little to it ("rates over pooled records are not calibrated per
record", arXiv 2605.25819). An attacker with reference models can set a threshold for each record instead, by what
models say that were trained without it. That needs no member, and no other record.
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
    """Rows of the membership attacks on one cell, whose members are by coins.

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
    """At which false positive rate of its own a record is named: float64 (R, n), NaN where too few models say it.

    Args:
        score: float (R, n), of n records in R models, the higher, the more likely a member.
        member: bool (R, n), by coins.

    A record's scores in models without it count as normal. A further one exceeds ``score`` with the probability that
    Student's t, with one degree of freedom less than there are others, gives its distance from their mean (a normal
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
    """The share of the chosen, bool (R, n), that are named at a false positive rate of their own of at most ``fpr``."""
    there = chosen & ~np.isnan(rates)
    named = there & (rates <= fpr)
    value = float(named.sum() / there.sum())
    return Influences(value, (np.where(there, named - value, 0.0) * (there.size / there.sum()),))


def accused_again(score: np.ndarray, member: np.ndarray, fpr: float) -> Influences:
    """How likely a record that is wrongly named in one model is wrongly named in another one.

    At one threshold for all, which a share ``fpr`` of the non-members passes. It is about ``fpr`` if all records are
    accused alike, and 1 if always the same ones are. NaN if at most one accusation may be made in all models together,
    so that nobody can be accused again, or if fewer than `FEWEST_ACCUSED` records that are out of two models are. The
    number rests on the accused alone.
    """
    named, outside = named_at_fpr(score, member, fpr) & ~member, (~member).sum(axis=0)
    times = named.sum(axis=0)
    both, of = (times * (times - 1)).astype(float), (times * np.maximum(outside - 1, 0)).astype(float)
    accused = int((of > 0).sum())
    if allowed(fpr, int(outside.sum())) < 2 or accused < FEWEST_ACCUSED:
        return Influences(float("nan"), (np.zeros((1, score.shape[1])),))
    value = both.sum() / of.sum()
    return Influences(float(value), (((both - value * of) / of.mean())[None],), judged=accused)
