"""Gaussian noise that is correlated over steps: later steps take away part of what a step adds (DP-FTRL).

The noise of step t is ζ_t = (B⁻¹z)_t with independent z_t ~ N(0, σ²C²I), where B is lower triangular, Toeplitz and
banded, its first column of length one: that of the square root of the running sums' matrix (`correlated.root`), or the
one that leaves the least noise in the running sums of so many steps (`correlated.optimal`).

Batches come in a fixed order (sampler ``cyclic``), so a record takes part in the same step of each epoch. If there are
at most as many bands as steps in an epoch, the columns of B for these steps share no row, and each has length at most
one. So over k epochs a record moves B·(sums) by at most √k clipping norms, however the steps adapt (Denisov et al.
2022), and z makes it a Gaussian mechanism with μ = √k/σ, exactly that of ``gdp``.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from dp_leakage.common.errors import UserError
from dp_leakage.common.schemas import COUNT
from dp_leakage.privacy.mechanism import Mechanism
from dp_leakage.privacy.mechanisms import base
from dp_leakage.privacy.mechanisms.base import Accountant, Declaration, Neighbours

if TYPE_CHECKING:
    from torch import Generator, Tensor

    from dp_leakage.privacy.accounting.case import Case
    from dp_leakage.privacy.accounting.curve import Training
    from dp_leakage.privacy.accounting.tradeoff import TradeOff

HERE = __name__
BANDS = {**COUNT, "description": "Over how many steps noise is correlated; 1 is independent noise."}
MECHANISMS = {
    "banded": Declaration(
        label="DP-FTRL, banded",
        guarantee="Hides each record: zero_out and replace_one; its places in the fixed order of batches stay.",
        module=HERE,
        noise="banded",
        schemas={"bands": BANDS},
    ),
    "banded_optimal": Declaration(
        label="DP-FTRL, banded, optimal",
        guarantee="Hides each record: zero_out and replace_one; its places in the fixed order of batches stay.",
        module=HERE,
        noise="banded",
        schemas={
            "bands": BANDS,
            "horizon": {
                **COUNT,
                "description": "Steps whose running sums hold the least noise.",
            },
        },
    ),
}
ACCOUNTANTS = {"banded_gdp": Accountant("banded", {"cyclic": ("zero_out", "replace_one")}, "exact", HERE)}


class Noise(base.Noise):
    """ζ_t = (z_t − Σ_{j=1}^{b−1} c_j ζ_{t−j})/c_0; it remembers the last b − 1 draws of each model."""

    def __init__(
        self, mechanism: Mechanism, gradient: Tensor, divisor: float, generators: list[Generator], steps: int
    ) -> None:
        super().__init__(mechanism, gradient, divisor, generators, steps)
        bands = mechanism.settings["bands"]
        if not 1 <= bands <= steps:
            raise UserError(
                f"bands is {bands}, but an epoch has {steps} steps; valid is 1 to {steps}, so that no record takes "
                "part twice within the bands"
            )
        self.independent = self.coefficients = _coefficients(bands, mechanism.settings.get("horizon"))
        self.past = gradient.new_zeros(bands - 1, *gradient.shape)

    def add(self, step: int) -> None:
        """As in `base.Noise`."""
        first, *later = self.coefficients
        self.add_normals(step, self.deviation)
        for back, coefficient in enumerate(later, 1):
            if back <= step:
                self.gradient.sub_(self.past[(step - back) % len(self.past)], alpha=coefficient)
        self.gradient.div_(first)
        if len(self.past):
            self.past[step % len(self.past)].copy_(self.gradient)

    def tensors(self) -> dict[str, Tensor]:
        """As in `base.Noise`."""
        return super().tensors() | {"past": self.past}

    def restore(self, tensors: dict[str, Tensor]) -> None:
        """As in `base.Noise`."""
        super().restore(tensors)
        self.past.copy_(tensors["past"])


def _coefficients(bands: int, horizon: int | None) -> list[float]:
    """c_0 … c_{b−1}, the first column of B, of length one."""
    from dp_leakage.privacy import correlated

    if horizon is None:
        return correlated.root(bands).tolist()
    if horizon < bands:
        raise UserError(f"horizon is {horizon}, but bands is {bands}; valid is {bands} or more")
    return correlated.optimal(bands, horizon).tolist()


def epsilon(sigma: float, case: Case) -> float:
    """ε of k = ``case.epochs`` uses of each record: that of a Gaussian mechanism with μ = √k/σ, or 2√k/σ for
    replace_one.
    """
    from dp_leakage.privacy.accounting import library

    return library.gaussian_epsilon(sigma / case.apart, case.delta, case.epochs)


def amount_for(epsilon: float, case: Case) -> float:
    """σ for a budget."""
    from dp_leakage.privacy.accounting import library

    return case.apart * library.gaussian_sigma(epsilon, case.delta, case.epochs)


def proven(training: Training, neighbours: Neighbours) -> TradeOff | None:
    """The exact trade-off curve between neighbouring sets of records; None for add_remove, which moves the others."""
    from dp_leakage.privacy.accounting import tradeoff

    if neighbours == "add_remove":
        return None
    apart = 2.0 if neighbours == "replace_one" else 1.0
    return tradeoff.gaussian(apart * math.sqrt(training.epochs) / training.mechanism.sigma)
