"""Per-example gradients stored explicitly, for layers without a special structure."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from dp_leakage.models.layers.base import ALL, Parameters, taken
from dp_leakage.models.norms import norm, widened
from dp_leakage.models.products import combined

if TYPE_CHECKING:
    from torch import Tensor


@dataclass(frozen=True)
class FormedGradients:
    """Per-example gradients of some parameters of any shapes; see `PerExample`.

    Attributes:
        names: the parameters.
        formed: for each of them (K, B, …).
    """

    names: tuple[str, ...]
    formed: tuple[Tensor, ...]

    @property
    def examples(self) -> int:
        """B."""
        return self.formed[0].shape[1]

    def norms(self) -> Tensor:
        """As in `PerExample`."""
        import torch

        return torch.linalg.vector_norm(torch.stack([norm(_flat(own)) for own in self.formed]), dim=0)

    def where(self, kept: Tensor) -> FormedGradients:
        """As in `PerExample`."""
        shapes = ((*kept.shape, *[1] * (own.ndim - 2)) for own in self.formed)
        masked = (own.where(kept.view(shape), 0.0) for own, shape in zip(self.formed, shapes, strict=True))
        return replace(self, formed=tuple(masked))

    def add_weighted_sum(self, scales: Tensor, total: Parameters) -> None:
        """As in `PerExample`."""
        for name, own in zip(self.names, self.formed, strict=True):
            total[name].add_(combined(scales, _flat(own)).view(total[name].shape))

    def gram(self) -> Tensor:
        """As in `PerExample`."""
        import torch

        flat = widened(torch.cat([_flat(own) for own in self.formed], 2))
        return torch.bmm(flat, flat.mT)

    def directional_derivative(self, direction: Parameters) -> Tensor:
        """As in `PerExample`."""
        import torch

        pairs = zip(self.names, self.formed, strict=True)
        return sum(torch.bmm(_flat(own), direction[name].flatten(1)[..., None]) for name, own in pairs)[..., 0]

    def rows(self, examples: slice = ALL) -> Tensor:
        """As in `PerExample`; the first axes of all parameters must be equally long."""
        import torch

        return torch.cat([own[:, examples].unflatten(2, (-1, 1)).flatten(3) for own in self.formed], 3)

    def taken(self, places: Tensor) -> FormedGradients:
        """As in `PerExample`."""
        return replace(self, formed=tuple(taken(own, places) for own in self.formed))


def _flat(own: Tensor) -> Tensor:
    """Return gradients in the shape (K, B, d), also for a parameter that is a single number."""
    return own.reshape(*own.shape[:2], -1)
