"""Layer normalization of vectors."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from dp_leakage.models.layers.base import Kept, Layer, Parameters, Shape
from dp_leakage.models.layers.scale_gradients import ScaleGradients

if TYPE_CHECKING:
    from torch import Generator, Tensor, nn

LEAST = 1e-5  # added to the variance, as PyTorch does


@dataclass(frozen=True)
class LayerNorm(Layer):
    """Normalizes each record's ``features`` to mean 0 and variance 1, then scales and shifts them (Ba et al. 2016)."""

    features: int

    has_parameters: ClassVar[bool] = True
    output_is_spare: ClassVar[bool] = True

    def parameter_shapes(self) -> dict[str, Shape]:
        """As in `Layer`."""
        return {"weight": (self.features,), "bias": (self.features,)}

    def initial(self, generator: Generator, scheme: str) -> Parameters:
        """Ones and zeros, whatever the scheme; nothing is drawn."""
        import torch

        return {"weight": torch.ones(self.features), "bias": torch.zeros(self.features)}

    def forward(
        self, name: str, parameters: Parameters, x: Tensor, dropout: list[Generator] | None
    ) -> tuple[Tensor, tuple[Tensor, ...]]:
        """As in `Layer`; keeps the normalized input, and each record's mean and inverse deviation."""
        import torch

        weight, bias = (parameters[f"{name}.{own}"].unsqueeze(1) for own in ("weight", "bias"))
        x = x.expand(len(weight), *x.shape[1:]).contiguous()
        normalized, mean, inverse = torch.native_layer_norm(x, [self.features], None, None, LEAST)
        return torch.addcmul(bias, normalized, weight), (normalized, x, mean, inverse)

    def pull_back(self, name: str, parameters: Parameters, kept: Kept, delta: Tensor) -> Tensor:
        """As in `Layer`."""
        import torch

        _, x, mean, inverse = kept.extra
        scaled = delta * parameters[f"{name}.weight"].unsqueeze(1)
        back, *_ = torch.ops.aten.native_layer_norm_backward(
            scaled, x, [self.features], mean, inverse, None, None, [True, False, False]
        )
        return back

    def gradients(self, name: str, parameters: Parameters, kept: Kept, delta: Tensor) -> list[ScaleGradients]:
        """As in `Layer`."""
        import torch

        formed = torch.stack([delta * kept.extra[0], delta], 3)
        return [ScaleGradients((f"{name}.weight", f"{name}.bias"), formed)]

    def module(self) -> nn.Module:
        """As in `Layer`."""
        from torch import nn

        return nn.utils.skip_init(nn.LayerNorm, self.features, eps=LEAST)
