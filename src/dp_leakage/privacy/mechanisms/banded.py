"""Gaussian noise that is correlated over steps: later steps cancel part of a step's noise (DP-FTRL).

The noise of step t is ζ_t = (B⁻¹z)_t with independent z_t ~ N(0, σ²C²I), where B is lower triangular, Toeplitz and
banded, with a first column of length one. This column comes from the square root of the running sums' matrix
(`correlated.root`), or has the least noise in running sums over the given number of steps (`correlated.optimal`).

If batches come in a fixed order (sampler ``cyclic``), a record takes part in the same step of each epoch. If the bands
are at most the steps in an epoch, the columns of B for these steps share no row, and each has length at most one. So
over k epochs a record moves B·(sums) by at most √k clipping norms, for adaptive steps too (Denisov et al. 2022), and z
makes it a Gaussian mechanism with μ = √k/σ, exactly that of ``gdp``.

With b bands, sampler ``cyclic_poisson`` assigns each record to one of b subsets of the data, and step i samples from
subset i mod b only, with b times the sampling probability (Choquette-Choo et al. 2023, arXiv 2306.08153, algorithm 2).
So the steps that a record may be in are b apart, and their columns again share no row. The b rows of one column are a
Gaussian mechanism of sensitivity one that includes the record at random: a Poisson-sampled one. Other records'
gradients, which depend on earlier rows, only shift its mean by a known amount. Together the ⌈T/b⌉ mechanisms bound the
training (their theorem 4), for an observer who knows the subsets. One band is DP-SGD itself.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from dp_leakage.common.errors import UserError
from dp_leakage.common.schemas import COUNT
from dp_leakage.privacy.mechanism import CYCLIC_POISSON, Mechanism
from dp_leakage.privacy.mechanisms import base
from dp_leakage.privacy.mechanisms.base import Accountant, Declaration, Neighbors

if TYPE_CHECKING:
    from torch import Generator, Tensor

    from dp_leakage.privacy.accounting.case import Case
    from dp_leakage.privacy.accounting.tradeoff import TradeOff
    from dp_leakage.privacy.training import Training

HERE = __name__
BANDS = {**COUNT, "description": "Over how many steps noise is correlated; 1 is independent noise."}
GUARANTEE = (
    "Hides each record: zero_out and replace_one in a fixed order of batches, where its places stay, add_remove and "
    "replace_one under cyclic Poisson batches."
)
MECHANISMS = {
    "banded": Declaration(
        label="DP-FTRL, banded",
        guarantee=GUARANTEE,
        module=HERE,
        noise="banded",
        schemas={"bands": BANDS},
    ),
    "banded_optimal": Declaration(
        label="DP-FTRL, banded, optimal",
        guarantee=GUARANTEE,
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
ACCOUNTANTS = {
    "banded_gdp": Accountant("banded", {"cyclic": ("zero_out", "replace_one")}, "exact", HERE),
    "banded_pld": Accountant("banded", {CYCLIC_POISSON: ("add_remove", "replace_one")}, "bound", HERE, by_losses=True),
}


class Noise(base.Noise):
    """ζ_t = (z_t − Σ_{j=1}^{b−1} c_j ζ_{t−j})/c_0; it remembers the last b − 1 draws of each model."""

    remembered = ("past",)

    def __init__(
        self, mechanism: Mechanism, gradient: Tensor, divisor: float, generators: list[Generator], steps: int
    ) -> None:
        super().__init__(mechanism, gradient, divisor, generators, steps)
        check(mechanism.settings, steps)
        bands = mechanism.settings["bands"]
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


def check(settings: Mapping[str, Any], steps: int) -> None:
    """As in `base`."""
    bands, horizon = settings["bands"], settings.get("horizon")
    if not 1 <= bands <= steps:
        raise UserError(
            f"bands is {bands}, but an epoch has {steps} steps; expected 1 to {steps}, so that no record takes "
            "part twice within the bands"
        )
    if horizon is not None and horizon < bands:
        raise UserError(f"horizon is {horizon}, but bands is {bands}; expected {bands} or more")


def _coefficients(bands: int, horizon: int | None) -> list[float]:
    """Return c_0 … c_{b−1}, the first column of B, of length one."""
    from dp_leakage.privacy import correlated

    if horizon is None:
        return correlated.root(bands).tolist()
    return correlated.optimal(bands, horizon).tolist()


def epsilon(sigma: float, case: Case) -> float:
    """Return ε of ``case.uses`` uses of each record: a Gaussian mechanism with μ = √k/σ, or 2√k/σ for replace_one;
    under ``cyclic_poisson``, that many Poisson-sampled ones.
    """
    from dp_leakage.privacy.accounting import library

    if case.sampler == CYCLIC_POISSON:
        return library.pld_epsilon(case.rate, sigma, case.delta, case.uses, case.relation)
    return library.gaussian_epsilon(sigma / case.apart, case.delta, case.uses)


def amount_for(epsilon: float, case: Case) -> float | None:
    """Return σ for a budget, or None without a formula."""
    from dp_leakage.privacy.accounting import library

    if case.sampler == CYCLIC_POISSON:
        return None
    return case.apart * library.gaussian_sigma(epsilon, case.delta, case.uses)


def proven(training: Training, neighbors: Neighbors) -> TradeOff | None:
    """Return the trade-off curve between neighboring sets of records, exact in a fixed order; None there for
    add_remove, which shifts all later records.
    """
    from dp_leakage.privacy.accounting import tradeoff
    from dp_leakage.privacy.accounting.curve import poisson

    replaced = neighbors == "replace_one"
    relative = training.mechanism.sigma / (2.0 if replaced else 1.0)
    if training.mechanism.sampler == CYCLIC_POISSON:
        return poisson(training, relative, replaced, 0.0)
    if neighbors == "add_remove":
        return None
    return tradeoff.gaussian(math.sqrt(training.epochs) / relative)
