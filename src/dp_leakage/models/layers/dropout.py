"""Dropout."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from dp_leakage.models.layers.base import Kept, Layer, Parameters

if TYPE_CHECKING:
    from torch import Generator, Tensor, nn


@dataclass(frozen=True)
class Dropout(Layer):
    """Zeroes each feature with probability ``rate`` in [0, 1) while training and scales the rest by 1/(1-rate)."""

    rate: float

    alone: ClassVar[bool] = False

    @property
    def draws(self) -> bool:
        """As in `Layer`."""
        return self.rate > 0

    def forward(
        self, name: str, parameters: Parameters, x: Tensor, dropout: list[Generator] | None
    ) -> tuple[Tensor, Tensor | None]:
        """As in `Layer`; keeps the mask."""
        if dropout is None:
            return x, None
        mask = dropout_mask(x, self.rate, dropout)
        return x * mask, mask

    def pull_back(self, name: str, parameters: Parameters, kept: Kept, delta: Tensor) -> Tensor:
        """As in `Layer`."""
        return delta if kept.extra is None else delta * kept.extra

    def module(self) -> nn.Module:
        """As in `Layer`."""
        from torch import nn

        return nn.Dropout(self.rate)


def dropout_mask(x: Tensor, rate: float, generators: list[Generator]) -> Tensor:
    """Draw 0 with probability ``rate``, otherwise 1/(1-rate); (K, B, …), each model's part from its own generator."""
    import torch

    mask = torch.empty(len(generators), *x.shape[1:], dtype=x.dtype, device=x.device)
    for row, generator in zip(mask, generators, strict=True):
        row.bernoulli_(1 - rate, generator=generator)
    return mask.div_(1 - rate)
