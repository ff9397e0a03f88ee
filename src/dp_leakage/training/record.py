"""The record of a backward pass: per-example gradients of K models, without forming them where that can be helped.

For a linear layer with input a and output gradient δ, an example's weight gradient is δaᵀ and its bias gradient
δ. So its squared norm is ‖δ‖²(‖a‖²+1), a weighted sum over examples is one matrix product (s·δ)ᵀa, and inner
products of examples need only those of a and of δ (Goodfellow 2015, Rochette et al. 2019). Convolution kernels are
small, so their per-example gradients are formed.

Every mechanism is a choice of weights for `Record.add_weighted_sum` and of noise: 1/B for plain training, bounding
scales for Gaussian noise, von Mises-Fisher coefficients.
"""

from dataclasses import dataclass
from functools import reduce

import torch
import torch.nn.functional as F
from torch import Tensor

from dp_leakage.models.functional import Parameters, forward, pull_back
from dp_leakage.models.layers import Conv2d, Flatten, Layers, Linear
from dp_leakage.models.products import add_outer, affine
from dp_leakage.privacy.clipping import norm

ALL = slice(None)
CACHE_BYTES = 1 << 19  # of one core, for a chunk of a convolution's unfolded patches


@dataclass(frozen=True)
class LinearGradients:
    """Per-example gradients of one linear layer.

    Attributes:
        name: of the layer.
        input: (K, B, i).
        delta: (K, B, o), the loss' gradient with respect to the output.
        lengths: (K, B), √(‖input‖² + 1) where it is known already.
    """

    name: str
    input: Tensor
    delta: Tensor
    lengths: Tensor | None = None

    @property
    def examples(self) -> int:
        """B."""
        return self.delta.shape[1]

    def norms(self) -> Tensor:
        """(K, B): ‖∂loss/∂(W, b)‖ of each example."""
        lengths = _lengths(self.input) if self.lengths is None else self.lengths
        return norm(self.delta).mul_(lengths)

    def add_weighted_sum(self, scales: Tensor, total: Parameters) -> None:
        """total += Σ scaleᵢ·gᵢ, scales (K, B)."""
        add_outer(total[f"{self.name}.weight"], self.delta * scales.unsqueeze(2), self.input)
        total[f"{self.name}.bias"].unsqueeze(1).baddbmm_(scales.unsqueeze(1), self.delta)

    def gram(self) -> Tensor:
        """(K, B, B) float64: inner products of the examples' gradients."""
        delta, inputs = self.delta.double(), self.input.double()
        return torch.bmm(inputs, inputs.mT).add_(1).mul_(torch.bmm(delta, delta.mT))

    def directional_derivative(self, direction: Parameters) -> Tensor:
        """(K, B): each example's gradient times ``direction``."""
        outputs = affine(self.input, direction[f"{self.name}.weight"], direction[f"{self.name}.bias"])
        return outputs.mul_(self.delta).sum(-1)

    def rows(self, examples: slice = ALL) -> Tensor:
        """(K, n, o, i + 1): the gradients themselves, row by row of W, with its bias last."""
        return self.delta[:, examples, :, None] * F.pad(self.input[:, examples], (0, 1), value=1.0)[:, :, None, :]


@dataclass(frozen=True)
class ConvGradients:
    """Per-example gradients of one convolution.

    Attributes:
        name: of the layer.
        kernels: (k, K, B, c·k, o): the row of the kernel comes first, then input channel and column, then output.
        bias: (K, B, o).
    """

    name: str
    kernels: Tensor
    bias: Tensor

    @property
    def examples(self) -> int:
        """B."""
        return self.bias.shape[1]

    def norms(self) -> Tensor:
        """As for `LinearGradients`."""
        norms = torch.cat([norm(self.kernels.flatten(3)), norm(self.bias)[None]])
        return torch.linalg.vector_norm(norms, dim=0)

    def add_weighted_sum(self, scales: Tensor, total: Parameters) -> None:
        """As for `LinearGradients`."""
        weight, bias = total[f"{self.name}.weight"], total[f"{self.name}.bias"]
        for row, of_row in enumerate(self.kernels):
            summed = torch.bmm(scales[:, None], of_row.flatten(2))
            weight[:, :, :, row].add_(summed.view(len(weight), *weight.shape[2:4], -1).permute(0, 3, 1, 2))
        bias[:, None].baddbmm_(scales[:, None], self.bias)

    def gram(self) -> Tensor:
        """As for `LinearGradients`."""
        rows = self.rows().flatten(2).double()
        return torch.bmm(rows, rows.mT)

    def directional_derivative(self, direction: Parameters) -> Tensor:
        """As for `LinearGradients`."""
        weight, bias = direction[f"{self.name}.weight"], direction[f"{self.name}.bias"]
        result = torch.bmm(self.bias, bias[..., None])
        for row, of_row in enumerate(self.kernels):
            along = weight[:, :, :, row].permute(0, 2, 3, 1).flatten(1)
            result.baddbmm_(of_row.flatten(2), along[..., None])
        return result[..., 0]

    def rows(self, examples: slice = ALL) -> Tensor:
        """As for `LinearGradients`: (K, n, o, c·k·k + 1), a row being the kernels of one output channel."""
        by_row = self.kernels[:, :, examples].unflatten(3, (-1, len(self.kernels))).permute(1, 2, 5, 3, 0, 4)
        return torch.cat([by_row.flatten(3), self.bias[:, examples, :, None]], 3)


