"""Global average pooling, with which residual networks end."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from dp_leakage.models.layers.base import Kept, Layer, Parameters, Shape

if TYPE_CHECKING:
    from torch import Generator, Tensor, nn


@dataclass(frozen=True)
class GlobalAvgPool2d(Layer):
    """(channels, height, width) → the mean of each channel, one vector."""

    def output_shape(self, shape: Shape) -> Shape:
        """As in `Layer`."""
        return shape[:1]

    def forward(
        self, name: str, parameters: Parameters, x: Tensor, dropout: list[Generator] | None
    ) -> tuple[Tensor, None]:
        """As in `Layer`."""
        return x.mean((-2, -1)), None

    def pull_back(self, name: str, parameters: Parameters, kept: Kept, delta: Tensor) -> Tensor:
        """As in `Layer`."""
        high, wide = kept.input.shape[-2:]
        return (delta / (high * wide))[..., None, None].expand(*delta.shape, high, wide)

    def module(self) -> nn.Module:
        """As in `Layer`."""
        from torch import nn

        return nn.Sequential(nn.AdaptiveAvgPool2d(1), nn.Flatten())
