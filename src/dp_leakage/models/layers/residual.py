"""A layer that holds layers: the residual block (He et al. 2016)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from dp_leakage.models.layers import sequence
from dp_leakage.models.layers.base import Kept, Layer, Parameters, PerExample, Shape

if TYPE_CHECKING:
    from torch import Generator, Tensor, nn


@dataclass(frozen=True)
class Residual(Layer):
    """body(x) + shortcut(x); an empty shortcut is x itself. Both must give the same shape."""

    body: tuple[Layer, ...]
    shortcut: tuple[Layer, ...] = ()

    output_is_spare: ClassVar[bool] = True

    @property
    def has_parameters(self) -> bool:  # type: ignore[override]  # of what it holds
        """As in `Layer`."""
        return any(layer.has_parameters for layer in (*self.body, *self.shortcut))

    @property
    def draws(self) -> bool:
        """As in `Layer`."""
        return any(layer.draws for layer in (*self.body, *self.shortcut))

    def parameter_shapes(self) -> dict[str, Shape]:
        """As in `Layer`."""
        return sequence.parameter_shapes(self.body, "body.") | sequence.parameter_shapes(self.shortcut, "shortcut.")

    def initial(self, generator: Generator, scheme: str) -> Parameters:
        """As in `Layer`."""
        body = sequence.initial_parameters(self.body, generator, scheme, "body.")
        return body | sequence.initial_parameters(self.shortcut, generator, scheme, "shortcut.")

    def output_shape(self, shape: Shape) -> Shape:
        """As in `Layer`."""
        return sequence.output_shape(self.body, shape)

    def activation_floats(self, shape: Shape) -> int:
        """As in `Layer`."""
        parts = (self.body, self.shortcut)
        return super().activation_floats(shape) + sum(sequence.activation_floats(part, shape) for part in parts)

    def forward(
        self, name: str, parameters: Parameters, x: Tensor, dropout: list[Generator] | None
    ) -> tuple[Tensor, tuple[list[Kept], list[Kept]]]:
        """As in `Layer`; keeps what its layers keep."""
        body, in_body = sequence.forward(self.body, parameters, x, dropout, f"{name}.body.")
        shortcut, in_shortcut = sequence.forward(self.shortcut, parameters, x, dropout, f"{name}.shortcut.")
        return body + shortcut, (in_body, in_shortcut)

    def pull_back(self, name: str, parameters: Parameters, kept: Kept, delta: Tensor) -> Tensor:
        """As in `Layer`."""
        in_body, in_shortcut = kept.extra
        body = sequence.pull_back(self.body, parameters, in_body, delta, f"{name}.body.")
        return body + sequence.pull_back(self.shortcut, parameters, in_shortcut, delta, f"{name}.shortcut.")

    def gradients(self, name: str, parameters: Parameters, kept: Kept, delta: Tensor) -> list[PerExample]:
        """As in `Layer`."""
        return self.backward(name, parameters, kept, delta)[1]

    def backward(self, name: str, parameters: Parameters, kept: Kept, delta: Tensor) -> tuple[Tensor, list[PerExample]]:
        """As in `Layer`, in a single backward pass."""
        in_body, in_shortcut = kept.extra
        body, of_body = sequence.backward(self.body, parameters, in_body, delta, f"{name}.body.")
        shortcut, of_shortcut = sequence.backward(self.shortcut, parameters, in_shortcut, delta, f"{name}.shortcut.")
        return body + shortcut, of_body + of_shortcut

    def module(self) -> nn.Module:
        """As in `Layer`."""
        from torch import nn

        class Module(nn.Module):
            def __init__(_, body: nn.Module, shortcut: nn.Module) -> None:
                super().__init__()
                _.body, _.shortcut = body, shortcut

            def forward(_, x: Tensor) -> Tensor:
                return _.body(x) + _.shortcut(x)

        return Module(sequence.module(self.body), sequence.module(self.shortcut))
