"""Per-example gradients of a scale and a shift. They are formed, since each has one number per channel or feature."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from dp_leakage.models.layers.base import ALL, Parameters, taken
from dp_leakage.models.norms import norm, widened
from dp_leakage.models.products import combined

if TYPE_CHECKING:
    from torch import Tensor


@dataclass(frozen=True)
class ScaleGradients:
    """Per-example gradients of a normalization's parameters; see `PerExample`.

    Attributes:
        names: scale (``weight``) and shift (``bias``).
        formed: (K, B, c, 2), the gradients of both.
    """

    names: tuple[str, str]
    formed: Tensor

    @property
    def examples(self) -> int:
        """B."""
        return self.formed.shape[1]

    def norms(self) -> Tensor:
        """As in `PerExample`."""
        return norm(self.formed.flatten(2))

    def where(self, kept: Tensor) -> ScaleGradients:
        """As in `PerExample`."""
        return replace(self, formed=self.formed.where(kept[..., None, None], 0.0))

    def add_weighted_sum(self, scales: Tensor, total: Parameters) -> None:
        """As in `PerExample`."""
        summed = combined(scales, self.formed.flatten(2)).view(len(scales), -1, 2)
        for name, of_name in zip(self.names, summed.unbind(2), strict=True):
            total[name].add_(of_name)

    def gram(self) -> Tensor:
        """As in `PerExample`."""
        import torch

        flat = widened(self.formed.flatten(2))
        return torch.bmm(flat, flat.mT)

    def directional_derivative(self, direction: Parameters) -> Tensor:
        """As in `PerExample`."""
        import torch

        along = torch.stack([direction[name] for name in self.names], 2)
        return torch.bmm(self.formed.flatten(2), along.flatten(1)[..., None])[..., 0]

    def rows(self, examples: slice = ALL) -> Tensor:
        """As in `PerExample`: (K, n, c, 2)."""
        return self.formed[:, examples]

    def taken(self, places: Tensor) -> ScaleGradients:
        """As in `PerExample`."""
        return replace(self, formed=taken(self.formed, places))
