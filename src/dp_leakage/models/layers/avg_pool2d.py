"""Average pooling."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from dp_leakage.models.layers.base import Kept, Layer, Parameters, Shape, pooled_shape

if TYPE_CHECKING:
    from torch import Generator, Tensor, nn


@dataclass(frozen=True)
class AvgPool2d(Layer):
    """The mean over windows of ``size`` × ``size``, ``stride`` apart (None: side by side); padding counts as zeros."""

    size: int
    stride: int | None = None
    padding: int = 0

    alone: ClassVar[bool] = False

    def output_shape(self, shape: Shape) -> Shape:
        """As in `Layer`."""
        return pooled_shape(shape, self.size, self.stride or self.size, self.padding)

    def forward(
        self, name: str, parameters: Parameters, x: Tensor, dropout: list[Generator] | None
    ) -> tuple[Tensor, None]:
        """As in `Layer`."""
        from torch.nn.functional import avg_pool2d

        return avg_pool2d(x.flatten(0, 1), self.size, self.stride, self.padding).unflatten(0, x.shape[:2]), None

    def pull_back(self, name: str, parameters: Parameters, kept: Kept, delta: Tensor) -> Tensor:
        """As in `Layer`."""
        import torch

        back = torch.ops.aten.avg_pool2d_backward(
            delta.flatten(0, 1),
            kept.input.flatten(0, 1),
            [self.size] * 2,
            [self.stride or self.size] * 2,
            [self.padding] * 2,
            False,
            True,
            None,
        )
        return back.unflatten(0, delta.shape[:2])

    def module(self) -> nn.Module:
        """As in `Layer`."""
        from torch import nn

        return nn.AvgPool2d(self.size, self.stride, self.padding)
