"""The linear layer. Its per-example gradients are never formed.

With input a and output gradient δ, an example's weight gradient is δaᵀ and its bias gradient δ. So the squared norm is
‖δ‖²(‖a‖²+1), a weighted sum over examples is one matrix product (s·δ)ᵀa, and inner products of gradients need only the
inner products of a and of δ (Goodfellow 2015, Rochette et al. 2019).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, ClassVar

from dp_leakage.models.layers.base import ALL, Kept, Layer, Parameters, Shape, start_of, taken
from dp_leakage.models.norms import norm, widened
from dp_leakage.models.products import add_outer, affine, times

if TYPE_CHECKING:
    from torch import Generator, Tensor, nn


@dataclass(frozen=True)
class Linear(Layer):
    """y = Wx + b on vectors."""

    inputs: int
    outputs: int

    has_parameters: ClassVar[bool] = True
    output_is_spare: ClassVar[bool] = True

    @property
    def alone(self) -> bool:
        """Return whether models take turns: batching changes products of a single column (on some processors, of a
        single input) with adjacent memory.
        """
        return 1 in (self.inputs, self.outputs)

    def parameter_shapes(self) -> dict[str, Shape]:
        """As in `Layer`."""
        return {"weight": (self.outputs, self.inputs), "bias": (self.outputs,)}

    def initial(self, generator: Generator, scheme: str) -> Parameters:
        """As in `Layer`."""
        return start_of(self.parameter_shapes(), generator, scheme)

    def output_shape(self, shape: Shape) -> Shape:
        """As in `Layer`."""
        return (self.outputs,)

    def forward(
        self, name: str, parameters: Parameters, x: Tensor, dropout: list[Generator] | None
    ) -> tuple[Tensor, None]:
        """As in `Layer`."""
        weight = parameters[f"{name}.weight"]
        return affine(x.expand(weight.shape[0], -1, -1), weight, parameters[f"{name}.bias"]), None

    def pull_back(self, name: str, parameters: Parameters, kept: Kept, delta: Tensor) -> Tensor:
        """As in `Layer`."""
        return times(delta, parameters[f"{name}.weight"])

    def gradients(self, name: str, parameters: Parameters, kept: Kept, delta: Tensor) -> list[LinearGradients]:
        """As in `Layer`; ``kept.extra`` holds the lengths of the inputs if they are known (see `record_lengths`)."""
        return [LinearGradients((f"{name}.weight", f"{name}.bias"), kept.input, delta, kept.extra)]

    def module(self) -> nn.Module:
        """As in `Layer`."""
        from torch import nn

        return nn.utils.skip_init(nn.Linear, self.inputs, self.outputs)


@dataclass(frozen=True)
class LinearGradients:
    """Per-example gradients of one linear layer; see `PerExample`.

    Attributes:
        names: weight and bias.
        input: (K, B, i).
        delta: (K, B, o), the loss' gradient with respect to the output.
        lengths: (K, B), √(‖input‖² + 1) if it is already known.
    """

    names: tuple[str, str]
    input: Tensor
    delta: Tensor
    lengths: Tensor | None = None

    @property
    def examples(self) -> int:
        """B."""
        return self.delta.shape[1]

    def norms(self) -> Tensor:
        """As in `PerExample`."""
        lengths = lengths_with_bias(self.input) if self.lengths is None else self.lengths
        return norm(self.delta).mul_(lengths)

    def where(self, kept: Tensor) -> LinearGradients:
        """As in `PerExample`."""
        kept = kept.unsqueeze(2)
        return replace(self, input=self.input.where(kept, 0.0), delta=self.delta.where(kept, 0.0))

    def add_weighted_sum(self, scales: Tensor, total: Parameters) -> None:
        """As in `PerExample`."""
        weight, bias = (total[name] for name in self.names)
        scaled = self.delta * scales.unsqueeze(2)
        add_outer(weight, scaled, self.input)
        bias.add_(scaled.sum(1))

    def gram(self) -> Tensor:
        """As in `PerExample`."""
        import torch

        delta, inputs = widened(self.delta), widened(self.input)
        return torch.bmm(inputs, inputs.mT).add_(1).mul_(torch.bmm(delta, delta.mT))

    def directional_derivative(self, direction: Parameters) -> Tensor:
        """As in `PerExample`."""
        outputs = affine(self.input, *(direction[name] for name in self.names))
        return outputs.mul_(self.delta).sum(-1)

    def rows(self, examples: slice = ALL) -> Tensor:
        """As in `PerExample`: (K, n, o, i + 1)."""
        from torch.nn.functional import pad

        return self.delta[:, examples, :, None] * pad(self.input[:, examples], (0, 1), value=1.0)[:, :, None, :]

    def taken(self, places: Tensor) -> LinearGradients:
        """As in `PerExample`."""
        return LinearGradients(self.names, taken(self.input, places), taken(self.delta, places))


def lengths_with_bias(x: Tensor) -> Tensor:
    """Return √(‖x‖² + 1) along the last dimension: the length of a linear layer's input with the 1 for the bias."""
    return norm(x).square_().add_(1).sqrt_()
