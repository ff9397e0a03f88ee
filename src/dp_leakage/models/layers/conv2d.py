"""The convolution."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

from dp_leakage.models.layers.base import Kept, Layer, Parameters, PerExample, Shape, start_of
from dp_leakage.models.layers.conv_gradients import LazyConvGradients, backward_of, convolution_gradients
from dp_leakage.models.products import ROW

if TYPE_CHECKING:
    from collections.abc import Sequence

    from torch import Generator, Tensor, nn


@dataclass(frozen=True)
class Conv2d(Layer):
    """A square convolution with bias, zero padding and equal strides."""

    inputs: int
    outputs: int
    kernel: int
    stride: int = 1
    padding: int = 0

    has_parameters: ClassVar[bool] = True
    output_is_spare: ClassVar[bool] = True

    def parameter_shapes(self) -> dict[str, Shape]:
        """As in `Layer`."""
        return {"weight": (self.outputs, self.inputs, self.kernel, self.kernel), "bias": (self.outputs,)}

    def initial(self, generator: Generator, scheme: str) -> Parameters:
        """As in `Layer`."""
        return start_of(self.parameter_shapes(), generator, scheme)

    def output_shape(self, shape: Shape) -> Shape:
        """As in `Layer`."""
        return (self.outputs, *((side + 2 * self.padding - self.kernel) // self.stride + 1 for side in shape[1:]))

    def activation_floats(self, shape: Shape) -> int:
        """As in `Layer`: with the patches, and the kernels' gradients twice."""
        patches = self.kernel * math.prod(shape)
        return super().activation_floats(shape) + patches + 2 * self.outputs * self.inputs * self.kernel**2

    def forward(
        self, name: str, parameters: Parameters, x: Tensor, dropout: list[Generator] | None
    ) -> tuple[Tensor, Any]:
        """As in `Layer`."""
        return convolve(self, parameters[f"{name}.weight"], parameters[f"{name}.bias"], x), None

    def pull_back(self, name: str, parameters: Parameters, kept: Kept, delta: Tensor) -> Tensor:
        """As in `Layer`."""
        return convolve_back(self, parameters[f"{name}.weight"], kept.input, delta)

    def gradients(self, name: str, parameters: Parameters, kept: Kept, delta: Tensor) -> Sequence[PerExample]:
        """As in `Layer`. A GPU forms them at once."""
        found = LazyConvGradients if delta.device.type == "cpu" else convolution_gradients
        return [found(self, (f"{name}.weight", f"{name}.bias"), kept.input, delta)]

    def module(self) -> nn.Module:
        """As in `Layer`."""
        from torch import nn

        sizes = {"kernel_size": self.kernel, "stride": self.stride, "padding": self.padding}
        return nn.utils.skip_init(nn.Conv2d, self.inputs, self.outputs, **sizes)


def convolve(layer: Conv2d, weight: Tensor, bias: Tensor, x: Tensor) -> Tensor:
    """Return the convolution of K models as one, with a group of channels per model."""
    import torch
    from torch.nn.functional import conv2d, pad

    models = len(weight)
    joined = x.expand(models, *x.shape[1:]).transpose(0, 1).flatten(1, 2)
    _, high, wide = layer.output_shape(x.shape[2:])
    if x.dtype == torch.float64 and x.device.type == "cpu" and high * wide % ROW:
        more_high, more_wide = _filling(high, wide)
        joined = pad(joined, (0, layer.stride * more_wide, 0, layer.stride * more_high))
    z = conv2d(joined, weight.flatten(0, 1), bias.flatten(), layer.stride, layer.padding, groups=models)
    return z[..., :high, :wide].unflatten(1, (models, layer.outputs)).transpose(0, 1)


def _filling(high: int, wide: int) -> tuple[int, int]:
    """Return the fewest rows and columns that extend an output to a multiple of `ROW` positions.

    Otherwise a float64 convolution on a CPU rounds a record differently at different positions in the batch.
    """
    fillings = [(i, j) for i in range(ROW) for j in range(ROW) if (high + i) * (wide + j) % ROW == 0]
    return min(fillings, key=lambda filling: (high + filling[0]) * (wide + filling[1]))


def convolve_back(layer: Conv2d, weight: Tensor, x: Tensor, delta: Tensor) -> Tensor:
    """Return ∂loss/∂input of `convolve`."""
    models = len(weight)
    shape = (x.shape[1], models * layer.inputs, *x.shape[3:])
    joined = delta.transpose(0, 1).flatten(1, 2)
    spare = joined.new_empty(1).expand(shape)
    back = backward_of(layer, models, joined, spare, weight.flatten(0, 1), [True, False, False])[0]
    return back.unflatten(1, (models, layer.inputs)).transpose(0, 1)
