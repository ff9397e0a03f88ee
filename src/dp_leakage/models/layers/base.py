"""What a layer is: data that knows its shapes, how it begins, how it computes, and its way back.

Tensors are (K, B, …): model, record, features. A layer holds no state: ``parameters`` maps full names
(``0.weight``, ``3.body.0.bias``) to (K, …), and ``name`` says where the layer stands (``0``, ``3.body.0``). There is no
autograd: the forward pass keeps what the backward pass needs, and the parameters' gradients stay per example.

The workflow reads shapes while it plans, and importing PyTorch takes a second: so the files of this folder import it
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
    """What one layer's backward pass needs: its input, its output, and what else it kept (indices, a mask, …)."""

    input: Tensor
    output: Tensor
    extra: Any = None


class PerExample(Protocol):
    """The gradients of one layer's parameters by K models over B examples each, formed or not.

    Attributes:
        names: the parameters, the weight first. Their first axis (after K) counts rows: a neuron's or a kernel's
            weights and its bias.
    """

    @property
    def names(self) -> tuple[str, ...]:
        """Of the layer's parameters."""

    @property
    def examples(self) -> int:
        """B."""

    def norms(self) -> Tensor:
        """(K, B): ℓ2 norm of each example's gradient of these parameters, right as `norms.norm` is."""

    def add_weighted_sum(self, scales: Tensor, total: Parameters) -> None:
        """total += Σ scaleᵢ·gᵢ over the examples of each model: scales (K, B), total name → (K, …)."""

    def gram(self) -> Tensor:
        """(K, B, B) float64: inner products of the examples' gradients."""

    def directional_derivative(self, direction: Parameters) -> Tensor:
        """(K, B): each example's gradient times ``direction`` (name → (K, …))."""

    def rows(self, examples: slice = ALL) -> Tensor:
        """(K, n, rows, d): the gradients themselves, a row's numbers in the order of ``names``."""


class Layer:
    """What every layer is; its subclasses are frozen dataclasses.

    A layer with parameters names them in ``parameter_shapes``, sets ``has_parameters`` and returns their gradients from
    ``gradients``; `training.record.check_gradients` stops a training where one is forgotten.
    """

    has_parameters: ClassVar[bool] = False
    # Whether a following layer may overwrite its output: a new tensor that its own backward pass does not read.
    output_is_spare: ClassVar[bool] = False

    @property
    def draws(self) -> bool:
        """Whether it draws random numbers while training."""
        return False

    @property
    def alone(self) -> bool:
        """Whether models go through it one at a time on a CPU.

        Because it gains nothing from company, or because a kernel rounds differently at a tensor's end, so that a
        model's bytes would depend on its company.
        """
        return True

    def parameter_shapes(self) -> dict[str, Shape]:
        """Own name → shape of each parameter of one model, in order; as in the state of `module`."""
        return {}

    def initial(self, generator: Generator, scheme: str) -> Parameters:
        """One model's start, own name → float32; see `sequence.initial_parameters`."""
        return {}

    def output_shape(self, shape: Shape) -> Shape:
        """Shape of one record after the layer, given its ``shape`` before."""
        return shape

    def activation_floats(self, shape: Shape) -> int:
        """Floats that a forward and backward pass of one record of ``shape`` holds, roughly."""
        return 3 * math.prod(self.output_shape(shape))

    def forward(
        self, name: str, parameters: Parameters, x: Tensor, dropout: list[Generator] | None
    ) -> tuple[Tensor, Any]:
        """The output (K, B, …), and what to keep besides; ``dropout`` is one generator per model while training."""
        raise NotImplementedError

    def pull_back(self, name: str, parameters: Parameters, kept: Kept, delta: Tensor) -> Tensor:
        """∂loss/∂input (K, B, …) from ``delta`` = ∂loss/∂output, which stays as it is."""
        raise NotImplementedError

    def gradients(self, name: str, parameters: Parameters, kept: Kept, delta: Tensor) -> Sequence[PerExample]:
        """The per-example gradients of its parameters, in the order of ``parameter_shapes``."""
        return []

    def backward(
        self, name: str, parameters: Parameters, kept: Kept, delta: Tensor
    ) -> tuple[Tensor, Sequence[PerExample]]:
        """`pull_back` and `gradients` in one."""
        return self.pull_back(name, parameters, kept, delta), self.gradients(name, parameters, kept, delta)

    def module(self) -> nn.Module:
        """The `torch.nn` module that it stands for, with parameters not yet set."""
        raise NotImplementedError


def start_of(shapes: dict[str, Shape], generator: Generator, scheme: str) -> Parameters:
    """The start of a layer with ``weight`` (o, i, …) and ``bias`` (o,), float32.

    Args:
        shapes: of the two.
        generator: draws the weight, then the bias.
        scheme: ``torch``, uniform in ±1/√fan_in, as PyTorch's layers begin; or ``glorot``, weights uniform in
            ±√(6/(fan_in + fan_out)) and biases zero (Glorot & Bengio 2010), as Keras' layers begin.
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


def pooled_shape(shape: Shape, size: int, stride: int, padding: int) -> Shape:
    """Shape of a record (channels, height, width) after pooling."""
    return (shape[0], *((side + 2 * padding - size) // stride + 1 for side in shape[1:]))
