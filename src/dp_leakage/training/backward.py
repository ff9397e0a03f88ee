"""Backward pass of K models. Per-example gradients are formed only if necessary.

Every mechanism is a choice of weights for `BackwardPass.add_weighted_sum` and of noise: 1/B for plain training,
bounding scales for Gaussian noise, von Mises-Fisher coefficients. Each layer decides how to keep its gradients (see
`models.layers`).
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from functools import reduce

import torch
from torch import Tensor
from torch.nn.functional import pad

from dp_leakage.common.errors import UserError
from dp_leakage.models.layers import (
    Flatten,
    Layers,
    Linear,
    Parameters,
    PerExample,
    forward,
    gradients,
    parameter_shapes,
)
from dp_leakage.models.layers.linear import lengths_with_bias
from dp_leakage.models.norms import CANCELLED, LEAST_NORM, lost
from dp_leakage.models.products import ROW, add_rows
from dp_leakage.training.tiles import Layout

AT_ONCE = 1024  # records that are looked at together, so that no temporary array is as large as the data
SLOTS = 1 << 12  # of tiles whose inner products are computed at once
VECTOR = 16  # classes from which PyTorch's softmax of single rows is the faster one (measured on AMD with AVX-512)


@dataclass(frozen=True)
class BackwardPass:
    """The result of one forward and backward pass of K models over B examples each, layer by layer."""

    parts: list[PerExample]

    def norms(self) -> Tensor:
        """Return the ℓ2 norm of each example's whole gradient, (K, B)."""
        norms = [part.norms() for part in self.parts]
        # `vector_norm` along the first dimension of three takes up to ninety times as long.
        return norms[0] if len(norms) == 1 else torch.stack(norms).square_().sum(0).sqrt_()

    def finite(self) -> tuple["BackwardPass", Tensor]:
        """Return the pass and its `norms`, with zero for each gradient whose norm is not finite.

        One record of huge numbers would otherwise stop a private training, and so reveal itself. No scale can take such
        a gradient out of a sum, since 0·∞ is not 0. On a GPU the work must not depend on results, so it always masks.
        """
        norms = self.norms()
        if norms.device.type == "cpu" and math.isfinite(norms.sum()):
            return self, norms
        kept = norms.isfinite()
        return BackwardPass([part.where(kept) for part in self.parts]), norms.where(kept, LEAST_NORM)

    def add_weighted_sum(self, scales: Tensor, total: Parameters) -> None:
        """total += Σ scaleᵢ·gᵢ over the examples of each model: scales (K, B), total name → (K, …)."""
        for part in self.parts:
            part.add_weighted_sum(scales, total)

    def gram(self) -> Tensor:
        """Return inner products of the examples' gradients, float64 (K, B, B)."""
        return reduce(torch.Tensor.add_, (part.gram() for part in self.parts))

    def norms_of_means(self, layout: Layout, dtype: torch.dtype) -> tuple[Tensor, Tensor]:
        """Return the ℓ2 norm of each person's mean gradient, (G,) ``dtype``, at least `LEAST_NORM`; and whether it must
        be formed.

        The norm comes from the inner products of the gradients of the person's records, and includes the rounding error
        of a sum in ``dtype``. It is not finite if one of the gradients is not. If a person's gradients cancel, such a
        norm is useless.
        """
        found = [self._products(places, persons) for size in layout.tiles for places, persons in _parts(*size)]
        of_records = torch.cat(found).index_select(0, layout.slots)
        sizes = layout.sizes.double()
        sums = of_records.new_zeros(sizes.shape[0], 2)
        add_rows(sums, layout.persons, of_records)
        of_means, mean_lengths = sums[:, 0].clamp(min=0).sqrt_().div_(sizes), sums[:, 1].div(sizes)
        cancelled = mean_lengths > CANCELLED * of_means.clamp(min=LEAST_NORM)
        norms = of_means + lost(sizes * (sizes > 1), mean_lengths, dtype)
        return norms.to(dtype).clamp_(min=LEAST_NORM), cancelled

    def _products(self, places: Tensor, persons: Tensor) -> Tensor:
        """Return (t·T, 2) float64: each gradient's inner product with its person's sum, and its length.

        The arguments are `Layout.tiles` of one size.
        """
        gram = BackwardPass([part.taken(places) for part in self.parts]).gram()
        squares = gram.diagonal(dim1=1, dim2=2).clamp(min=0)
        # As numbers at once: a mask of booleans would be converted, which takes almost as long as the comparison.
        same = torch.eq(persons.unsqueeze(2), persons.unsqueeze(1), out=torch.empty_like(gram))
        if not math.isfinite(squares.sum()):  # no factor takes out what is not finite, since 0·∞ is not 0
            finite = squares.isfinite()
            gram = gram.where(finite.unsqueeze(2) & finite.unsqueeze(1), 0.0)
            squares = squares.where(finite, math.inf)
        found = gram.new_empty(*persons.shape, 2)
        torch.sum(gram.mul_(same), 2, out=found[..., 0])
        torch.sqrt(squares, out=found[..., 1])
        return found.flatten(0, 1)

    def directional_derivative(self, direction: Parameters) -> Tensor:
        """Return each example's gradient times ``direction`` (name → (K, …)), (K, B)."""
        return reduce(torch.Tensor.add_, (part.directional_derivative(direction) for part in self.parts))


