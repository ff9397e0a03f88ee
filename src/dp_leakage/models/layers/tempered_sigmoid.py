"""The tempered sigmoid, an activation made for private training."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from dp_leakage.models.layers.base import Kept, Layer, Parameters

if TYPE_CHECKING:
    from torch import Generator, Tensor, nn


@dataclass(frozen=True)
class TemperedSigmoid(Layer):
    """scale · sigmoid(temperature · x) − offset: bounded, for gradients that need less clipping (Papernot et al. 2021).

    The defaults are tanh.
    """

    scale: float = 2.0
    temperature: float = 2.0
    offset: float = 1.0

    def forward(
        self, name: str, parameters: Parameters, x: Tensor, dropout: list[Generator] | None
    ) -> tuple[Tensor, Tensor]:
        """As in `Layer`; keeps the sigmoid."""
        sigmoid = (self.temperature * x).sigmoid_()
        return self.scale * sigmoid - self.offset, sigmoid

    def pull_back(self, name: str, parameters: Parameters, kept: Kept, delta: Tensor) -> Tensor:
        """As in `Layer`."""
        import torch

        return torch.ops.aten.sigmoid_backward(delta, kept.extra).mul_(self.scale * self.temperature)

    def module(self) -> nn.Module:
        """As in `Layer`."""
        from torch import nn

        class Module(nn.Module):
            def forward(_, x: Tensor) -> Tensor:
                return self.scale * (self.temperature * x).sigmoid() - self.offset

        return Module()
