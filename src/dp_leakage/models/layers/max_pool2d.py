"""Max pooling. Over 2×2 windows it is several times as fast on a CPU as PyTorch's, which looks at one element at a
time.

The maxima over columns and then over rows are whole-tensor operations. If several elements of a window are equal, the
gradient goes to the first in reading order, as in PyTorch, so columns come first and `>` decides.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from dp_leakage.models.layers.base import Kept, Layer, Parameters, Shape, pooled_shape

if TYPE_CHECKING:
    from torch import Generator, Tensor, nn


@dataclass(frozen=True)
class MaxPool2d(Layer):
    """The maximum over windows of ``size`` × ``size``, ``stride`` apart (None: side by side), with padding."""

    size: int
    stride: int | None = None
    padding: int = 0

    alone: ClassVar[bool] = False

    def output_shape(self, shape: Shape) -> Shape:
        """As in `Layer`."""
        return pooled_shape(shape, self.size, self.stride or self.size, self.padding)

    def forward(
        self, name: str, parameters: Parameters, x: Tensor, dropout: list[Generator] | None
    ) -> tuple[Tensor, Tensor]:
        """As in `Layer`; keeps the maxima of columns, or the positions of the maxima."""
        import torch

        if self._halves(x):
            left, right = x[..., 0::2], x[..., 1::2]
            columns = torch.maximum(left, right)
            return torch.maximum(columns[..., 0::2, :], columns[..., 1::2, :]), columns
        maxima, places = torch.nn.functional.max_pool2d(
            x.flatten(0, 1), self.size, self.stride, self.padding, return_indices=True
        )
        return maxima.unflatten(0, x.shape[:2]), places

    def pull_back(self, name: str, parameters: Parameters, kept: Kept, delta: Tensor) -> Tensor:
        """As in `Layer`."""
        import torch

        x = kept.input
        if self._halves(x):
            columns = kept.extra
            upper, lower = columns[..., 0::2, :], columns[..., 1::2, :]
            by_column = torch.empty_like(columns)
            to_lower = torch.mul(delta, (lower > upper).to(delta.dtype), out=by_column[..., 1::2, :])
            torch.sub(delta, to_lower, out=by_column[..., 0::2, :])
            to_right = (x[..., 1::2] > x[..., 0::2]).to(delta.dtype).mul_(by_column)
            # PyTorch vectorizes the interleaving of left and right only if they are real and imaginary parts.
            return torch.view_as_real(torch.complex(by_column.sub_(to_right), to_right)).flatten(-2)
        back = torch.ops.aten.max_pool2d_with_indices_backward(
            delta.flatten(0, 1),
            x.flatten(0, 1),
            [self.size] * 2,
            [self.stride or self.size] * 2,
            [self.padding] * 2,
            [1] * 2,
            False,
            kept.extra,
        )
        return back.unflatten(0, x.shape[:2])

    def module(self) -> nn.Module:
        """As in `Layer`."""
        from torch import nn

        return nn.MaxPool2d(self.size, self.stride, self.padding)

    def _halves(self, x: Tensor) -> bool:
        """Return whether the fast implementation applies."""
        touching = self.size == 2 and self.stride in (None, 2) and not self.padding
        return touching and x.device.type == "cpu" and x.shape[-1] % 2 == 0 and x.shape[-2] % 2 == 0
