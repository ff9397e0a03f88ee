"""Conversion of bounds: from audits of replace-one pairs to add/remove or zero-out ε."""

from collections.abc import Callable
from math import exp

STEPS = 40  # halvings: ε to 1e-11 of the replace-one bound


def presence_bound(bound_at: Callable[[float], float], delta: float) -> float:
    """Return the largest ε of add/remove, or of zero-out neighbors, at ``delta`` that the audit refutes.

    Exchanging a record means removing one and adding one, so (ε, δ) for presence implies (2ε, (1 + e^ε)δ) for an
    exchange. If the audit's bound at that δ is above 2ε, neither can hold.

    Args:
        bound_at: δ → the audit's lower bound on the replace-one ε, falling in δ.
        delta: δ of the claim, in [0, 1).
    """
    low, high = 0.0, bound_at(delta) / 2
    for _ in range(STEPS):
        middle = (low + high) / 2
        if bound_at(min((1 + exp(middle)) * delta, 1 - 1e-9)) > 2 * middle:
            low = middle
        else:
            high = middle
    return low
