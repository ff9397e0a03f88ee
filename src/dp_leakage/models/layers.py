"""Layers as data: what a model is made of, with neither state nor code of its own.

A model is a tuple of these. `functional.py` says how they compute, `ensemble.py` holds their parameters, and
`torch_layer` turns one into the `torch.nn` module that it stands for.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:  # the workflow reads the architectures' names on every start, and torch takes a second to import
    import torch
    from torch import nn


@dataclass(frozen=True)
class Linear:
    """y = Wx + b on vectors."""

    inputs: int
    outputs: int


@dataclass(frozen=True)
class Conv2d:
    """A square convolution with bias, zero padding and equal strides."""

    inputs: int
    outputs: int
    kernel: int
    stride: int = 1
    padding: int = 0


@dataclass(frozen=True)
class ReLU:
    """max(x, 0)."""


@dataclass(frozen=True)
class Tanh:
    """tanh(x)."""


@dataclass(frozen=True)
class Sigmoid:
    """1 / (1 + exp(-x))."""


@dataclass(frozen=True)
class SiLU:
    """x · sigmoid(x)."""


@dataclass(frozen=True)
class MaxPool2d:
    """The maximum over windows of ``size`` × ``size`` that do not overlap."""

    size: int


@dataclass(frozen=True)
class AvgPool2d:
    """The mean over windows of ``size`` × ``size`` that do not overlap."""

    size: int


@dataclass(frozen=True)
class Flatten:
    """(channels, height, width) → one vector."""


@dataclass(frozen=True)
class Dropout:
    """Zeroes each feature with probability ``rate`` in [0, 1) while training and scales the rest by 1/(1-rate)."""

    rate: float


Layer = Linear | Conv2d | ReLU | Tanh | Sigmoid | SiLU | MaxPool2d | AvgPool2d | Flatten | Dropout
Layers = tuple[Layer, ...]


def parameter_shapes(layers: Layers) -> dict[str, tuple[int, ...]]:
    """Name → shape of every parameter of one model, in order; the names are those of the exported `nn.Sequential`."""
    return dict(_parameter_shapes(layers))


def _parameter_shapes(layers: Layers) -> Iterator[tuple[str, tuple[int, ...]]]:
    for index, layer in enumerate(layers):
        match layer:
            case Linear(inputs, outputs):
                yield f"{index}.weight", (outputs, inputs)
                yield f"{index}.bias", (outputs,)
            case Conv2d(inputs, outputs, kernel):
                yield f"{index}.weight", (outputs, inputs, kernel, kernel)
                yield f"{index}.bias", (outputs,)


def initial_parameters(
    layers: Layers, generator: "torch.Generator", scheme: str = "torch"
) -> "dict[str, torch.Tensor]":
    """One model's start, float32.

    Args:
        layers: the architecture.
        generator: draws it.
        scheme: ``torch``, uniform in ±1/√fan_in, weights and biases, as PyTorch's layers begin; or ``glorot``, weights
            uniform in ±√(6/(fan_in + fan_out)) and biases zero (Glorot & Bengio 2010), as Keras' layers begin.
    """
    import torch

    parameters: dict[str, torch.Tensor] = {}
    for name, shape in parameter_shapes(layers).items():
        if name.endswith("weight"):  # comes before its bias
            fan_in, fan_out = math.prod(shape[1:]), math.prod(shape) // shape[1]
        if scheme == "glorot":
            bound = math.sqrt(6 / (fan_in + fan_out)) if name.endswith("weight") else 0.0
        else:
            bound = 1 / math.sqrt(fan_in)
        parameters[name] = torch.empty(shape).uniform_(-bound, bound, generator=generator)
    return parameters


def output_shape(layers: Layers, shape: tuple[int, ...]) -> tuple[int, ...]:
    """Shape of one record after all ``layers``, given its ``shape`` before them."""
    for layer in layers:
        match layer:
            case Linear(_, outputs):
                shape = (outputs,)
            case Conv2d(_, outputs, kernel, stride, padding):
                shape = (outputs, *((side + 2 * padding - kernel) // stride + 1 for side in shape[1:]))
            case MaxPool2d(size) | AvgPool2d(size):
                shape = (shape[0], *(side // size for side in shape[1:]))
            case Flatten():
                shape = (math.prod(shape),)
    return shape


def torch_layer(layer: Layer) -> "nn.Module":
    """The `torch.nn` module that ``layer`` stands for, with parameters not yet set."""
    from torch import nn

    match layer:
        case Linear(inputs, outputs):
            return nn.utils.skip_init(nn.Linear, inputs, outputs)
        case Conv2d(inputs, outputs, kernel, stride, padding):
            return nn.utils.skip_init(nn.Conv2d, inputs, outputs, kernel, stride=stride, padding=padding)
        case MaxPool2d(size):
            return nn.MaxPool2d(size)
        case AvgPool2d(size):
            return nn.AvgPool2d(size)
        case Dropout(rate):
            return nn.Dropout(rate)
        case _:
            return getattr(nn, type(layer).__name__)()
