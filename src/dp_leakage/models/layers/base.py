"""Interface of a layer: its shapes, initial parameters, forward pass and backward pass.

Tensors are (K, B, …): model, record, features. A layer holds no state: ``parameters`` maps full names (``0.weight``,
``3.body.0.bias``) to (K, …), and ``name`` is the layer's position (``0``, ``3.body.0``). There is no autograd: the
forward pass keeps what the backward pass needs, and the parameters' gradients stay per example.

The workflow reads shapes while it plans, and importing PyTorch takes a second. So the files of this folder import it
inside their functions.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, Protocol

if TYPE_CHECKING:
    from collections.abc import Sequence

    from torch import Generator, Tensor, nn

Shape = tuple[int, ...]
Parameters = dict[str, "Tensor"]
ALL = slice(None)


class Kept(NamedTuple):
    """Inputs of one layer's backward pass: the layer's input, output, and further values (indices, a mask, …)."""

    input: Tensor
    output: Tensor
    extra: Any = None


class PerExample(Protocol):
    """Gradients of one layer's parameters, for K models over B examples each, formed explicitly or not.

    Attributes:
        names: the parameters, the weight first. Their first axis (after K) counts rows; a row is a neuron's or a
            kernel's weights with its bias.
    """

    @property
    def names(self) -> tuple[str, ...]:
        """Return the names of the layer's parameters."""

    @property
    def examples(self) -> int:
        """B."""

    def norms(self) -> Tensor:
        """(K, B): ℓ2 norm of each example's gradient of these parameters, as precise as `norms.norm`."""

    def where(self, kept: Tensor) -> PerExample:
        """Return the gradients with zeros for the examples outside ``kept``, bool (K, B), even where they were not
        finite.
        """

    def add_weighted_sum(self, scales: Tensor, total: Parameters) -> None:
        """total += Σ scaleᵢ·gᵢ over the examples of each model: scales (K, B), total name → (K, …)."""

    def gram(self) -> Tensor:
        """(K, B, B) float64: inner products of the examples' gradients."""

    def directional_derivative(self, direction: Parameters) -> Tensor:
        """(K, B): each example's gradient times ``direction`` (name → (K, …))."""

    def rows(self, examples: slice = ALL) -> Tensor:
        """(K, n, rows, d): gradients of the n selected examples; a row holds its entries of each parameter in turn,
        in the order of ``names``."""

    def taken(self, places: Tensor) -> PerExample:
        """Return the gradients of the examples at ``places``, int64 (t, T) from 0 to K·B − 1: (t, T) in place of
        (K, B).
        """


class OnDemand:
    """Gradients that are formed only if more than their weighted sum is requested; see `PerExample`.

    A subclass adds ``names``, ``examples``, ``formed`` and ``add_weighted_sum``, and overrides methods that can avoid
    forming gradients.
    """

    @property
    def formed(self) -> PerExample:
        """Return the gradients themselves."""
        raise NotImplementedError

    def norms(self) -> Tensor:
        """As in `PerExample`."""
        return self.formed.norms()

    def where(self, kept: Tensor) -> PerExample:
        """As in `PerExample`."""
        return self.formed.where(kept)

    def gram(self) -> Tensor:
        """As in `PerExample`."""
        return self.formed.gram()

    def directional_derivative(self, direction: Parameters) -> Tensor:
        """As in `PerExample`."""
        return self.formed.directional_derivative(direction)

    def rows(self, examples: slice = ALL) -> Tensor:
        """As in `PerExample`."""
        return self.formed.rows(examples)

    def taken(self, places: Tensor) -> PerExample:
        """As in `PerExample`."""
        return self.formed.taken(places)


