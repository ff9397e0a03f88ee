"""Advantage of an attack at each threshold of a fixed list, for a test that its leakage is below a limit.

An attack's leakage is at most A if it is at every threshold. With a list fixed beforehand each threshold is a separate
condition, and none is chosen. A threshold chosen on other records (`reached`) costs 0.002 to 0.009 of the advantage.
That is negligible for an interval, but makes a test at its full level accept a leak.

A threshold holds for the aligned scores of all repeats (`coins.aligned`). A threshold at a fixed share of each repeat's
scores would miss members in repeats with more members above it than this share, e.g. if few records leak fully.
"""

from dataclasses import astuple
from typing import Any

import numpy as np
import pandas as pd

from dp_leakage.metrics.coins import aligned
from dp_leakage.metrics.contrast import Contrast
from dp_leakage.metrics.intervals import FEWEST_REPEATS, Estimate
from dp_leakage.metrics.rows import row
from dp_leakage.metrics.runs import ALL

# Of all repeats' scores, the largest that are named. Where few records leak fully, the best share is half of the
# advantage, and the next larger one of a coarser list would miss a twentieth of it.
SHARES = (0.005, 0.01, 0.02, 0.03, 0.04, 0.05, 0.06, 0.08, 0.1, 0.15, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95)
METRIC = "threshold_advantage"
PARTS = ("var_repeats", "var_records", "var_cells", "runs", "records")  # columns of the fields of `Contrast`
TWO_SIDED = 0.025


def measure_thresholds(score: np.ndarray, member: np.ndarray, attack: str) -> list[dict]:
    """Return a row threshold_advantage for each of `SHARES`, with the parts of its variance (`Contrast`).

    Args:
        score: float (R, n), higher for members.
        member: bool, (n,) if all repeats share their members, otherwise (R, n).
        attack: its name.
    """
    values = aligned(score)
    rank = np.searchsorted(np.sort(values, axis=None), values, "right") / values.size
    found = [advantage_of(rank > 1 - share + 1e-9, member) for share in SHARES]
    return [row_of(one, share, attack) for one, share in zip(found, SHARES, strict=True)]


def row_of(found: Contrast, share: float, attack: str) -> dict:
    """Return the row of the advantage at one threshold."""
    reach = found.reach(TWO_SIDED)
    return row(
        METRIC,
        ALL,
        Estimate(found.value, found.value - reach, found.value + reach),
        attack=attack,
        threshold=share,
        **dict(zip(PARTS, astuple(found)[1 : 1 + len(PARTS)], strict=True)),
    )


def of_row(row: "pd.Series[Any]") -> Contrast:
    """Return the advantage at one threshold from its row."""
    return Contrast(*(float(row[column]) for column in ("value", *PARTS)))


def advantage_of(named: np.ndarray, member: np.ndarray) -> Contrast:
    """Return TPR − FPR over the repeats, from the flags of each, bool (R, n).

    With random inclusion, each record's own effect is removed as far as it is known: generalized least squares of the
    flags on membership with a random effect of the record. The expectation is the same and the variance smaller. It
    needs `FEWEST_REPEATS` repeats, like a variance between repeats.
    """
    y, m = named.astype(float), np.broadcast_to(member, named.shape).astype(float)
    repeats, n = y.shape
    share = m.mean(axis=1, keepdims=True)
    if member.ndim == 1 or repeats < FEWEST_REPEATS:
        tpr = (y * m).mean(axis=1, keepdims=True) / share
        fpr = (y * (1 - m)).mean(axis=1, keepdims=True) / (1 - share)
        value = float((tpr - fpr).mean())
        influences = np.where(m > 0, (y - tpr) / share, (fpr - y) / (1 - share)) + (tpr - fpr - value)
        return Contrast.measured(value, influences)
    y, m = y - y.mean(axis=1, keepdims=True), m - share
    rest = y - (m * y).sum() / (m * m).sum() * m
    alone = float(((rest - rest.mean(axis=0)) ** 2).sum()) / ((repeats - 1) * (n - 1))
    shared = max(float(rest.mean(axis=0).var(ddof=1)) - alone / repeats, 0.0)
    theta = 1 - np.sqrt(alone / (alone + repeats * shared)) if alone > 0 else 0.0
    y, m = y - theta * y.mean(axis=0), m - theta * m.mean(axis=0)
    value = float((m * y).sum() / (m * m).sum())
    return Contrast.measured(value, m * (y - value * m) * (repeats * n / (m * m).sum()))
