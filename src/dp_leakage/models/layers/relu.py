"""The rectified linear unit."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from dp_leakage.models.layers.base import Kept, Layer, Parameters

if TYPE_CHECKING:
    from torch import Generator, Tensor, nn


@dataclass(frozen=True)
class ReLU(Layer):
    """max(x, 0)."""

    alone: ClassVar[bool] = False

    def forward(
        self, name: str, parameters: Parameters, x: Tensor, dropout: list[Generator] | None
    ) -> tuple[Tensor, None]:
        """As in `Layer`."""
        return x.relu(), None

    def pull_back(self, name: str, parameters: Parameters, kept: Kept, delta: Tensor) -> Tensor:
        """As in `Layer`."""
        import torch

        return torch.ops.aten.threshold_backward(delta, kept.output, 0)

    def module(self) -> nn.Module:
        """As in `Layer`."""
        from torch import nn

        return nn.ReLU()
