"""Noise that is correlated over a whole epoch through a few buffers: a buffered linear Toeplitz matrix (BLT).

The noise of an epoch's t steps is C⁻¹z, where C is lower triangular and Toeplitz with the first column c_0 = 1, c_k =
Σ_j ω_j λ_j^{k−1} (Dvijotham, McMahan, Pillutla, Steinke & Thakurta 2024; McMahan, Xu & Zhang 2024). Its inverse runs
with one buffer for each j; three buffers are as good as an unstructured matrix. ω and λ minimize the noise in the
running sums of an epoch (`correlated.buffered`). Each epoch starts anew.

A record is in one step of an epoch, so that it moves C·(sums) by at most ‖c‖ clipping norms. z has ‖c‖ times as much
noise, so k epochs are a Gaussian mechanism with μ = √k/σ, in any order of the batches and however the steps adapt
(Denisov et al. 2022).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from dp_leakage.privacy.mechanism import Mechanism
from dp_leakage.privacy.mechanisms import base
from dp_leakage.privacy.mechanisms.banded import amount_for, epsilon, proven
from dp_leakage.privacy.mechanisms.base import Accountant, Declaration

if TYPE_CHECKING:
    from torch import Generator, Tensor

__all__ = ["ACCOUNTANTS", "MECHANISMS", "Noise", "amount_for", "epsilon", "proven"]

HERE = __name__
MECHANISMS = {
    "blt": Declaration(
        label="DP-FTRL, BLT",
        guarantee="Hides each record: zero_out and replace_one; its places in the batches stay.",
        module=HERE,
        noise="blt",
        schemas={
            "buffers": {
                "type": "integer",
                "minimum": 1,
                "maximum": 8,
                "default": 3,
                "description": "How many buffers of a model's size the noise remembers.",
            }
        },
    )
}
ACCOUNTANTS = {
    "blt_gdp": Accountant(
        "blt", {"shuffle": ("zero_out", "replace_one"), "cyclic": ("zero_out", "replace_one")}, "exact", HERE
    )
}


class Noise(base.Noise):
    """ζ_t = z_t − Σ_j ω_j S_j, where each buffer S_j becomes λ_j S_j + ζ_t."""

    remembered = ("buffers",)

    def __init__(
        self, mechanism: Mechanism, gradient: Tensor, divisor: float, generators: list[Generator], steps: int
    ) -> None:
        from dp_leakage.privacy.correlated import buffered

        super().__init__(mechanism, gradient, divisor, generators, steps)
        omega, decay, column = buffered(mechanism.settings["buffers"], steps)
        self.weights = list(zip(omega.tolist(), decay.tolist(), strict=True))
        self.length = float(np.linalg.norm(column))
        self.buffers = gradient.new_zeros(len(self.weights), *gradient.shape)

    def add(self, step: int) -> None:
        """As in `base.Noise`."""
        if step % self.steps == 0:
            self.buffers.zero_()
        self.add_normals(step, self.deviation * self.length)
        for (omega, _), buffer in zip(self.weights, self.buffers, strict=True):
            self.gradient.sub_(buffer, alpha=omega)
        for (_, decay), buffer in zip(self.weights, self.buffers, strict=True):
            buffer.mul_(decay).add_(self.gradient)
