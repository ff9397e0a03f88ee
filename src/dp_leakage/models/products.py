"""The three matrix products of a linear layer, for K models at once.

On a CPU, PyTorch's (batched) products go to MKL. For large float32 layers oneDNN is faster, by up to a factor of two on
AMD's processors, where MKL leaves half of the vector unit idle. For small layers its preparation costs more than it
gains. The choice depends only on the layer, never on K, so a model's bits do not depend on the other models.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import reduce
from typing import TYPE_CHECKING

from dp_leakage.common.kernels import has, linear

if TYPE_CHECKING:
    from torch import Tensor

ONEDNN_FROM = 1 << 13  # number of weights from which oneDNN is faster (measured: not at 50×100, but at 50×256)
# In numbers of float32, or records. On a CPU, kernels round alike for every model whose part of memory begins at a
# multiple of this.
CPU_MULTIPLE = 8
# Numbers. On a CPU, kernels round a record alike wherever it lies in a pass if a row of its numbers has a multiple of
# so many, and if there are two outputs (measured; 8 are too few). Other rows are filled up with zeros: those of linear
# layers, the positions of convolutions.
ROW = 16
# The most terms that one product adds up for each number: a longer sum is cut. `privacy.clipping` allows for the
# rounding of so many, so fewer would let gradients be longer. But steps of convolutions take 8 % longer with 512 than
# uncut, 15 % with 256 (measured).
CHAIN = 512
WIDE = 4  # ratio of outputs to inputs from which a weight gradient is cheaper to form transposed (measured)


def has_onednn() -> bool:
    """Return whether this PyTorch can call oneDNN's product."""
    return has("linear")


def takes_one_at_a_time(weight: Tensor) -> bool:
    """Return whether a layer with this weight (…, o, i) computes its products for one model after the other."""
    import torch

    *_, outputs, inputs = weight.shape
    large = outputs * inputs >= ONEDNN_FROM
    return large and weight.dtype == torch.float32 and weight.device.type == "cpu" and has_onednn()


def affine(x: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
    """xWᵀ + b: x (K, B, i), weight (K, o, i), bias (K, o) → (K, B, o)."""
    if takes_one_at_a_time(weight):
        return _each(linear, x, weight, bias)
    import torch
    from torch.nn.functional import pad

    outputs, inputs = weight.shape[1:]
    if x.device.type == "cpu" and (-inputs % ROW or outputs == 1):
        x, weight = pad(x, (0, -inputs % ROW)), pad(weight, (0, -inputs % ROW, 0, outputs == 1))
        bias = pad(bias, (0, outputs == 1))
    return torch.baddbmm(bias.unsqueeze(1), x, weight.mT)[..., :outputs]


def times(delta: Tensor, weight: Tensor) -> Tensor:
    """δW: delta (K, B, o), weight (K, o, i) → (K, B, i)."""
    if takes_one_at_a_time(weight):
        return _each(linear, delta, weight.mT)
    import torch
    from torch.nn.functional import pad

    inputs = weight.shape[2]
    if weight.device.type == "cpu" and -inputs % ROW:
        weight = pad(weight, (0, -inputs % ROW))
    return torch.bmm(delta, weight)[..., :inputs]


def add_outer(total: Tensor, delta: Tensor, x: Tensor) -> None:
    """total += δᵀx, `CHAIN` records at a time: total (K, o, i), delta (K, B, o), x (K, B, i)."""
    for left, right in zip(delta.split(CHAIN, 1), x.split(CHAIN, 1), strict=True):
        _add_outer(total, left, right)


def _add_outer(total: Tensor, delta: Tensor, x: Tensor) -> None:
    if takes_one_at_a_time(total):
        for into, left, right in zip(total, delta, x, strict=True):
            into.add_(_onednn_outer(left, right))
    else:
        import torch
        from torch.nn.functional import pad

        # Every model's product begins at a multiple of eight numbers, since MKL rounds otherwise elsewhere. Into views
        # of a flat buffer, `baddbmm_` would fall apart into one product for each model.
        _, outputs, inputs = total.shape
        missing = -outputs % (CPU_MULTIPLE // math.gcd(CPU_MULTIPLE, inputs))
        padded = pad(delta, (0, missing)) if missing else delta
        total.add_(torch.bmm(padded.mT, x)[:, :outputs])


def combined(scales: Tensor, vectors: Tensor) -> Tensor:
    """Σ scaleᵢ·vᵢ, `CHAIN` of them at a time: scales (K, B), vectors (K, B, d) → (K, 1, d)."""
    import torch

    pairs = zip(scales.unsqueeze(1).split(CHAIN, 2), vectors.split(CHAIN, 1), strict=True)
    return reduce(torch.Tensor.add_, (torch.bmm(*pair) for pair in pairs))


def add_rows(total: Tensor, places: Tensor, rows: Tensor) -> None:
    """Compute total[places[i]] += rows[i] for each i in turn: total (n, d), places int64 (r,), rows (r, d)."""
    if total.device.type == "cpu":
        total.index_add_(0, places, rows)
    else:  # on a GPU, `index_add_` adds in an order that differs from run to run
        total.index_put_((places,), rows, accumulate=True)


def _onednn_outer(delta: Tensor, x: Tensor) -> Tensor:
    """δᵀx. oneDNN copies a transposed left operand, so the smaller one should be on the left."""
    if delta.shape[1] >= WIDE * x.shape[1]:
        return linear(x.t(), delta.t()).t()
    return linear(delta.t(), x.t())


def _each(product: Callable[..., Tensor], *operands: Tensor) -> Tensor:
    import torch

    if len(operands[0]) == 1:
        return product(*(operand[0] for operand in operands))[None]
    return torch.stack([product(*one) for one in zip(*operands, strict=True)])
