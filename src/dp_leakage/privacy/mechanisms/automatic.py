"""DP-SGD without a clipping norm to tune: every gradient is divided by its own length (AUTO-S, Bu et al. 2023).

A gradient g becomes C·g/(‖g‖ + γ), shorter than C whatever g is. So the sum moves by less than C with a record's
presence, as under clipping, and the accountants of Gaussian noise hold. C only scales the learning rate. γ keeps short
gradients short, without which the method need not converge; the paper finds one value good for all of its tasks.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from dp_leakage.privacy.mechanisms import gaussian
from dp_leakage.privacy.mechanisms.base import Accountant, Declaration

if TYPE_CHECKING:
    from torch import Tensor

STABILITY = 0.01  # γ

MECHANISMS = {
    "automatic": Declaration(
        label="DP-SGD, automatic clipping",
        guarantee="Hides each record: add_remove and replace_one under Poisson batches, zero_out and replace_one where "
        "each record comes once an epoch.",
        module=gaussian.HERE,
        noise="gaussian",
        bound="automatic",
        refused=frozenset({"bound"}),
    )
}
ACCOUNTANTS: dict[str, Accountant] = {}


def bound(norm: Tensor, clip_norm: float) -> Tensor:
    """C/(‖g‖ + γ)."""
    return clip_norm / (norm + STABILITY)
