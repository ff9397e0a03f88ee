"""Outputs of trained models and gradients with respect to the inputs, for attacks that search for inputs."""

from collections.abc import Callable

from torch import Tensor

from dp_leakage.models.ensemble import Ensemble
from dp_leakage.models.layers import forward, pull_back

PullBack = Callable[[Tensor], Tensor]


def logits_and_pull_back(models: Ensemble, x: Tensor) -> tuple[Tensor, PullBack]:
    """Return logits (K, B, C) of K models, each on its own inputs, and the backward pass.

    Args:
        models: K models, dropout off.
        x: (K, B, …) inputs of each model.

    Returns:
        The logits, and a function that turns ∂loss/∂logits (K, B, C) into ∂loss/∂x (K, B, …) and may be called once.
    """
    logits, kept = forward(models.layers, models.parameters, x)
    return logits, lambda delta: pull_back(models.layers, models.parameters, kept, delta)
