"""How layers compute, for K models at once: forward, and back from the loss to each layer's output.

Tensors are (K, B, …): model, record, features. No autograd: `forward` keeps what `pull_back` needs, and the
parameters' gradients are left to `training.record`, which needs them per record, weighted or summed.
"""

import math
from typing import NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor

from dp_leakage.models.layers import (
    AvgPool2d,
    Conv2d,
    Dropout,
    Flatten,
    Layer,
    Layers,
    Linear,
    MaxPool2d,
    ReLU,
    Sigmoid,
    SiLU,
    Tanh,
    output_shape,
)
from dp_leakage.models.pooling import max_pool, max_pool_back
from dp_leakage.models.products import affine, times

Parameters = dict[str, Tensor]


class Kept(NamedTuple):
    """What one layer's backward pass needs: its input, its output, and one tensor of its own (indices, a mask)."""

    input: Tensor
    output: Tensor
    extra: Tensor | None = None


def forward(
    layers: Layers, parameters: Parameters, x: Tensor, dropout: list[torch.Generator] | None = None
) -> tuple[Tensor, list[Kept]]:
    """Logits (K, B, C) of K models on x (K, B, …) or, the same records for all, (1, B, …); and what each layer keeps.

    ``dropout`` is one generator per model; without it dropout does nothing (evaluation).
    """
    kept = []
    for index, layer in enumerate(layers):
        if isinstance(layer, ReLU) and index and isinstance(layers[index - 1], Linear | Conv2d):
            output, extra = x.relu_(), None  # in place: nobody needs that layer's output before it
        else:
            output, extra = _apply(layer, index, parameters, x, dropout)
        kept.append(Kept(x, output, extra))
        x = output
    return x, kept


def _apply(
    layer: Layer, index: int, parameters: Parameters, x: Tensor, dropout: list[torch.Generator] | None
) -> tuple[Tensor, Tensor | None]:
    match layer:
        case Linear():
            weight, bias = parameters[f"{index}.weight"], parameters[f"{index}.bias"]
            return affine(x.expand(weight.shape[0], -1, -1), weight, bias), None
        case Conv2d():
            return convolve(layer, parameters[f"{index}.weight"], parameters[f"{index}.bias"], x), None
        case ReLU():
            return x.relu(), None
        case Tanh():
            return x.tanh(), None
        case Sigmoid():
            return x.sigmoid(), None
        case SiLU():
            return F.silu(x), None
        case MaxPool2d(size):
            return max_pool(x, size)
        case AvgPool2d(size):
            return F.avg_pool2d(x.flatten(0, 1), size).unflatten(0, x.shape[:2]), None
        case Flatten():
            return x.flatten(2), None
        case Dropout(rate):
            if dropout is None:
                return x, None
            mask = dropout_mask(x, rate, dropout)
            return x * mask, mask
    raise TypeError(f"no such layer: {layer!r}")


def pull_back(layer: Layer, index: int, parameters: Parameters, kept: Kept, delta: Tensor) -> Tensor:
    """∂loss/∂input (K, B, …) of a layer from ``delta`` = ∂loss/∂output; may overwrite ``delta``."""
    aten = torch.ops.aten
    match layer:
        case Linear():
            return times(delta, parameters[f"{index}.weight"])
        case Conv2d():
            return convolve_back(layer, parameters[f"{index}.weight"], kept.input, delta)
        case ReLU():
            return aten.threshold_backward(delta, kept.output, 0)
        case Tanh():
            return aten.tanh_backward(delta, kept.output)
        case Sigmoid():
            return aten.sigmoid_backward(delta, kept.output)
        case SiLU():
            return aten.silu_backward(delta, kept.input)
        case MaxPool2d(size):
            return max_pool_back(delta, kept.input, size, kept.extra)
        case AvgPool2d(size):
            back = aten.avg_pool2d_backward(
                delta.flatten(0, 1),
                kept.input.flatten(0, 1),
                [size] * 2,
                [size] * 2,
                [0] * 2,
                False,
                True,
                None,
            )
            return back.unflatten(0, delta.shape[:2])
        case Flatten():
            return delta.reshape(kept.input.shape)
        case Dropout():
            return delta if kept.extra is None else delta.mul_(kept.extra)
    raise TypeError(f"no such layer: {layer!r}")


def activation_floats(layers: Layers, shape: tuple[int, ...]) -> int:
    """Floats that a forward and backward pass of one record holds, roughly: for choosing how many go at once."""
    count = 2 * math.prod(shape)
    for layer in layers:
        before, shape = shape, output_shape((layer,), shape)
        count += 3 * math.prod(shape)
        if isinstance(layer, Conv2d):  # patches, and kernels' gradients twice
            count += layer.kernel * math.prod(before) + 2 * layer.outputs * layer.inputs * layer.kernel**2
    return count


def dropout_mask(x: Tensor, rate: float, generators: list[torch.Generator]) -> Tensor:
    """0 with probability ``rate``, else 1/(1-rate); (K, B, …), each model's part from its own generator."""
    mask = torch.empty(len(generators), *x.shape[1:], dtype=x.dtype, device=x.device)
    for row, generator in zip(mask, generators, strict=True):
        row.bernoulli_(1 - rate, generator=generator)
    return mask.div_(1 - rate)


def convolve(layer: Conv2d, weight: Tensor, bias: Tensor, x: Tensor) -> Tensor:
    """The convolution of K models as one, with a group of channels per model."""
    models = len(weight)
    joined = x.expand(models, *x.shape[1:]).transpose(0, 1).flatten(1, 2)
    z = F.conv2d(joined, weight.flatten(0, 1), bias.flatten(), layer.stride, layer.padding, groups=models)
    return z.unflatten(1, (models, layer.outputs)).transpose(0, 1)


def convolve_back(layer: Conv2d, weight: Tensor, x: Tensor, delta: Tensor) -> Tensor:
    """∂loss/∂input of `convolve`."""
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
