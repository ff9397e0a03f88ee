"""Chains of layers, as in a model or in a residual block.

``prefix`` precedes the layers' numbers in the parameters' names: empty for a model, ``3.body.`` in a block.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from dp_leakage.models.layers.base import Kept, Layer, Parameters, PerExample, Shape
from dp_leakage.models.layers.relu import ReLU

if TYPE_CHECKING:
    from collections.abc import Sequence

    from torch import Generator, Tensor, nn

Layers = tuple[Layer, ...]


def parameter_shapes(layers: Layers, prefix: str = "") -> dict[str, Shape]:
    """Return name → shape of every parameter of one model, in order, with the names of the exported
    `nn.Sequential`.
    """
    return {
        f"{prefix}{index}.{name}": shape
        for index, layer in enumerate(layers)
        for name, shape in layer.parameter_shapes().items()
    }


def fixed(layers: Layers) -> Parameters:
    """Return a model's fixed tensors, name → tensor on the meta device."""
    return {f"{index}.{name}": tensor for index, layer in enumerate(layers) for name, tensor in layer.fixed().items()}


def initial_parameters(layers: Layers, generator: Generator, scheme: str = "torch", prefix: str = "") -> Parameters:
    """Return initial parameters of one model, name → float32.

    Args:
        layers: the architecture.
        generator: draws it.
        scheme: ``torch``, as in PyTorch's layers, or ``glorot``, as in Keras'; see `base.start_of`.
        prefix: see above.
    """
    return {
        f"{prefix}{index}.{name}": value
        for index, layer in enumerate(layers)
        for name, value in layer.initial(generator, scheme).items()
    }


def output_shape(layers: Layers, shape: Shape) -> Shape:
    """Return the shape of one record after all ``layers``, given its ``shape`` before them."""
    for layer in layers:
        shape = layer.output_shape(shape)
    return shape


def activation_floats(layers: Layers, shape: Shape) -> int:
    """Estimate the floats that a forward and backward pass of one record holds, to choose how many records share a
    pass.
    """
    count = 2 * math.prod(shape)
    for layer in layers:
        count += layer.activation_floats(shape)
        shape = layer.output_shape(shape)
    return count


def forward(
    layers: Layers, parameters: Parameters, x: Tensor, dropout: list[Generator] | None = None, prefix: str = ""
) -> tuple[Tensor, list[Kept]]:
    """Return the outputs (K, B, …) of K models on x, and each layer's values for the backward pass.

    x is (K, B, …), or (1, B, …) if all models get the same records. ``dropout`` is one generator per model; without it
    dropout does nothing (evaluation).
    """
    kept: list[Kept] = []
    for index, layer in enumerate(layers):
        if isinstance(layer, ReLU) and index and layers[index - 1].output_is_spare:
            output, extra = x.relu_(), None
        else:
            output, extra = layer.forward(f"{prefix}{index}", parameters, x, dropout)
        kept.append(Kept(x, output, extra))
        x = output
    return x, kept


def pull_back(layers: Layers, parameters: Parameters, kept: list[Kept], delta: Tensor, prefix: str = "") -> Tensor:
    """Return ∂loss/∂input (K, B, …) of all layers from ``delta`` = ∂loss/∂output."""
    for index in reversed(range(len(layers))):
        delta = layers[index].pull_back(f"{prefix}{index}", parameters, kept[index], delta)
    return delta


def backward(
    layers: Layers, parameters: Parameters, kept: list[Kept], delta: Tensor, prefix: str = ""
) -> tuple[Tensor, list[PerExample]]:
    """Return ∂loss/∂input, and the per-example gradients of all parameters in their order."""
    of_layers: list[Sequence[PerExample]] = []
    for index in reversed(range(len(layers))):
        delta, parts = layers[index].backward(f"{prefix}{index}", parameters, kept[index], delta)
        of_layers.append(parts)
    return delta, _in_order(of_layers)


def gradients(layers: Layers, parameters: Parameters, kept: list[Kept], delta: Tensor) -> list[PerExample]:
    """As `backward`, but stops at the first layer with parameters, since the gradient of its input is not needed."""
    first = next(index for index, layer in enumerate(layers) if layer.has_parameters)
    of_layers: list[Sequence[PerExample]] = []
    for index in range(len(layers) - 1, first, -1):
        delta, parts = layers[index].backward(str(index), parameters, kept[index], delta)
        of_layers.append(parts)
    of_layers.append(layers[first].gradients(str(first), parameters, kept[first], delta))
    return _in_order(of_layers)


def module(layers: Layers) -> nn.Sequential:
    """Return the layers as a PyTorch module, with parameters not yet set."""
    from torch import nn

    return nn.Sequential(*(layer.module() for layer in layers))


def _in_order(of_layers: Sequence[Sequence[PerExample]]) -> list[PerExample]:
    return [part for parts in reversed(of_layers) for part in parts]