@dataclass(frozen=True)
class Record:
    """What one forward and backward pass of K models over B examples each tells, layer by layer."""

    parts: list[LinearGradients | ConvGradients]

    def norms(self) -> Tensor:
        """(K, B): ℓ2 norm of each example's whole gradient."""
        norms = [part.norms() for part in self.parts]
        return norms[0] if len(norms) == 1 else torch.linalg.vector_norm(torch.stack(norms), dim=0)

    def add_weighted_sum(self, scales: Tensor, total: Parameters) -> None:
        """total += Σ scaleᵢ·gᵢ over the examples of each model: scales (K, B), total name → (K, …)."""
        for part in self.parts:
            part.add_weighted_sum(scales, total)

    def gram(self) -> Tensor:
        """(K, B, B) float64: inner products of the examples' gradients."""
        return reduce(torch.Tensor.add_, (part.gram() for part in self.parts))

    def directional_derivative(self, direction: Parameters) -> Tensor:
        """(K, B): each example's gradient times ``direction`` (name → (K, …))."""
        return reduce(torch.Tensor.add_, (part.directional_derivative(direction) for part in self.parts))


def backpropagate(
    layers: Layers,
    parameters: Parameters,
    x: Tensor,
    y: Tensor,
    dropout: list[torch.Generator] | None = None,
    x_lengths: Tensor | None = None,
) -> Record:
    """Forward and backward pass of cross-entropy, each example's by itself.

    Args:
        layers: the architecture.
        parameters: name → (K, …).
        x: (K, B, …) records of each model.
        y: int64 (K, B) classes.
        dropout: a generator per model where dropout layers are to act.
        x_lengths: (K, B), what `record_lengths` says of x.
    """
    logits, kept = forward(layers, parameters, x, dropout)
    delta = torch.softmax(logits, -1)
    delta.scatter_(2, y.unsqueeze(2), -1.0, reduce="add")
    first = next(i for i, layer in enumerate(layers) if isinstance(layer, Linear | Conv2d))
    parts: list[LinearGradients | ConvGradients] = []
    for index in range(len(layers) - 1, first - 1, -1):
        match layers[index]:
            case Linear():
                lengths = x_lengths if index == first else None
                parts.append(LinearGradients(str(index), kept[index].input, delta, lengths))
            case Conv2d() as layer:
                parts.append(convolution_gradients(layer, str(index), kept[index].input, delta))
        if index > first:
            delta = pull_back(layers[index], index, parameters, kept[index], delta)
    return Record(parts[::-1])


def record_lengths(layers: Layers, x: Tensor) -> Tensor | None:
    """(n,): √(‖x‖² + 1) of each record, where the records x (n, …) themselves go into a linear layer; else None.

    They never change, and are most of what a small model's norms cost.
    """
    first = next(layer for layer in layers if not isinstance(layer, Flatten))
    return _lengths(x.flatten(1)) if isinstance(first, Linear) else None


def _lengths(x: Tensor) -> Tensor:
    """√(‖x‖² + 1) along the last dimension: a linear layer's input and the 1 that its bias sees."""
    return norm(x).square_().add_(1).sqrt_()


def convolution_gradients(layer: Conv2d, name: str, x: Tensor, delta: Tensor) -> ConvGradients:
    """Per-example kernel gradients from input x (K, B, c, h, w) and output gradient delta (K, B, o, h', w')."""
    examples, gradients = x.flatten(0, 1), delta.flatten(0, 1).flatten(2)
    kernels = x.new_empty(layer.kernel, len(examples), layer.inputs * layer.kernel, layer.outputs)
    size = layer.kernel * x[0, 0].numel() * x.element_size()
    chunk = max(1, CACHE_BYTES // size) if x.device.type == "cpu" else len(examples)
    for start in range(0, len(examples), chunk):
        part = slice(start, start + chunk)
        _fill_kernels(layer, examples[part], gradients[part], delta.shape[3:], kernels[:, part])
    return ConvGradients(name, kernels.unflatten(1, x.shape[:2]), delta.flatten(3).sum(3))


def _fill_kernels(layer: Conv2d, x: Tensor, delta: Tensor, sides: torch.Size, kernels: Tensor) -> None:
    """The gradients of examples x (n, c, h, w), delta (n, o, h'·w'), into kernels (k, n, c·k, o).

    The patches are unfolded along the width only: k copies of the input instead of k², in long rows. The k offsets
    along the height are views of the same copy, whose rows are sorted by their number modulo the stride.
    """
    kernel, stride, padding = layer.kernel, layer.stride, layer.padding
    high, wide = sides
    rows = high + (kernel - 1) // stride
    below = rows * stride - x.shape[2] - padding
    x = F.pad(x, (padding, padding, padding, below)).unflatten(2, (rows, stride)).transpose(2, 3)
    reach = stride * (wide - 1) + 1
    patches = torch.stack([x[..., j : j + reach : stride] for j in range(kernel)], 2)
    patch = stride * rows * wide
    for i, out in enumerate(kernels):
        offset = (i % stride * rows + i // stride) * wide
        shape, strides = (len(x), out.shape[1], high * wide), (out.shape[1] * patch, patch, 1)
        torch.bmm(patches.as_strided(shape, strides, offset), delta.mT, out=out)
