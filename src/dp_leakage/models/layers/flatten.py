"""Flattening."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from dp_leakage.models.layers.base import Kept, Layer, Parameters, Shape

if TYPE_CHECKING:
    from torch import Generator, Tensor, nn


@dataclass(frozen=True)
class Flatten(Layer):
    """(channels, height, width) → one vector."""

    alone: ClassVar[bool] = False

    def output_shape(self, shape: Shape) -> Shape:
        """As in `Layer`."""
        return (math.prod(shape),)

    def forward(
        self, name: str, parameters: Parameters, x: Tensor, dropout: list[Generator] | None
    ) -> tuple[Tensor, None]:
        """As in `Layer`."""
        return x.flatten(2), None

    def pull_back(self, name: str, parameters: Parameters, kept: Kept, delta: Tensor) -> Tensor:
        """As in `Layer`."""
        return delta.reshape(kept.input.shape)

    def module(self) -> nn.Module:
        """As in `Layer`."""
        from torch import nn

        return nn.Flatten()
