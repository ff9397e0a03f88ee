"""A convolution whose kernels are centered and scaled to length one before they are used.

For the weights w of one output channel, v = w − mean(w) and ŵ = v/√(‖v‖² + 1e-4): scaled weight standardization (Brock
et al. 2021) without its gain; private training of wide residual networks uses it (De et al. 2022, section 3).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from dp_leakage.models.layers.base import Kept, Parameters
from dp_leakage.models.layers.conv2d import Conv2d, convolve, convolve_back
from dp_leakage.models.layers.conv_gradients import ConvGradients, convolution_gradients

if TYPE_CHECKING:
    from torch import Generator, Tensor, nn

LEAST = 1e-4  # added to ‖v‖², so that a channel of equal weights stays finite


@dataclass(frozen=True)
class WeightStandardizedConv2d(Conv2d):
    """`Conv2d` with standardized kernels."""

    def forward(
        self, name: str, parameters: Parameters, x: Tensor, dropout: list[Generator] | None
    ) -> tuple[Tensor, tuple[Tensor, Tensor]]:
        """As in `Layer`; keeps the kernels that it used and their former lengths."""
        kernels, lengths = standardized(parameters[f"{name}.weight"])
        return convolve(self, kernels, parameters[f"{name}.bias"], x), (kernels, lengths)

    def pull_back(self, name: str, parameters: Parameters, kept: Kept, delta: Tensor) -> Tensor:
        """As in `Layer`."""
        return convolve_back(self, kept.extra[0], kept.input, delta)

    def gradients(self, name: str, parameters: Parameters, kept: Kept, delta: Tensor) -> list[ConvGradients]:
        """As in `Layer`: the gradient g of ŵ becomes (g − mean(g) − ŵ⟨ŵ, g⟩)/√(‖v‖² + 1e-4) of w."""
        of_used = convolution_gradients(self, (f"{name}.weight", f"{name}.bias"), kept.input, delta)
        kernels, lengths = kept.extra
        used = kernels.permute(3, 0, 2, 4, 1).flatten(2, 3).unsqueeze(2)  # as `ConvGradients.kernels`
        g = of_used.kernels
        along = (g * used).sum((0, 3), keepdim=True)
        through = (g - g.mean((0, 3), keepdim=True)).sub_(used * along).div_(lengths.view(1, len(lengths), 1, 1, -1))
        return [replace(of_used, kernels=through)]

    def module(self) -> nn.Module:
        """As in `Layer`."""
        from torch import nn

        class Module(nn.Conv2d):
            def forward(self, x: Tensor) -> Tensor:
                return self._conv_forward(x, standardized(self.weight[None])[0][0], self.bias)

        sizes = {"kernel_size": self.kernel, "stride": self.stride, "padding": self.padding}
        return nn.utils.skip_init(Module, self.inputs, self.outputs, **sizes)


def standardized(weight: Tensor) -> tuple[Tensor, Tensor]:
    """Return the kernels ŵ (K, o, i, k, k) of ``weight``, and √(‖v‖² + 1e-4) of each output channel, (K, o)."""
    centered = weight - weight.mean((2, 3, 4), keepdim=True)
    lengths = centered.square().sum((2, 3, 4)).add(LEAST).sqrt()
    return centered / lengths[..., None, None, None], lengths
