"""The logistic sigmoid."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from dp_leakage.models.layers.base import Kept, Layer, Parameters

if TYPE_CHECKING:
    from torch import Generator, Tensor, nn


@dataclass(frozen=True)
class Sigmoid(Layer):
    """1 / (1 + exp(-x))."""

    def forward(
        self, name: str, parameters: Parameters, x: Tensor, dropout: list[Generator] | None
    ) -> tuple[Tensor, None]:
        """As in `Layer`."""
        return x.sigmoid(), None

    def pull_back(self, name: str, parameters: Parameters, kept: Kept, delta: Tensor) -> Tensor:
        """As in `Layer`."""
        import torch

        return torch.ops.aten.sigmoid_backward(delta, kept.output)

    def module(self) -> nn.Module:
        """As in `Layer`."""
        from torch import nn

        return nn.Sigmoid()
