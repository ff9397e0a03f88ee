"""All parameters of K models in one (K, P) buffer: one noise draw, one optimizer call, one tensor to save."""

import math

import torch
from torch import Tensor

from dp_leakage.common.kernels import aligned
from dp_leakage.models.layers import Layers, Parameters, parameter_shapes


def size(layers: Layers) -> int:
    """Return P: the number of parameters of one model, rounded up as `aligned` says."""
    return aligned(sum(math.prod(shape) for shape in parameter_shapes(layers).values()))


def views(layers: Layers, flat: Tensor) -> Parameters:
    """Name → view (K, …) into ``flat`` (K, P)."""
    result, start = {}, 0
    for name, shape in parameter_shapes(layers).items():
        end = start + math.prod(shape)
        result[name] = flat[:, start:end].unflatten(1, shape)
        start = end
    return result


def penalty(layers: Layers, l2: float, l2_on: str, flat: Tensor) -> Tensor:
    """(1, P) like ``flat`` (K, P): 2λ at the penalized weights, otherwise 0. Times the parameters: its gradient."""
    factors = torch.zeros_like(flat[:1])
    # Only matrices and kernels: a normalization's scale need not be small.
    weights = [view for view in views(layers, factors).values() if view.ndim > 2]
    for view in weights if l2_on == "all" else weights[-1:]:
        view.fill_(2 * l2)
    return factors
