"""Tree aggregation: running sums from noisy partial sums over 1, 2, 4, … steps, restarted every epoch (DP-FTRL).

The oldest correlated noise (Dwork, Naor, Pitassi & Rothblum 2010; Chan, Shi & Song 2011; in training Kairouz et al.
2021). Step s of an epoch, counted from 1, releases the sum of the last 2^z gradients, where 2^z is the largest power of
two that divides s. The running sum at s adds the partial sums named by the binary digits of s, at most log₂ s + 1.

A gradient is part of at most ⌊log₂ t⌋ + 1 of an epoch's t partial sums, and the first one is part of that many. So a
record, which is in one step of an epoch, moves them by at most the root of that number of clipping norms. With so much
more noise in each, k epochs are a Gaussian mechanism with μ = √k/σ, in any order of the batches and however the steps
adapt (Denisov et al. 2022).
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from dp_leakage.privacy.mechanism import Mechanism
from dp_leakage.privacy.mechanisms import base
from dp_leakage.privacy.mechanisms.banded import amount_for, epsilon, proven
from dp_leakage.privacy.mechanisms.base import Accountant, Declaration

if TYPE_CHECKING:
    from torch import Generator, Tensor

__all__ = ["ACCOUNTANTS", "MECHANISMS", "Noise", "amount_for", "epsilon", "proven"]

HERE = __name__
MECHANISMS = {
    "tree": Declaration(
        label="DP-FTRL, tree",
        guarantee="Hides each record: zero_out and replace_one; its places in the batches stay.",
        module=HERE,
        noise="tree",
    )
}
ACCOUNTANTS = {
    "tree_gdp": Accountant(
        "tree", {"shuffle": ("zero_out", "replace_one"), "cyclic": ("zero_out", "replace_one")}, "exact", HERE
    )
}


class Noise(base.Noise):
    """Contribution of a step's partial sum to the running sum's noise, minus the noise that it replaces."""

    remembered = ("nodes",)

    def __init__(
        self, mechanism: Mechanism, gradient: Tensor, divisor: float, generators: list[Generator], steps: int
    ) -> None:
        super().__init__(mechanism, gradient, divisor, generators, steps)
        self.nodes = gradient.new_zeros(steps.bit_length(), *gradient.shape)  # the running sum's noise, by 2^level

    def add(self, step: int) -> None:
        """As in `base.Noise`."""
        place = step % self.steps + 1
        level = (place & -place).bit_length() - 1
        if place == 1:
            self.nodes.zero_()
        self.add_normals(step, self.deviation * math.sqrt(len(self.nodes)))
        replaced = self.nodes[:level].sum(0)
        self.nodes[:level].zero_()
        self.nodes[level].copy_(self.gradient)
        self.gradient.sub_(replaced)
