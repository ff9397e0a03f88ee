"""Deterministic boosted trees for the attacks that use them."""

from typing import Any


def parameters(settings: dict[str, Any], seed: int, **objective: object) -> dict[str, object]:
    """Return LightGBM's parameters: one thread, deterministic.

    Args:
        settings: of the attack: ``leaves`` (the maximum in a tree) and ``learning_rate``.
        seed: ≥ 0, of any size.
        **objective: LightGBM's ``objective`` and its parameters.
    """
    return {
        **objective,
        "num_leaves": settings["leaves"],
        "learning_rate": settings["learning_rate"],
        "seed": seed % 2**31,
        "num_threads": 1,
        "deterministic": True,
        "force_row_wise": True,
        "verbose": -1,
    }
