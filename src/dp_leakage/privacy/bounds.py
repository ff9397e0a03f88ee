"""Limits of (ε, δ)-DP on an attacker: the lines that figures draw above measured leakage.

They hold for the neighbors of the attack game. A game of a member against a non-member at a fixed size has replace_one
neighbors, whose ε is up to twice that of add_remove.
"""

import numpy as np
from numpy.typing import ArrayLike


def advantage_bound(epsilon: ArrayLike, delta: ArrayLike = 0.0) -> np.ndarray:
    """Return the largest TPR − FPR under (ε, δ)-DP: (e^ε − 1 + 2δ)/(e^ε + 1), at most 1; tanh(ε/2) at δ = 0.

    From t ≤ e^ε f + δ and 1 − f ≤ e^ε (1 − t) + δ (Humphries et al. 2023, theorem 3.1, for the balanced game).

    Args:
        epsilon: ε ≥ 0, any shape; may be infinite.
        delta: δ in [0, 1], broadcastable.

    Returns:
        float64, in [0, 1].
    """
    half = np.tanh(np.asarray(epsilon, dtype=float) / 2)
    return np.minimum(half + np.asarray(delta, dtype=float) * (1 - half), 1.0)


def printed_advantage_bound(epsilon: ArrayLike) -> np.ndarray:
    """e^ε − 1 as jayaraman2019 draws it (after Yeom et al. 2018): true of ε-DP, vacuous from ε = ln 2 on."""
    with np.errstate(over="ignore"):
        return np.expm1(np.asarray(epsilon, dtype=float))
