"""Proven limits of a training as numbers in a table: at listed rates, and interpolated between them.

Rows ``advantage_proven``, ``mu`` and ``tpr_proven`` at ``fpr=…``, with the ``neighbors`` for which they hold.
"""

import numpy as np

FPR_OF_CURVE = tuple(float(f"{fpr:.4g}") for fpr in np.geomspace(1e-6, 1, 61))  # ten a decade
PRIORS = (0.01, 0.1, 0.5)  # shares of members among the records that an attacker asks about


def precision(prior: float, tpr: float, fpr: float) -> float:
    """Return the share of members among the records that an attack accuses; NaN if nobody is accused.

    Args:
        prior: the share of members among all queried records, in (0, 1).
        tpr, fpr: the attack's rates, in [0, 1].
    """
    right, wrong = prior * tpr, (1 - prior) * fpr
    return right / (right + wrong) if right + wrong > 0 else float("nan")


def between(fpr: np.ndarray, rates: np.ndarray, limits: np.ndarray) -> np.ndarray:
    """Interpolate the proven TPR at any FPR from some rates; never below the curve.

    The curve is concave, so between two rates it lies below the extended chords on its left and on its right.

    Args:
        fpr: float64 (n,), in [0, 1].
        rates: float64 (m,), rising, m ≥ 3.
        limits: float64 (m,), the curve there.

    Returns:
        float64 (n,), at most 1.
    """
    slope = np.diff(limits) / np.diff(rates)
    right = np.clip(np.searchsorted(rates, fpr, side="right"), 1, len(rates) - 1)  # rates[right − 1] ≤ fpr
    before = np.where(right >= 2, limits[right - 1] + slope[right - 2] * (fpr - rates[right - 1]), np.inf)
    after = np.where(
        right < len(slope),
        limits[right] - slope[np.minimum(right, len(slope) - 1)] * (rates[right] - fpr),
        limits[right],
    )
    exact = np.isin(fpr, rates)
    found = np.where(exact, limits[np.clip(np.searchsorted(rates, fpr), 0, len(rates) - 1)], np.minimum(before, after))
    return np.minimum(found, 1.0)
