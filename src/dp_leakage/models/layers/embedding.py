"""Embedding of categorical columns: a vector for each category instead of a column for each."""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import accumulate
from typing import TYPE_CHECKING, ClassVar

from dp_leakage.models.layers.base import ALL, Kept, Layer, Parameters, Shape, taken
from dp_leakage.models.norms import norm, widened
from dp_leakage.models.products import CHAIN, add_rows

if TYPE_CHECKING:
    from torch import Generator, Tensor, nn


@dataclass(frozen=True)
class Embedding(Layer):
    """The first columns hold category numbers; each becomes a vector. The other columns follow unchanged.

    Attributes:
        levels: the number of categories of each categorical column. A number outside 0 to levels − 1 counts as the
            nearest one.
        width: length of the vectors.
    """

    levels: tuple[int, ...]
    width: int

    has_parameters: ClassVar[bool] = True

    def parameter_shapes(self) -> dict[str, Shape]:
        """As in `Layer`: the vectors of all columns, one below the other."""
        return {"weight": (sum(self.levels), self.width)}

    def initial(self, generator: Generator, scheme: str) -> Parameters:
        """Draw from a normal distribution, as PyTorch's embedding; ``glorot``: uniform in ±0.05, as Keras'."""
        import torch

        weight = torch.empty(sum(self.levels), self.width)
        if scheme == "glorot":
            return {"weight": weight.uniform_(-0.05, 0.05, generator=generator)}
        return {"weight": weight.normal_(generator=generator)}

    def output_shape(self, shape: Shape) -> Shape:
        """As in `Layer`."""
        return (shape[0] - len(self.levels) + len(self.levels) * self.width,)

    def forward(
        self, name: str, parameters: Parameters, x: Tensor, dropout: list[Generator] | None
    ) -> tuple[Tensor, Tensor]:
        """As in `Layer`; keeps the rows of the vectors, int64 (K, B, columns)."""
        import torch

        weight = parameters[f"{name}.weight"]
        x = x.expand(len(weight), *x.shape[1:])
        places = places_of(x, self.levels)
        vectors = torch.stack([own[rows] for own, rows in zip(weight, places, strict=True)]).flatten(2)
        return torch.cat([vectors, x[..., len(self.levels) :]], 2), places

    def pull_back(self, name: str, parameters: Parameters, kept: Kept, delta: Tensor) -> Tensor:
        """As in `Layer`. The gradient with respect to a category's number is zero."""
        from torch.nn.functional import pad

        columns = len(self.levels)
        return pad(delta[..., columns * self.width :], (columns, 0))

    def gradients(self, name: str, parameters: Parameters, kept: Kept, delta: Tensor) -> list[EmbeddingGradients]:
        """As in `Layer`."""
        of_vectors = delta[..., : len(self.levels) * self.width].unflatten(2, (len(self.levels), self.width))
        return [EmbeddingGradients((f"{name}.weight",), kept.extra, of_vectors, sum(self.levels))]

    def module(self) -> nn.Module:
        """As in `Layer`."""
        import torch
        from torch import nn

        levels = self.levels

        class Module(nn.Embedding):
            def forward(self, x: Tensor) -> Tensor:
                return torch.cat([super().forward(places_of(x, levels)).flatten(1), x[:, len(levels) :]], 1)

        return nn.utils.skip_init(Module, sum(levels), self.width)


@dataclass(frozen=True)
class EmbeddingGradients:
    """Per-example gradients of an embedding, where an example touches one row for each column; see `PerExample`.

    Attributes:
        names: the weight.
        places: int64 (K, B, columns), the touched rows; every column has rows of its own.
        delta: (K, B, columns, width), their gradients.
        count: rows of the weight.
    """

    names: tuple[str]
    places: Tensor
    delta: Tensor
    count: int

    @property
    def examples(self) -> int:
        """B."""
        return self.delta.shape[1]

    def norms(self) -> Tensor:
        """As in `PerExample`. The rows of an example are all different."""
        return norm(self.delta.flatten(2))

    def where(self, kept: Tensor) -> EmbeddingGradients:
        """As in `PerExample`."""
        return replace(self, delta=self.delta.where(kept[..., None, None], 0.0))

    def add_weighted_sum(self, scales: Tensor, total: Parameters) -> None:
        """As in `PerExample`."""
        import torch

        scaled = self.delta * scales[..., None, None]
        for into, places, delta in zip(total[self.names[0]], self.places, scaled, strict=True):
            for start in range(0, len(delta), CHAIN):
                part = slice(start, start + CHAIN)
                own = into if len(delta) <= CHAIN else torch.zeros_like(into)
                add_rows(own, places[part].flatten(), delta[part].flatten(0, 1))
                if own is not into:
                    into.add_(own)

    def gram(self) -> Tensor:
        """As in `PerExample`."""
        import torch

        flat = widened(self.rows().flatten(2))
        return torch.bmm(flat, flat.mT)

    def directional_derivative(self, direction: Parameters) -> Tensor:
        """As in `PerExample`."""
        import torch

        pairs = zip(direction[self.names[0]], self.places, strict=True)
        return (self.delta * torch.stack([own[places] for own, places in pairs])).sum((2, 3))

    def rows(self, examples: slice = ALL) -> Tensor:
        """As in `PerExample`: (K, n, count, width), zero in rows that an example does not touch."""
        places, delta = self.places[:, examples], self.delta[:, examples]
        rows = delta.new_zeros(*delta.shape[:2], self.count, delta.shape[3])
        return rows.scatter_(2, places[..., None].expand(delta.shape), delta)

    def taken(self, places: Tensor) -> EmbeddingGradients:
        """As in `PerExample`."""
        return replace(self, places=taken(self.places, places), delta=taken(self.delta, places))


def places_of(x: Tensor, levels: tuple[int, ...]) -> Tensor:
    """Return the rows (…, columns) that records x (…, features) choose."""
    import torch

    before = accumulate(levels, initial=0)
    places = [
        column.round().clamp(0, count - 1) + start
        for column, count, start in zip(x.unbind(-1), levels, before, strict=False)
    ]
    return torch.stack(places, -1).long()
