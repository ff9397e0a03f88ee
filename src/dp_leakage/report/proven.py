"""What the mathematics proves of a cell, whatever the attack."""

import numpy as np

from dp_leakage.figures.numbers import fraction
from dp_leakage.privacy.bounds import advantage_bound

SAYS_LITTLE = 0.9  # a bound on the advantage from here on rules out next to nothing


def guaranteed(epsilon: float, neighbours: object, epsilon_replaced: float, delta: float) -> float:
    """The largest advantage that differential privacy allows in the game of a member against a non-member.

    The game replaces one record. Where neighbours differ by a record's presence that is two steps: 2ε and (1 + e^ε)δ.

    Args:
        epsilon, neighbours: the ε spent, and for which neighbours.
        epsilon_replaced: the ε spent for replace_one neighbours; NaN if not known.
        delta: δ of both.

    Returns:
        The smaller of the two bounds; NaN if no ε is known.
    """
    with np.errstate(over="ignore"):
        twice = advantage_bound(2 * epsilon, min((1 + np.exp(epsilon)) * delta, 1.0))
    once = advantage_bound(epsilon_replaced, delta)
    return float(once if neighbours == "replace_one" else np.fmin(once, twice))


def proven_words(most: float) -> str:
    """The sentence on what is proven of a cell.

    Args:
        most: the largest advantage that any attack can reach, as proven; NaN if nothing is.
    """
    if not np.isfinite(most):
        return "Nothing is proven there of attacks that were not tried."
    words = f"Proven is that no attack at all reaches an advantage above {fraction(np.ceil(1000 * most) / 1000)}"
    return f"{words}, which rules out next to nothing." if most >= SAYS_LITTLE else f"{words}."
