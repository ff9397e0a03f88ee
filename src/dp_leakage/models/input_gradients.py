"""The outputs of trained models, and their gradients with respect to the inputs, for attacks that search for inputs."""

from collections.abc import Callable

import torch
from torch import Tensor

from dp_leakage.models.ensemble import Ensemble, Models
from dp_leakage.models.layers import forward, pull_back

PullBack = Callable[[Tensor], Tensor]


def logits_and_pull_back(models: Models, x: Tensor) -> tuple[Tensor, PullBack]:
    """Logits (K, B, C) of K models, each on its own inputs, and the backward pass.

    Args:
        models: K models, dropout off.
        x: (K, B, …) inputs of each model.

    Returns:
        The logits, and a function that turns ∂loss/∂logits (K, B, C) into ∂loss/∂x (K, B, …) and may be called once.
    """
    return _of_layers(models, x) if isinstance(models, Ensemble) else _of_modules(models, x)


def _of_layers(models: Ensemble, x: Tensor) -> tuple[Tensor, PullBack]:
    logits, kept = forward(models.layers, models.parameters, x)
    return logits, lambda delta: pull_back(models.layers, models.parameters, kept, delta)


def _of_modules(models: Models, x: Tensor) -> tuple[Tensor, PullBack]:
    with torch.enable_grad():
        inputs = x.detach().requires_grad_()
        logits = torch.stack([models.module(model)(own) for model, own in enumerate(inputs)])
    return logits.detach(), lambda delta: torch.autograd.grad(logits, inputs, delta)[0]