def _parts(places: Tensor, persons: Tensor) -> Iterator[tuple[Tensor, Tensor]]:
    """Split the tiles of one size into parts, so that copies of their contents need little memory."""
    if len(places):
        count = max(1, SLOTS // places.shape[1])
        yield from zip(places.split(count), persons.split(count), strict=True)


def backpropagate(
    layers: Layers,
    parameters: Parameters,
    x: Tensor,
    y: Tensor,
    dropout: list[torch.Generator] | None = None,
    x_lengths: Tensor | None = None,
) -> BackwardPass:
    """Forward and backward pass of cross-entropy, separately for each example.

    Args:
        layers: the architecture.
        parameters: name → (K, …).
        x: (K, B, …) records of each model.
        y: int64 (K, B) classes.
        dropout: a generator per model if dropout layers are to act.
        x_lengths: (K, B), from `record_lengths`.
    """
    logits, kept = forward(layers, parameters, x, dropout)
    delta = _softmax(logits)
    delta.scatter_(2, y.unsqueeze(2), -1.0, reduce="add")
    if x_lengths is not None:
        first = _first_but_flatten(layers)
        kept[first] = kept[first]._replace(extra=x_lengths)
    return BackwardPass(gradients(layers, parameters, kept, delta))


def record_lengths(layers: Layers, x: Tensor) -> Tensor | None:
    """Return √(‖x‖² + 1) of each record, (n,), if the records x (n, …) are the input of a linear layer; otherwise None.

    They never change, and computing them would be most of the cost of a small model's norms.
    """
    first = layers[_first_but_flatten(layers)]
    if not isinstance(first, Linear):
        return None
    return torch.cat([lengths_with_bias(part.flatten(1)) for part in x.split(AT_ONCE)])


def check_gradients(layers: Layers, x: Tensor) -> None:
    """Refuse layers that leave a parameter without a gradient, since it would get noise and never learn.

    Args:
        layers: the architecture.
        x: (n, …) records; the first one goes through.

    Raises:
        UserError: a parameter has no per-example gradient, or a gradient has a parameter that no layer has.
    """
    if any(layer.foreign for layer in layers):
        return  # its parameters are PyTorch's own list
    shapes = parameter_shapes(layers)
    zeros = {name: x.new_zeros(1, *shape) for name, shape in shapes.items()}
    passed = backpropagate(layers, zeros, x[None, :1], torch.zeros(1, 1, dtype=torch.int64, device=x.device))
    named = [name for part in passed.parts for name in part.names]
    if named != list(shapes):
        lost = sorted(set(shapes) ^ set(named)) or named
        raise UserError(
            f"layer {layers[int(lost[0].partition('.')[0])]!r}: parameter '{lost[0]}' has no per-example gradient; its "
            "function 'gradients' must name every parameter of 'parameter_shapes', in that order"
        )


def _softmax(logits: Tensor) -> Tensor:
    """Return the softmax of logits (K, B, C) along the last dimension.

    PyTorch's CPU kernel is up to thirty times slower for rows shorter than a vector register, unless they are processed
    together.
    """
    if logits.device.type == "cpu" and logits.shape[-1] < VECTOR:
        # Filled up to whole vectors: PyTorch rounds what is left over in another way.
        records = logits.shape[1]
        return pad(logits.mT.contiguous(), (0, -records % ROW)).softmax(1)[..., :records].mT.contiguous()
    return logits.softmax(-1)


def _first_but_flatten(layers: Layers) -> int:
    return next(index for index, layer in enumerate(layers) if not isinstance(layer, Flatten))
