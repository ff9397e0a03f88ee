"""Which of many records stand out, where looking for the largest of many would find somebody in any data.

Every record gets a p-value, of all of which Benjamini & Hochberg (1995) keep those among which at most 5 % are expected
to be false. The intervals of the records that are listed pay for having been selected (Benjamini & Yekutieli 2005).
"""

import numpy as np
from scipy.special import betaincinv

from dp_leakage.metrics.intervals import CONFIDENCE

FALSE = 1 - CONFIDENCE  # share of false discoveries that is expected at most


def unlike(values: np.ndarray, others: np.ndarray) -> np.ndarray:
    """P-values, (m,), of ``values`` that could be one of the ``others``, (n,), of which large ones are suspicious.

    Equal ones count as larger (conformal p-values: Bates, Candès, Lei, Romano & Sesia 2023, who show that
    `discoveries` are right about them, though all share the others).
    """
    ordered = np.sort(others)
    return (1 + len(others) - np.searchsorted(ordered, values, "left")) / (len(others) + 1)


def discoveries(p: np.ndarray) -> np.ndarray:
    """Bool (n,): those of n p-values among which at most a share `FALSE` is expected to be false."""
    ordered = np.sort(p)
    passed = np.flatnonzero(ordered <= FALSE * np.arange(1, len(p) + 1) / max(len(p), 1))
    return p <= ordered[passed[-1]] if len(passed) else np.zeros(len(p), dtype=bool)


def after_selection(hits: np.ndarray, n: np.ndarray, among: int) -> tuple[np.ndarray, np.ndarray]:
    """Ends of the intervals of shares ``hits`` / ``n``, (s,) each, for s that were selected among so many.

    Each has the confidence 1 − 0.05·s/among (Clopper & Pearson 1934, exact), so that at most 5 % of those that are
    shown are expected to miss their truth.
    """
    tail = FALSE * len(hits) / among / 2
    low = np.where(hits > 0, betaincinv(np.maximum(hits, 1), n - hits + 1, tail), 0.0)
    high = np.where(hits < n, betaincinv(hits + 1, np.maximum(n - hits, 1), 1 - tail), 1.0)
    return low, high