class Layer:
    """The base class of all layers. Subclasses are frozen dataclasses.

    A layer with parameters names them in ``parameter_shapes``, sets ``has_parameters`` and returns their gradients from
    ``gradients``; `training.backward.check_gradients` stops a training if one is missing.
    """

    has_parameters: ClassVar[bool] = False
    # Whether it is a model of the user's, of which nothing is known: one model at a time on every device, no graphs.
    foreign: ClassVar[bool] = False
    # Whether the next layer may overwrite its output: it is a new tensor that its own backward pass does not read.
    output_is_spare: ClassVar[bool] = False

    @property
    def draws(self) -> bool:
        """Return whether the layer draws random numbers during training."""
        return False

    @property
    def alone(self) -> bool:
        """Return whether models are processed one at a time on a CPU.

        The reasons are that batching over models gains nothing, or that a kernel rounds differently at a tensor's end,
        so that a model's bytes would depend on the other models.
        """
        return True

    def parameter_shapes(self) -> dict[str, Shape]:
        """Return the layer's own name → shape of each parameter of one model, in the order of the state of `module`."""
        return {}

    def fixed(self) -> Parameters:
        """Return tensors of a model that no gradient changes, own name → tensor on the meta device."""
        return {}

    def initial(self, generator: Generator, scheme: str) -> Parameters:
        """Return initial parameters of one model, own name → float32, and the `fixed` tensors; see
        `sequence.initial_parameters`.
        """
        return {}

    def output_shape(self, shape: Shape) -> Shape:
        """Return the shape of one record after the layer, given its ``shape`` before."""
        return shape

    def activation_floats(self, shape: Shape) -> int:
        """Roughly how many floats a forward and backward pass of one record of ``shape`` holds."""
        return 3 * math.prod(self.output_shape(shape))

    @property
    def formed_floats(self) -> int:
        """Return the number of floats in the formed gradients of one record, if `activation_floats` omits them."""
        return 0

    def forward(
        self, name: str, parameters: Parameters, x: Tensor, dropout: list[Generator] | None
    ) -> tuple[Tensor, Any]:
        """Return the output (K, B, …), and further values for the backward pass. ``dropout`` is one generator per
        model in training.
        """
        raise NotImplementedError

    def pull_back(self, name: str, parameters: Parameters, kept: Kept, delta: Tensor) -> Tensor:
        """∂loss/∂input (K, B, …) from ``delta`` = ∂loss/∂output, which stays as it is."""
        raise NotImplementedError

    def gradients(self, name: str, parameters: Parameters, kept: Kept, delta: Tensor) -> Sequence[PerExample]:
        """Return the per-example gradients of its parameters, in the order of ``parameter_shapes``."""
        return []

    def backward(
        self, name: str, parameters: Parameters, kept: Kept, delta: Tensor
    ) -> tuple[Tensor, Sequence[PerExample]]:
        """`pull_back` and `gradients` in one."""
        return self.pull_back(name, parameters, kept, delta), self.gradients(name, parameters, kept, delta)

    def module(self) -> nn.Module:
        """Return the equivalent `torch.nn` module, with parameters not yet set."""
        raise NotImplementedError


def start_of(shapes: dict[str, Shape], generator: Generator, scheme: str) -> Parameters:
    """Return initial parameters of a layer with ``weight`` (o, i, …) and ``bias`` (o,), float32.

    Args:
        shapes: of the two.
        generator: draws the weight, then the bias.
        scheme: ``torch``, uniform in ±1/√fan_in, as in PyTorch's layers; or ``glorot``, weights uniform in ±√(6/(fan_in
            + fan_out)) and biases zero (Glorot & Bengio 2010), as in Keras' layers.
    """
    import torch

    weight = shapes["weight"]
    fan_in, fan_out = math.prod(weight[1:]), math.prod(weight) // weight[1]
    bounds = dict.fromkeys(shapes, 1 / math.sqrt(fan_in))
    if scheme == "glorot":
        bounds = {"weight": math.sqrt(6 / (fan_in + fan_out)), "bias": 0.0}
    return {
        name: torch.empty(shape).uniform_(-bounds[name], bounds[name], generator=generator)
        for name, shape in shapes.items()
    }


def taken(values: Tensor, places: Tensor, first: int = 0) -> Tensor:
    """Select from values (…, K, B, …), with K as the axis ``first``, the entries at places (t, T) among all K·B."""
    return values.flatten(first, first + 1).index_select(first, places.flatten()).unflatten(first, places.shape)


def pooled_shape(shape: Shape, size: int, stride: int, padding: int) -> Shape:
    """Return the shape of a record (channels, height, width) after pooling."""
    return (shape[0], *((side + 2 * padding - size) // stride + 1 for side in shape[1:]))
