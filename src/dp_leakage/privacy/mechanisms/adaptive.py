"""DP-SGD whose clipping norm follows a quantile of the gradients' lengths, found privately (Andrew et al. 2021).

Step t clips at C_t and also releases how many of the batch's gradients are no longer than C_t, each counted as +½ or
−½, with noise σ_b. Then C_{t+1} = C_t·exp(−η(b − γ)), where b is the released share and γ the quantile asked for.

Formal guarantee: a step is one Gaussian mechanism with noise multiplier z, set by the study or by an accountant. A
record's presence moves (sum/C_t, count) by at most (1, ½), which the noise (σ, σ_b) hides as z does if 1/σ² + 1/(2σ_b)²
= 1/z² (their theorem 1). Replacing a record moves both twice as far. ``share`` of 1/z² goes to the count. All norms
after the first are functions of what was released, so the accountants of Gaussian noise hold.
"""

from __future__ import annotations

from math import sqrt
from typing import TYPE_CHECKING

from dp_leakage.privacy.mechanisms import gaussian
from dp_leakage.privacy.mechanisms.base import Accountant, Declaration

if TYPE_CHECKING:
    from torch import Generator, Tensor

    from dp_leakage.privacy.mechanism import Mechanism

SMALLEST, LARGEST = 1e-9, 1e9  # of C_t, so that no noise drives it out of float32

MECHANISMS = {
    "adaptive": Declaration(
        label="DP-SGD, adaptive clipping",
        guarantee="Hides each record: add_remove and replace_one under Poisson batches, zero_out and replace_one where "
        "each record comes once an epoch.",
        module=gaussian.HERE,
        noise="gaussian",
        schemas={
            "quantile": {
                "type": "number",
                "exclusiveMinimum": 0,
                "exclusiveMaximum": 1,
                "default": 0.5,
                "description": "The share of gradients that the clipping norm is to leave as they are.",
            },
            "rate": {
                "type": "number",
                "exclusiveMinimum": 0,
                "maximum": 10,
                "default": 0.2,
                "description": "Step size of the norm's logarithm.",
            },
            "share": {
                "type": "number",
                "exclusiveMinimum": 0,
                "maximum": 0.5,
                "default": 0.001,
                "description": "Share of each step's budget for finding the norm.",
            },
        },
        step={"unit": "example"},
        bound="adaptive",
        refused=frozenset({"bound"}),
    )
}
ACCOUNTANTS: dict[str, Accountant] = {}


def bound(norm: Tensor, clip_norm: float) -> Tensor:
    """Return min(1, C/‖g‖) with the initial C."""
    return (clip_norm / norm.clamp(min=clip_norm)).clamp(max=1.0)


class Noise(gaussian.Noise):
    """Noise and clipping with a separate norm for each model, which changes after every step."""

    bounds = True
    remembered = ("clip_norms",)

    def __init__(
        self, mechanism: Mechanism, gradient: Tensor, divisor: float, generators: list[Generator], steps: int
    ) -> None:
        super().__init__(mechanism, gradient, divisor, generators, steps)
        self.clip_norms = gradient.new_full((len(gradient), 1), mechanism.clip_norm)
        self.counts = gradient.new_zeros(len(gradient), 1)  # of gradients within the norm, less half of all
        share = mechanism.settings["share"]
        self.of_sum, self.of_count = mechanism.sigma / sqrt(1 - share), mechanism.sigma / (2 * sqrt(share))

    def add(self, step: int) -> None:
        """As in `base.Noise`."""
        for row, clip_norm, generator in zip(self.gradient, self.clip_norms, self.generators, strict=True):
            row.normal_(0.0, self.of_sum * float(clip_norm) / self.divisor, generator=generator)

    def scales(self, norms: Tensor, models: range, weights: Tensor | None = None) -> Tensor:
        """As in `base.Noise`; also counts the norms below the threshold, weighted."""
        from dp_leakage.privacy.clipping import bound_scales

        clip_norms = self.clip_norm_of(models)
        within = (norms <= clip_norms).to(norms.dtype) - 0.5
        counted = (within if weights is None else within * weights).sum(1, keepdim=True)
        self.counts[models.start : models.stop] += counted
        return bound_scales(norms, clip_norms, "clip", self.divisor)

    def clip_norm_of(self, models: range) -> Tensor:
        """As in `base.Noise`."""
        return self.clip_norms[models.start : models.stop]

    def finish(self) -> None:
        """Move the norms."""
        quantile, rate = self.mechanism.settings["quantile"], self.mechanism.settings["rate"]
        for count, clip_norm, generator in zip(self.counts, self.clip_norms, self.generators, strict=True):
            noise = count.new_empty(1).normal_(0.0, self.of_count, generator=generator)
            found = (count + noise) / self.divisor + 0.5
            clip_norm.mul_((-rate * (found - quantile)).exp()).clamp_(SMALLEST, LARGEST)
        self.counts.zero_()

    def silent(self, gradient: Tensor) -> Noise:
        """As in `base.Noise`."""
        quiet = _Silent(self.mechanism, gradient, self.divisor, [], self.steps)
        quiet.clip_norms = self.clip_norms.clone()
        return quiet


class _Silent(Noise):
    """The current clipping norms, without noise and without updates."""

    def add(self, step: int) -> None:
        """As in `base.Noise`."""
        self.gradient.zero_()

    def finish(self) -> None:
        """As in `base.Noise`."""
