"""Per-example gradients of a convolution's kernels, formed only where necessary or faster.

A weighted sum of all gradients is one product of inputs and output gradients, so it needs no formed gradients. Neither
do their norms, if kernels are large and the image is small: with patches a_p and output gradients δ_p at the positions
p, ‖Σ δ_p ⊗ a_p‖² = Σ ⟨a_p, a_q⟩⟨δ_p, δ_q⟩, and the inner products of patches are sums of inner products of pixels
("ghost clipping" of Bu et al. 2022, whose products of patches take k² times as long).

The rounding of the sum depends on the norms of its terms δ_p ⊗ a_p, however small the sum is. So this rounding is
included in a norm. If terms cancel, the gradient is formed, so that the measured vector is the one in the sum.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property, reduce
from typing import TYPE_CHECKING, NamedTuple

from dp_leakage.models.layers.base import ALL, OnDemand, Parameters, taken
from dp_leakage.models.norms import CANCELLED, LEAST_NORM, lost, norm, widened
from dp_leakage.models.products import CHAIN, ROW, combined

if TYPE_CHECKING:
    from torch import Size, Tensor

    from dp_leakage.models.layers.conv2d import Conv2d

CACHE_BYTES = 1 << 19  # bytes of one core's cache for a chunk of unfolded patches, or of inner products
# With so many times fewer multiplications, lengths from inner products are faster than from formed gradients. Measured:
# no gain at 5.7, 1.3 times as fast at 6.9, 2 at 17, 4 at 35.
GRAM_FROM = 6.5


@dataclass(frozen=True)
class LazyConvGradients(OnDemand):
    """Per-example gradients of one convolution. For a CPU.

    Attributes:
        layer: the convolution.
        names: weight and bias.
        x: its input (K, B, c, h, w).
        delta: the gradient of its output, (K, B, o, h', w').
    """

    layer: Conv2d
    names: tuple[str, str]
    x: Tensor
    delta: Tensor

    @cached_property
    def formed(self) -> ConvGradients:
        """Return the gradients themselves."""
        return convolution_gradients(self.layer, self.names, self.x, self.delta)

    @property
    def examples(self) -> int:
        """B."""
        return self.delta.shape[1]

    def norms(self) -> Tensor:
        """As in `PerExample`."""
        return self.bounded.norms if self._products_are_few() else self.formed.norms()

    def where(self, kept: Tensor) -> LazyConvGradients:
        """As in `PerExample`."""
        kept = kept[..., None, None, None]
        masked = replace(self, x=self.x.where(kept, 0.0), delta=self.delta.where(kept, 0.0))
        if "bounded" in vars(self):
            masked.norms()
        return masked

    def add_weighted_sum(self, scales: Tensor, total: Parameters) -> None:
        """As in `PerExample`."""
        import torch

        if "formed" in vars(self):
            self.formed.add_weighted_sum(scales, total)
            return
        at_once = together = self.examples  # without lengths nothing is bounded, as in plain training
        if "bounded" in vars(self):
            at_once, together = max(1, CHAIN // self.positions), CHAIN
            if self.bounded.formed is not None:
                apart = self.bounded.apart
                columns = apart.any(0)
                self.bounded.formed.add_weighted_sum(scales.where(apart, 0.0)[:, columns], total)
                scales = scales.where(~apart, 0.0)
        scaled = self.delta * scales[..., None, None, None]
        weight, bias = (total[name] for name in self.names)
        for x, delta in zip(self.x.split(together, 1), scaled.split(together, 1), strict=True):
            parts = zip(x.split(at_once, 1), delta.split(at_once, 1), strict=True)
            weight.add_(reduce(torch.Tensor.add_, (kernel_gradients(self.layer, *part) for part in parts)))
        bias.add_(scaled.sum((1, 3, 4)))

    @property
    def positions(self) -> int:
        """h'·w'."""
        return self.delta[0, 0, 0].numel()

    def _products_are_few(self) -> bool:
        """Return whether norms come from inner products. The choice depends on shapes alone, so a model keeps its
        bytes.
        """
        pixels, positions = self.x[0, 0, 0].numel(), self.positions
        patch = self.layer.kernel**2
        products = pixels**2 * self.layer.inputs + positions**2 * (self.layer.outputs + patch)
        return positions * self.layer.inputs * patch * self.layer.outputs >= GRAM_FROM * products

    @cached_property
    def bounded(self) -> Bounded:
        """`norms` by inner products, and the gradients that must be formed nevertheless."""
        import torch

        x, delta = self.x.flatten(0, 1), self.delta.flatten(0, 1)
        chunk = max(1, CACHE_BYTES // (8 * x[0, 0].numel() ** 2))
        parts = zip(x.split(chunk), delta.split(chunk), strict=True)
        found = torch.cat([lengths(self.layer, *part) for part in parts]).view(*self.delta.shape[:2], 2)
        of_sum, of_terms = found[..., 0], found[..., 1]
        apart = of_terms > CANCELLED * of_sum.clamp(min=LEAST_NORM)
        norms = (of_sum + lost(self.positions, of_terms, x.dtype)).to(x.dtype).clamp_(min=LEAST_NORM)
        if not bool(apart.any()):
            return Bounded(norms, apart, None)
        columns = apart.any(0)
        formed = convolution_gradients(self.layer, self.names, self.x[:, columns], self.delta[:, columns])
        exact = norms.clone()
        exact[:, columns] = formed.norms()
        return Bounded(exact.where(apart, norms), apart, formed)


class Bounded(NamedTuple):
    """Norms of the gradients of K·B examples, and the gradients that had to be formed.

    Attributes:
        norms: (K, B).
        apart: bool (K, B), whose terms cancel.
        formed: the gradients of each example that is ``apart`` in some model; None if there are none.
    """

    norms: Tensor
    apart: Tensor
    formed: ConvGradients | None


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

        weight, bias = (total[name] for name in self.names)
        for row, of_row in enumerate(self.kernels):
            summed = combined(scales, of_row.flatten(2))
            weight[:, :, :, row].add_(summed.view(len(weight), *weight.shape[2:4], -1).permute(0, 3, 1, 2))
        for own, of_bias in zip(scales.split(CHAIN, 1), self.bias.split(CHAIN, 1), strict=True):
            bias[:, None].baddbmm_(own[:, None], of_bias)

    def gram(self) -> Tensor:
        """As in `PerExample`."""
        import torch

        rows = widened(self.rows().flatten(2))
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


def convolution_gradients(layer: Conv2d, names: tuple[str, str], x: Tensor, delta: Tensor) -> ConvGradients:
    """Return per-example kernel gradients from input x (K, B, c, h, w) and output gradient delta (K, B, o, h', w')."""
    examples, gradients = x.flatten(0, 1), delta.flatten(0, 1).flatten(2)
    kernels = x.new_empty(layer.kernel, len(examples), layer.inputs * layer.kernel, layer.outputs)
    size = layer.kernel * x[0, 0].numel() * x.element_size()
    chunk = max(1, CACHE_BYTES // size) if x.device.type == "cpu" else len(examples)
    for start in range(0, len(examples), chunk):
        part = slice(start, start + chunk)
        _fill_kernels(layer, examples[part], gradients[part], delta.shape[3:], kernels[:, part])
    return ConvGradients(names, kernels.unflatten(1, x.shape[:2]), delta.flatten(3).sum(3))


def _fill_kernels(layer: Conv2d, x: Tensor, delta: Tensor, sides: Size, kernels: Tensor) -> None:
    """Write the gradients of examples x (n, c, h, w), delta (n, o, h'·w'), into kernels (k, n, c·k, o).

    The patches are unfolded along the width only: k copies of the input instead of k², in long rows. The k offsets
    along the height are views of the same copy, whose rows are sorted by their number modulo the stride. Rows are
    filled up and a single output gets a second one, so that an example rounds alike wherever it lies (`products.ROW`).
    """
    import torch
    from torch.nn.functional import pad

    kernel, stride, padding = layer.kernel, layer.stride, layer.padding
    high, wide = sides
    rows = high + (kernel - 1) // stride
    below = rows * stride - x.shape[2] - padding
    x = pad(x, (padding, padding, padding, below)).unflatten(2, (rows, stride)).transpose(2, 3)
    reach = stride * (wide - 1) + 1
    patches = torch.stack([x[..., j : j + reach : stride] for j in range(kernel)], 2).flatten(3)
    if missing := -patches.shape[3] % ROW:
        patches = pad(patches, (0, missing))
    patch, positions, single = patches.shape[3], high * wide, layer.outputs == 1
    if positions % ROW or single:
        delta = pad(delta, (0, -positions % ROW, 0, single))[..., :positions]
    for i, out in enumerate(kernels):
        offset = (i % stride * rows + i // stride) * wide
        shape, strides = (len(x), out.shape[1], positions), (out.shape[1] * patch, patch, 1)
        shifted = patches.as_strided(shape, strides, offset)
        if single:
            out.copy_(torch.bmm(shifted, delta.mT)[..., :1])
        else:
            torch.bmm(shifted, delta.mT, out=out)


def kernel_gradients(layer: Conv2d, x: Tensor, delta: Tensor) -> Tensor:
    """Return the sum of all examples' gradients, (K, o, c, k, k), from input x (K, B, …) and output gradient delta."""
    models = len(x)
    joined, gradient = (tensor.transpose(0, 1).flatten(1, 2) for tensor in (x, delta))
    shape = (models * layer.outputs, layer.inputs, layer.kernel, layer.kernel)
    found = backward_of(layer, models, gradient, joined, joined.new_empty(1).expand(shape), [False, True, False])[1]
    return found.unflatten(0, (models, layer.outputs))


