"""Vector norms with a stated precision that clipping bounds rely on."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from torch import Tensor, dtype

ROUNDING = 32  # computed lengths are off by at most this many units of floating-point precision
WIDE = 2048  # of more numbers, a float32 sum of squares loses more than half of that precision
CANCELLED = 64  # of terms whose summed lengths exceed their sum's length so many times, the sum is formed first
LEAST_NORM = 1e-15  # for float32 vectors; the squares of shorter ones vanish


def lost(terms: int | Tensor, lengths: Tensor, dtype: dtype) -> Tensor:
    """Bound the rounding error of sums of ``terms`` vectors with summed ``lengths``, in one product of ``dtype``.

    It is the classical bound of an inner product, to first order (Higham 2002, equation 3.5). Vectors may cancel, so
    the bound does not depend on the norm of the sum.
    """
    import torch

    return lengths * terms * (torch.finfo(dtype).eps / 2)


def widened(x: Tensor) -> Tensor:
    """Return x in float64, with NaN where its square overflows in its own dtype, so that no norm from it is finite.

    `norm` finds no finite norm there. The factors of such gradients are so small that they have few digits left.
    """
    import torch

    return x.double().masked_fill(x.abs() > torch.finfo(x.dtype).max ** 0.5, torch.nan)


def norm(x: Tensor) -> Tensor:
    """Return the ℓ2 norm along the last dimension, in the dtype of ``x``, at most `ROUNDING` units of precision too
    small.

    A vector shorter than `LEAST_NORM` counts as that long, since a norm that is too large does not break a bound.
    """
    import torch

    if x.shape[-1] <= WIDE:
        return torch.linalg.vector_norm(x, dim=-1).clamp_(min=LEAST_NORM)
    # In pieces, since a float64 sum over float32 numbers takes 5 to 30 times as long on a CPU.
    pieces = torch.stack([torch.linalg.vector_norm(piece, dim=-1) for piece in x.split(WIDE, -1)], -1)
    return torch.linalg.vector_norm(pieces, dim=-1, dtype=torch.float64).to(x.dtype).clamp_(min=LEAST_NORM)
