"""The convolution. Kernels are small, so their per-example gradients are formed."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, ClassVar

from dp_leakage.models.layers.base import ALL, Kept, Layer, Parameters, Shape, start_of, taken
from dp_leakage.models.norms import norm

if TYPE_CHECKING:
    from torch import Generator, Size, Tensor, nn

CACHE_BYTES = 1 << 19  # bytes of one core's cache for a chunk of unfolded patches


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

    def gradients(self, name: str, parameters: Parameters, kept: Kept, delta: Tensor) -> list[ConvGradients]:
        """As in `Layer`."""
        return [convolution_gradients(self, (f"{name}.weight", f"{name}.bias"), kept.input, delta)]

    def module(self) -> nn.Module:
        """As in `Layer`."""
        from torch import nn

        sizes = {"kernel_size": self.kernel, "stride": self.stride, "padding": self.padding}
        return nn.utils.skip_init(nn.Conv2d, self.inputs, self.outputs, **sizes)


@dataclass(frozen=True)
class ConvGradients:
    """Per-example gradients of one convolution; see `PerExample`.

    Attributes:
        names: weight and bias.
        kernels: (k, K, B, c·k, o): first the row of the kernel, then input channel and column, then output channel.
        bias: (K, B, o).
    """

    names: tuple[str, str]
    kernels: Tensor
    bias: Tensor

    @property
    def examples(self) -> int:
        """B."""
        return self.bias.shape[1]

    def norms(self) -> Tensor:
        """As in `PerExample`."""
        import torch

        norms = torch.cat([norm(self.kernels.flatten(3)), norm(self.bias)[None]])
        return torch.linalg.vector_norm(norms, dim=0)

    def where(self, kept: Tensor) -> ConvGradients:
        """As in `PerExample`."""
        return replace(
            self, kernels=self.kernels.where(kept[..., None, None], 0.0), bias=self.bias.where(kept[..., None], 0.0)
        )

    def add_weighted_sum(self, scales: Tensor, total: Parameters) -> None:
        """As in `PerExample`."""
        import torch

        weight, bias = (total[name] for name in self.names)
        for row, of_row in enumerate(self.kernels):
            summed = torch.bmm(scales[:, None], of_row.flatten(2))
            weight[:, :, :, row].add_(summed.view(len(weight), *weight.shape[2:4], -1).permute(0, 3, 1, 2))
        bias[:, None].baddbmm_(scales[:, None], self.bias)

    def gram(self) -> Tensor:
        """As in `PerExample`."""
        import torch

        rows = self.rows().flatten(2).double()
        return torch.bmm(rows, rows.mT)

    def directional_derivative(self, direction: Parameters) -> Tensor:
        """As in `PerExample`."""
        import torch

        weight, bias = (direction[name] for name in self.names)
        result = torch.bmm(self.bias, bias[..., None])
        for row, of_row in enumerate(self.kernels):
            along = weight[:, :, :, row].permute(0, 2, 3, 1).flatten(1)
            result.baddbmm_(of_row.flatten(2), along[..., None])
        return result[..., 0]

    def rows(self, examples: slice = ALL) -> Tensor:
        """As in `PerExample`: (K, n, o, c·k·k + 1). A row holds the kernels of one output channel."""
        import torch

        by_row = self.kernels[:, :, examples].unflatten(3, (-1, len(self.kernels))).permute(1, 2, 5, 3, 0, 4)
        return torch.cat([by_row.flatten(3), self.bias[:, examples, :, None]], 3)

    def taken(self, places: Tensor) -> ConvGradients:
        """As in `PerExample`."""
        return replace(self, kernels=taken(self.kernels, places, 1), bias=taken(self.bias, places))


def convolve(layer: Conv2d, weight: Tensor, bias: Tensor, x: Tensor) -> Tensor:
    """The convolution of K models as one, with a group of channels per model."""
    from torch.nn.functional import conv2d

    models = len(weight)
    joined = x.expand(models, *x.shape[1:]).transpose(0, 1).flatten(1, 2)
    z = conv2d(joined, weight.flatten(0, 1), bias.flatten(), layer.stride, layer.padding, groups=models)
    return z.unflatten(1, (models, layer.outputs)).transpose(0, 1)


def convolve_back(layer: Conv2d, weight: Tensor, x: Tensor, delta: Tensor) -> Tensor:
    """∂loss/∂input of `convolve`."""
    import torch

    models = len(weight)
    shape = (x.shape[1], models * layer.inputs, *x.shape[3:])
    joined = delta.transpose(0, 1).flatten(1, 2)
    back = torch.ops.aten.convolution_backward(
        joined,
        joined.new_empty(1).expand(shape),
        weight.flatten(0, 1),
        None,
        [layer.stride] * 2,
        [layer.padding] * 2,
        [1] * 2,
        False,
        [0] * 2,
        models,
        [True, False, False],
    )[0]
    return back.unflatten(1, (models, layer.inputs)).transpose(0, 1)


def convolution_gradients(layer: Conv2d, names: tuple[str, str], x: Tensor, delta: Tensor) -> ConvGradients:
    """Per-example kernel gradients from input x (K, B, c, h, w) and output gradient delta (K, B, o, h', w')."""
    examples, gradients = x.flatten(0, 1), delta.flatten(0, 1).flatten(2)
    kernels = x.new_empty(layer.kernel, len(examples), layer.inputs * layer.kernel, layer.outputs)
    size = layer.kernel * x[0, 0].numel() * x.element_size()
    chunk = max(1, CACHE_BYTES // size) if x.device.type == "cpu" else len(examples)
    for start in range(0, len(examples), chunk):
        part = slice(start, start + chunk)
        _fill_kernels(layer, examples[part], gradients[part], delta.shape[3:], kernels[:, part])
    return ConvGradients(names, kernels.unflatten(1, x.shape[:2]), delta.flatten(3).sum(3))


def _fill_kernels(layer: Conv2d, x: Tensor, delta: Tensor, sides: Size, kernels: Tensor) -> None:
    """The gradients of examples x (n, c, h, w), delta (n, o, h'·w'), into kernels (k, n, c·k, o).

    The patches are unfolded along the width only: k copies of the input instead of k², in long rows. The k offsets
    along the height are views of the same copy, whose rows are sorted by their number modulo the stride.
    """
    import torch
    from torch.nn.functional import pad

    kernel, stride, padding = layer.kernel, layer.stride, layer.padding
    high, wide = sides
    rows = high + (kernel - 1) // stride
    below = rows * stride - x.shape[2] - padding
    x = pad(x, (padding, padding, padding, below)).unflatten(2, (rows, stride)).transpose(2, 3)
    reach = stride * (wide - 1) + 1
    patches = torch.stack([x[..., j : j + reach : stride] for j in range(kernel)], 2)
    patch = stride * rows * wide
    for i, out in enumerate(kernels):
        offset = (i % stride * rows + i // stride) * wide
        shape, strides = (len(x), out.shape[1], high * wide), (out.shape[1] * patch, patch, 1)
        torch.bmm(patches.as_strided(shape, strides, offset), delta.mT, out=out)
