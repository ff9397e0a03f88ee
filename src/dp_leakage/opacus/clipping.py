"""The sum of clipped gradients, recomputed from the gradients of single records."""

from collections.abc import Sequence

import torch
from torch import Tensor

from dp_leakage.opacus.findings import Finding, Level

SMALL = 1e-6  # that Opacus adds to each norm
TOLERANCE = 1e-3  # of C, and of a tenth of it relative to the largest number of the sum: by how much sums may differ
LONGER = 1.01  # times C: a record's contribution that is refuted
EQUAL = 0.01  # relative spread of weights that are the same


def clipped_sum(samples: Sequence[Tensor], bounds: Sequence[float], flat: bool) -> list[Tensor]:
    """Return the sum of the records' gradients, each clipped to C.

    Args:
        samples: for each parameter the gradients of k records, (k, *shape).
        bounds: C of each parameter; the same for all if ``flat``.
        flat: whether C bounds the norm over all parameters, or each parameter's own.
    """
    if not len(samples[0]):
        return [sample.new_zeros(sample.shape[1:]) for sample in samples]
    norms = torch.stack([sample.reshape(len(sample), -1).norm(dim=1).to(samples[0].device) for sample in samples])
    size = norms.norm(dim=0).expand_as(norms) if flat else norms
    limits = torch.as_tensor(list(bounds)).to(norms)[:, None]
    scales = (limits / (size + SMALL)).clamp(max=1.0)
    return [torch.einsum("i,i...", scale.to(sample), sample) for scale, sample in zip(scales, samples, strict=True)]


def differs(total: Tensor, reference: Tensor, bound: float) -> float:
    """Return the difference between a sum and its recomputed value; 0 within rounding."""
    if not total.numel():
        return 0.0
    gap = float((total.reshape(reference.shape) - reference).abs().max())
    return gap if gap > TOLERANCE * (bound + 0.1 * float(total.abs().max())) else 0.0


def explained(samples: Sequence[Tensor], totals: Sequence[Tensor], bound: float, gap: float) -> Finding:
    """Explain a difference by the weights of the records in the sum, from least squares.

    Args:
        samples: for each parameter (k, *shape).
        totals: the sum before the noise, of each parameter.
        bound: C.
        gap: the difference.
    """
    flat = torch.cat([sample.reshape(len(sample), -1) for sample in samples], 1).double()
    total = torch.cat([part.reshape(-1) for part in totals]).double()
    unclear = Finding(
        Level.UNKNOWN,
        "clipping",
        f"The sum before the noise differs by {gap:.2g} from the sum of gradients clipped to {bound:g}.",
    )
    if not 0 < len(flat) < flat.shape[1]:
        return unclear
    weights = torch.linalg.lstsq(flat @ flat.T, (flat @ total)[:, None], driver="gelsd").solution[:, 0]
    rest = float((total - weights @ flat).norm() / total.norm().clamp(min=1e-30))
    largest = float((weights * flat.norm(dim=1)).abs().max())
    if largest > LONGER * bound and rest < 0.1:
        sentence = f"Records are not clipped: one adds {largest / bound:.3g} times the bound {bound:g} to the sum."
        return Finding(Level.REFUTED, "clipping", sentence)
    if len(weights) > 1 and float(weights.std() / weights.mean().abs()) < EQUAL and float(weights.mean()) < 1 - EQUAL:
        sentence = f"The sum of the batch is clipped to {bound:g}, not the gradient of each record."
        return Finding(Level.REFUTED, "clipping", sentence)
    return unclear