def backward_of(
    layer: Conv2d, models: int, delta: Tensor, x: Tensor, weight: Tensor, wanted: list[bool]
) -> tuple[Tensor, Tensor, Tensor]:
    """Return PyTorch's derivatives of the models' joined convolution by input, weight and bias, as selected by
    ``wanted``.
    """
    import torch

    sizes = [layer.stride] * 2, [layer.padding] * 2, [1] * 2
    return torch.ops.aten.convolution_backward(delta, x, weight, None, *sizes, False, [0] * 2, models, wanted)


def lengths(layer: Conv2d, x: Tensor, delta: Tensor) -> Tensor:
    """Return two norms for each example x (n, c, h, w), delta (n, o, h', w'): float64 (n, 2).

    They are ‖Σ δ_p ⊗ a_p‖, the norm of the joint gradient of weight and bias, and Σ ‖δ_p‖‖a_p‖ over the positions p,
    with a 1 for the bias in each patch a_p. The square of the first is Σ ⟨a_p, a_q⟩⟨δ_p, δ_q⟩ over all positions p and
    q.
    """
    import torch
    from torch.nn.functional import pad

    sides = x.shape[2:]
    of_pixels = pad(_products(x).unflatten(2, sides).unflatten(1, sides), [layer.padding] * 8)
    of_patches = of_pixels.new_ones(len(x), *delta.shape[2:], *delta.shape[2:])
    high, wide = (layer.stride * (side - 1) + 1 for side in delta.shape[2:])
    for i in range(layer.kernel):
        for j in range(layer.kernel):
            down, along = slice(i, i + high, layer.stride), slice(j, j + wide, layer.stride)
            of_patches.add_(of_pixels[:, down, along, down, along])
    of_patches = of_patches.flatten(3).flatten(1, 2)
    of_gradients = _products(delta)
    of_terms = (of_patches.diagonal(dim1=1, dim2=2) * of_gradients.diagonal(dim1=1, dim2=2)).sqrt().sum(1)
    squares = torch.linalg.vecdot(of_patches.flatten(1), of_gradients.flatten(1))
    return torch.stack([squares.clamp_(min=0).sqrt_(), of_terms], 1)


def _products(x: Tensor) -> Tensor:
    """Return ⟨x_p, x_q⟩ of all positions p and q, float64 (n, h·w, h·w), of x (n, c, h, w)."""
    import torch
    from torch.nn.functional import pad

    x = widened(x.flatten(2))
    positions = x.shape[2]
    if missing := -positions % ROW:
        x = pad(x, (0, missing))
    return torch.bmm(x.mT, x)[:, :positions, :positions]
