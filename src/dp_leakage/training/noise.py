"""The noise that a training begins with: an object of the mechanism's own file."""

import torch
from torch import Generator, Tensor

from dp_leakage.errors import UserError
from dp_leakage.privacy.mechanism import Mechanism
from dp_leakage.privacy.mechanisms import noise_module
from dp_leakage.privacy.mechanisms.base import Noise
from dp_leakage.user_code import DEFINED, FILES, blamed, function


class FunctionNoise(Noise):
    """Of a plugin that defines a function ``noise(row, scale, generator)``: independent from step to step."""

    def add(self, step: int) -> None:
        """As in `Noise`."""
        plugin, scale = self.mechanism.noise, self.deviation
        own = function(plugin, "noise")
        for row, generator in zip(self.gradient, self.generators, strict=True):
            row.fill_(torch.nan)  # a place that it leaves as it was would get no noise: so that is seen
            with blamed(f"plugin {plugin}", FILES.get(plugin)):
                own(row, scale, generator)
            if not bool(row.isfinite().all()):
                raise UserError(f"plugin {plugin}: noise does not fill all of row, in place, with finite numbers")


def start_noise(
    mechanism: Mechanism | None, gradient: Tensor, divisor: float, generators: list[Generator], steps: int
) -> Noise:
    """The noise of K models' trainings; the arguments are those of `Noise`. Without an amount of noise it is zero."""
    return _kind(mechanism)(mechanism, gradient, divisor, generators, steps)


def directs(mechanism: Mechanism | None) -> bool:
    """Whether the noise turns each unit's gradient into a noisy one (`Noise.directs`)."""
    return _kind(mechanism).directs


def _kind(mechanism: Mechanism | None) -> type[Noise]:
    if mechanism is None or not (mechanism.noise_multiplier or mechanism.kappa is not None):
        return Noise
    if "noise" in DEFINED.get(mechanism.noise, ()):
        return FunctionNoise
    return function(noise_module(mechanism.noise), "Noise")
