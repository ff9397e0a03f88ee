"""The sum of a batch's von Mises–Fisher draws, without drawing them.

Only the sum Σ Xᵢ of B independent draws Xᵢ ~ vMF(μᵢ, κ) in Rᵈ leaves a private step. Its exact law needs only the Gram
matrix of the μᵢ, about B² scalars, and one normal vector of length d instead of B of them:

Write Xᵢ = tᵢ μᵢ + sᵢ vᵢ with tᵢ the cosine, sᵢ = √(1−tᵢ²), and vᵢ uniform on the unit sphere orthogonal to
μᵢ, i.e. vᵢ = (gᵢ − ⟨gᵢ,μᵢ⟩μᵢ)/nᵢ with gᵢ standard normal and nᵢ the length of the numerator. Let S be the
span of all μⱼ, r its dimension. gᵢ splits into its part in S, r standard normals hᵢ in an orthonormal basis
of S, and its part orthogonal to S, whose length χᵢ has χᵢ² ~ χ²(d−r) and whose direction wᵢ is uniform and
independent of everything else. As μᵢ lies in S, with h̃ᵢ = hᵢ − ⟨hᵢ,μᵢ⟩μᵢ: nᵢ² = ‖h̃ᵢ‖² + χᵢ², and

    Σ Xᵢ = Σ tᵢ μᵢ + Σ (sᵢ/nᵢ) h̃ᵢ     (in S)
         + Σ aᵢ wᵢ,  aᵢ = sᵢ χᵢ/nᵢ     (orthogonal to S).

The second line is a sum of independent vectors with given lengths and uniform directions. It equals R w with w uniform,
where R follows the walk R² ← R² + aᵢ² + 2 R aᵢ cᵢ and cᵢ is one coordinate of a uniform point on the sphere of R^{d−r}.
The first line is Σ βᵢ μᵢ. For w, take a standard normal vector z, project S out of it and normalise the rest. The
projection is also a combination of the μᵢ, given the products ⟨μᵢ, z⟩. So Σ Xᵢ = Σ cᵢ μᵢ + f z: one weighted backward
pass and one normal vector. As long as only the sum is released, its law, and hence the privacy, is that of drawing all
Xᵢ.

A singular Gram matrix (equal gradients, B > d) needs no special treatment: r is its rank.
"""

from math import sqrt
from typing import NamedTuple

import torch
from torch import Generator, Tensor

from dp_leakage.common.kernels import standard_gamma
from dp_leakage.privacy.noise import sphere_coordinate, vmf_cosines

LEAST_EIGENVALUE = 1e-9
"""Directions in which the unit vectors spread less than this (squared, relative to the largest eigenvalue) are ignored.
32-bit gradients hold no information there, and coefficients would grow like its inverse root.
"""


class VMFSum(NamedTuple):
    """A draw of the sum, before its part outside the span of the means has a direction.

    Attributes:
        inside: float64 (B,), β: the part inside the span is Σ βᵢ μᵢ.
        outside: R ≥ 0, the length of the part orthogonal to the span.
        inverse: float64 (r, B): row k gives the k-th vector of an orthonormal basis of the span as a
            combination of the μᵢ.
    """

    inside: Tensor
    outside: float
    inverse: Tensor


def draw_vmf_sum(gram: Tensor, dimension: int, kappa: float, generator: Generator | None = None) -> VMFSum:
    """Draw Σ Xᵢ, Xᵢ ~ vMF(μᵢ, κ) independent, up to the direction outside the span.

    Args:
        gram: float64 (B, B), ⟨μᵢ, μⱼ⟩, unit diagonal; may be singular.
        dimension: d ≥ 2, of the μᵢ.
        kappa: κ ≥ 0.
        generator: on the device of ``gram``.
    """
    coordinates, inverse = _span(gram)
    size, rank = coordinates.shape
    draw = {"generator": generator, "device": gram.device}
    cosine, sine = vmf_cosines(dimension, kappa, (size,), **draw)
    h = torch.randn(size, rank, dtype=torch.float64, **draw)
    h -= (h * coordinates).sum(1, keepdim=True) * coordinates
    spare = dimension - rank
    chi = _chi(spare, size, **draw)
    length = torch.sqrt(h.square().sum(1) + chi * chi)
    inside = cosine + inverse.T @ ((sine / length) @ h)
    return VMFSum(inside, _walk(sine * chi / length, spare, **draw), inverse)


def combination(drawn: VMFSum, products: Tensor, squared_length: float) -> tuple[Tensor, float]:
    """The draw as Σ cᵢ μᵢ + f z. The standard normal vector z directs its part outside the span.

    Args:
        drawn: from ``draw_vmf_sum``.
        products: (B,), ⟨μᵢ, z⟩.
        squared_length: ‖z‖².

    Returns:
        c, float64 (B,), and f ≥ 0.
    """
    z_inside = drawn.inverse @ products.double()
    outside = squared_length - float(z_inside @ z_inside)
    if drawn.outside == 0 or outside <= 0:
        return drawn.inside, 0.0
    factor = drawn.outside / sqrt(outside)
    return drawn.inside - factor * (drawn.inverse.T @ z_inside), factor


def _span(gram: Tensor) -> tuple[Tensor, Tensor]:
    """The means' coordinates (B, r) in an orthonormal basis of their span, and the basis as their combinations (r, B).

    It uses the Cholesky factor if that is safe, which is about ten times faster than the eigenvectors of the other
    case.
    """
    factor, failed = torch.linalg.cholesky_ex(gram)
    if not failed and factor.diagonal().min() ** 2 > LEAST_EIGENVALUE * len(gram):
        identity = torch.eye(len(gram), dtype=gram.dtype, device=gram.device)
        coordinates, inverse = factor, torch.linalg.solve_triangular(factor, identity, upper=False)
    else:
        values, vectors = torch.linalg.eigh(gram)
        kept = values > LEAST_EIGENVALUE * values[-1]
        root = values[kept].sqrt()
        coordinates, inverse = vectors[:, kept] * root, vectors[:, kept].T / root[:, None]
    return coordinates / torch.linalg.vector_norm(coordinates, dim=1, keepdim=True), inverse


def _chi(freedom: int, size: int, generator: Generator | None, device: torch.device) -> Tensor:
    """Draws of the length of a standard normal vector of ``freedom`` ≥ 0 entries, float64 (size,)."""
    if freedom == 0:
        return torch.zeros(size, dtype=torch.float64, device=device)
    half = torch.full((size,), freedom / 2, dtype=torch.float64, device=device)
    return torch.sqrt(2 * standard_gamma(half, generator))


def _walk(steps: Tensor, dimension: int, generator: Generator | None, device: torch.device) -> float:
    """Length of a sum of vectors of the given lengths, each uniform in direction in R^dimension."""
    if dimension == 0:
        return 0.0
    if dimension == 1:
        signs = torch.randint(2, steps.shape, generator=generator, device=device) * 2 - 1
        return abs(float(signs.double() @ steps))
    cosines, _ = sphere_coordinate(dimension, steps.shape, generator, device)
    length = 0.0
    for step, cosine in zip(steps.tolist(), cosines.tolist(), strict=True):
        length = sqrt(max(0.0, length * length + step * step + 2 * length * step * cosine))
    return length
