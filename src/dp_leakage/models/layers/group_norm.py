"""Group normalization: the normalization of private image models, since it mixes no records."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from dp_leakage.models.layers.base import Kept, Layer, Parameters, Shape
from dp_leakage.models.layers.scale_gradients import ScaleGradients

if TYPE_CHECKING:
    from torch import Generator, Tensor, nn

LEAST = 1e-5  # added to each variance, as PyTorch does


@dataclass(frozen=True)
class GroupNorm(Layer):
    """Normalizes ``groups`` of neighboring channels in each record to mean 0 and variance 1, then scales and shifts
    them.

    ``channels`` must be a multiple of ``groups`` (Wu & He 2018).
    """

    groups: int
    channels: int

    has_parameters: ClassVar[bool] = True
    output_is_spare: ClassVar[bool] = True

    def parameter_shapes(self) -> dict[str, Shape]:
        """As in `Layer`."""
        return {"weight": (self.channels,), "bias": (self.channels,)}

    def initial(self, generator: Generator, scheme: str) -> Parameters:
        """Ones and zeros, whatever the scheme; nothing is drawn."""
        import torch

        return {"weight": torch.ones(self.channels), "bias": torch.zeros(self.channels)}

    def forward(
        self, name: str, parameters: Parameters, x: Tensor, dropout: list[Generator] | None
    ) -> tuple[Tensor, tuple[Tensor, ...]]:
        """As in `Layer`; keeps the normalized input, and each group's mean and inverse deviation."""
        import torch

        weight, bias = (_by_channel(parameters[f"{name}.{own}"], x) for own in ("weight", "bias"))
        x = x.expand(len(weight), *x.shape[1:]).contiguous()
        normalized, mean, inverse = torch.native_group_norm(x.flatten(0, 1), None, None, *self._sizes(x), LEAST)
        normalized = normalized.view(x.shape)
        return torch.addcmul(bias, normalized, weight), (normalized, x, mean, inverse)

    def pull_back(self, name: str, parameters: Parameters, kept: Kept, delta: Tensor) -> Tensor:
        """As in `Layer`."""
        import torch

        _, x, mean, inverse = kept.extra
        scaled = (delta * _by_channel(parameters[f"{name}.weight"], delta)).flatten(0, 1)
        back, *_ = torch.ops.aten.native_group_norm_backward(
            scaled.contiguous(), x.flatten(0, 1), mean, inverse, None, *self._sizes(x), [True, False, False]
        )
        return back.view(x.shape)

    def gradients(self, name: str, parameters: Parameters, kept: Kept, delta: Tensor) -> list[ScaleGradients]:
        """As in `Layer`."""
        import torch

        formed = torch.stack([(delta * kept.extra[0]).flatten(3).sum(3), delta.flatten(3).sum(3)], 3)
        return [ScaleGradients((f"{name}.weight", f"{name}.bias"), formed)]

    def module(self) -> nn.Module:
        """As in `Layer`."""
        from torch import nn

        return nn.utils.skip_init(nn.GroupNorm, self.groups, self.channels, eps=LEAST)

    def _sizes(self, x: Tensor) -> tuple[int, int, int, int]:
        models, batch, channels, *sides = x.shape
        return models * batch, channels, sides[0] * sides[1], self.groups


def _by_channel(values: Tensor, x: Tensor) -> Tensor:
    """Reshape (K, c) to (K, 1, c, 1, …), to broadcast with x (K, B, c, …)."""
    return values.view(len(values), 1, -1, *[1] * (x.ndim - 3))
