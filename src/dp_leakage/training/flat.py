"""All parameters of K models in one (K, P) buffer: one noise draw, one optimizer call, one tensor to save."""

import math

import torch
from torch import Tensor

from dp_leakage.models.layers import Layers, Parameters, parameter_shapes

ALIGNMENT = 16  # numbers, 64 bytes in float32


def size(layers: Layers) -> int:
    """P: number of parameters of one model, rounded up so that each model's row starts at a vector's edge.

    Otherwise a kernel would process the same number in its vector part in one ensemble and in its remainder in another,
    and these round differently.
    """
    count = sum(math.prod(shape) for shape in parameter_shapes(layers).values())
    return -(-count // ALIGNMENT) * ALIGNMENT


def views(layers: Layers, flat: Tensor) -> Parameters:
    """Name → view (K, …) into ``flat`` (K, P)."""
    result, start = {}, 0
    for name, shape in parameter_shapes(layers).items():
        end = start + math.prod(shape)
        result[name] = flat[:, start:end].unflatten(1, shape)
        start = end
    return result


def penalty(layers: Layers, l2: float, l2_on: str, flat: Tensor) -> Tensor:
    """(1, P) like ``flat`` (K, P): 2λ at the penalized weights, else 0. Times the parameters: its gradient."""
    factors = torch.zeros_like(flat[:1])
    # Only matrices and kernels: a normalization's scale need not be small.
    weights = [view for view in views(layers, factors).values() if view.ndim > 2]
    for view in weights if l2_on == "all" else weights[-1:]:
        view.fill_(2 * l2)
    return factors
