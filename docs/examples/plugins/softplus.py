"""Layer: softplus, a ReLU without a corner, as the activation of any architecture."""

from dataclasses import dataclass

from dp_leakage.models.layers import Layer

LAYER = {"class": "Softplus", "settings": {"beta": {"type": "number", "exclusiveMinimum": 0, "default": 1.0}}}


@dataclass(frozen=True)
class Softplus(Layer):
    """log(1 + exp(βx))/β."""

    beta: float = 1.0

    def forward(self, name, parameters, x, dropout):
        """The output, and nothing to keep beside input and output."""
        return self.module()(x), None

    def pull_back(self, name, parameters, kept, delta):
        """The gradient of the input, from that of the output."""
        return delta * (self.beta * kept.input).sigmoid()

    def module(self):
        """The same as a torch module."""
        from torch import nn  # here, since the workflow makes layers to learn their shapes

        return nn.Softplus(self.beta)
