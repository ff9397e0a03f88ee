"""Selection of outstanding records with control of false discoveries.

Every record gets a p-value. Benjamini & Hochberg (1995) select records of which at most 5 % are expected to be false
discoveries. The intervals of the listed records are corrected for the selection (Benjamini & Yekutieli 2005).
"""

import numpy as np
from scipy.special import betaincinv

from dp_leakage.metrics.intervals import CONFIDENCE

FALSE = 1 - CONFIDENCE  # share of false discoveries that is expected at most


def unlike(values: np.ndarray, others: np.ndarray) -> np.ndarray:
    """Return p-values, (m,), of ``values`` against the distribution of ``others``, (n,); large values are suspicious.

    Equal ones count as larger (conformal p-values: Bates, Candès, Lei, Romano & Sesia 2023, who show that `discoveries`
    are right about them, though all share the others).
    """
    ordered = np.sort(others)
    return (1 + len(others) - np.searchsorted(ordered, values, "left")) / (len(others) + 1)


def discoveries(p: np.ndarray) -> np.ndarray:
    """Select from n p-values with an expected share of false discoveries of at most `FALSE`: bool (n,)."""
    ordered = np.sort(p)
    passed = np.flatnonzero(ordered <= FALSE * np.arange(1, len(p) + 1) / max(len(p), 1))
    return p <= ordered[passed[-1]] if len(passed) else np.zeros(len(p), dtype=bool)


def after_selection(hits: np.ndarray, n: np.ndarray, among: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the interval ends of s shares ``hits`` / ``n``, (s,) each, corrected for their selection among that many.

    Each has the confidence 1 − 0.05·s/among (Clopper & Pearson 1934, exact), so that at most 5 % of the listed
    intervals are expected to miss the truth.
    """
    tail = FALSE * len(hits) / among / 2
    low = np.where(hits > 0, betaincinv(np.maximum(hits, 1), n - hits + 1, tail), 0.0)
    high = np.where(hits < n, betaincinv(hits + 1, np.maximum(n - hits, 1), 1 - tail), 1.0)
    return low, high
