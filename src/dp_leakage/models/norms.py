"""The length of a vector, with a stated precision: clipping bounds rest on it."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from torch import Tensor

ROUNDING = 32  # lengths are right to this many units of floating-point precision
WIDE = 2048  # numbers, from which float32 sums of squares lose more than half of that
LEAST_NORM = 1e-15  # of a float32 vector: the squares of shorter ones vanish


def norm(x: Tensor) -> Tensor:
    """ℓ2 norm along the last dimension, like ``x`` in dtype, at most `ROUNDING` units of precision too small.

    What is shorter than `LEAST_NORM` counts as that long: a bound may rest on a norm that is too large.
    """
    import torch

    dtype = torch.float64 if x.shape[-1] > WIDE else None
    return torch.linalg.vector_norm(x, dim=-1, dtype=dtype).to(x.dtype).clamp_(min=LEAST_NORM)
