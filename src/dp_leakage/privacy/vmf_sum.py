"""The sum of a batch's von Mises–Fisher draws, without drawing them.

Only the sum Σ Xᵢ of B independent draws Xᵢ ~ vMF(μᵢ, κ) in Rᵈ leaves a private step. Its exact law needs only the Gram
matrix of the μᵢ, about B² scalars, and one normal vector of length d instead of B of them. Several sums around the same
μᵢ share the work on the Gram matrix; they may differ in the concentrations and in the signs of the μᵢ. The rows of a
linear layer's gradient are such a case: they all point along the layer's input, one way or the other.

Write Xᵢ = tᵢ μᵢ + sᵢ vᵢ with tᵢ the cosine, sᵢ = √(1−tᵢ²), and vᵢ uniform on the unit sphere orthogonal to
μᵢ, i.e. vᵢ = (gᵢ − ⟨gᵢ,μᵢ⟩μᵢ)/nᵢ with gᵢ standard normal and nᵢ the length of the numerator. Let S be the
span of all μⱼ, r its dimension. gᵢ splits into its part in S, r standard normals hᵢ in an orthonormal basis
of S, and its part orthogonal to S, whose length χᵢ has χᵢ² ~ χ²(d−r) and whose direction wᵢ is uniform and
independent of everything else. As μᵢ lies in S, with h̃ᵢ = hᵢ − ⟨hᵢ,μᵢ⟩μᵢ: nᵢ² = ‖h̃ᵢ‖² + χᵢ², and

    Σ Xᵢ = Σ tᵢ μᵢ + Σ (sᵢ/nᵢ) h̃ᵢ     (in S)
         + Σ aᵢ wᵢ,  aᵢ = sᵢ χᵢ/nᵢ     (orthogonal to S).

The second line is a sum of independent vectors with given lengths and uniform directions. It equals R w with w uniform.
Two of them, of lengths a and b, add up to one of length √(a² + b² + 2abc) in a uniform direction, where c is one
coordinate of a uniform point on the sphere of R^{d−r}; so R comes from adding them up in pairs.
The first line is Σ βᵢ μᵢ. For w, take a standard normal vector z, project S out of it and normalize the rest. The
projection is also a combination of the μᵢ, given the products ⟨μᵢ, z⟩. So Σ Xᵢ = Σ cᵢ μᵢ + f z: one weighted backward
pass and one normal vector. As long as only the sum is released, its law, and hence the privacy, is that of drawing all
Xᵢ.

A singular Gram matrix (equal gradients, B > d) needs no special treatment: r is its rank.
"""

from collections.abc import Sequence
from typing import NamedTuple

import torch
from torch import Generator, Tensor

from dp_leakage.common.kernels import standard_gamma
from dp_leakage.privacy.noise import SHORT, Streams, sphere_coordinates, vmf_cosines

LEAST_EIGENVALUE = 1e-9
"""Directions in which the unit vectors spread less than this (squared, relative to the largest eigenvalue) are ignored.
32-bit gradients hold no information there, and coefficients would grow like its inverse root.
"""


class VMFSums(NamedTuple):
    """Draws of m sums before their parts outside the span of the means get directions.

    Attributes:
        inside: float64 (m, B), β: the part inside the span is Σ βᵢ μᵢ.
        outside: float64 (m,), R ≥ 0, the length of the part orthogonal to the span.
        inverse: float64 (r, B): row k gives the k-th vector of an orthonormal basis of the span as a
            combination of the μᵢ.
    """

    inside: Tensor
    outside: Tensor
    inverse: Tensor


def draw_vmf_sums(
    grams: Sequence[Tensor],
    dimension: int,
    kappas: Sequence[Tensor],
    signs: Sequence[Tensor] | None = None,
    generators: Sequence[Generator | None] = (None,),
) -> list[VMFSums]:
    """Draw m sums Σ Xᵢ for each of K models, Xᵢ ~ vMF(±μᵢ, κᵢ) independent, up to the directions outside the span.

    A model draws what it draws alone. Each may have another number B of μᵢ.

    Args:
        grams: float64 (B, B), ⟨μᵢ, μⱼ⟩, unit diagonal; may be singular.
        dimension: d ≥ 2, of the μᵢ.
        kappas: float64 (m, B), κ ≥ 0.
        signs: float64 (m, B), 1 or −1, of the μᵢ in each sum; without them all are 1.
        generators: on the device of the ``grams``.
    """
    streams = Streams(generators, [kappa.numel() for kappa in kappas], grams[0].device)
    cosines, sines = (
        [part.view(kappa.shape) for part, kappa in zip(flat.split(streams.counts), kappas, strict=True)]
        for flat in vmf_cosines(dimension, torch.cat([kappa.flatten() for kappa in kappas]), streams)
    )
    inside, across = [], []
    spans = [_span(gram) for gram in grams]
    for (coordinates, inverse), sine, generator in zip(spans, sines, generators, strict=True):
        spread, lengths = _draw_around(coordinates, sine, dimension, generator)
        inside.append(spread @ inverse)
        across.append(lengths)
    means = cosines if signs is None else [cosine * sign for cosine, sign in zip(cosines, signs, strict=True)]
    outside = _total_lengths(across, [dimension - len(inverse) for _, inverse in spans], generators)
    return [
        VMFSums(mean + own, total, inverse)
        for mean, own, total, (_, inverse) in zip(means, inside, outside, spans, strict=True)
    ]


def _draw_around(
    coordinates: Tensor, sine: Tensor, dimension: int, generator: Generator | None
) -> tuple[Tensor, Tensor]:
    """Draw m sums Σ (sᵢ/nᵢ) h̃ᵢ in the basis, float64 (m, r), and the lengths aᵢ, (m, B)."""
    rank = coordinates.shape[1]
    draw = {"generator": generator, "device": sine.device}
    # These draws are most of the work, and gradients are float32 anyway.
    h = torch.randn(*sine.shape, rank, dtype=torch.float64 if dimension < SHORT else torch.float32, **draw)
    own = coordinates.to(h.dtype)
    h.addcmul_(torch.einsum("mbr,br->mb", h, own)[:, :, None], own, value=-1)
    chi = _chi(dimension - rank, sine.shape, **draw)
    stretch = sine / torch.sqrt(h.square().sum(2).double() + chi * chi)
    return torch.einsum("mbr,mb->mr", h, stretch.to(h.dtype)).double(), stretch * chi


def combinations(drawn: VMFSums, products: Tensor, squared_length: Tensor) -> tuple[Tensor, Tensor]:
    """Return the draws as Σ cᵢ μᵢ + f z. Standard normal vectors z direct their parts outside the span.

    Args:
        drawn: m sums, from `draw_vmf_sums`.
        products: (m, B), ⟨μᵢ, z⟩ for each sum's own z.
        squared_length: (m,), ‖z‖².

    Returns:
        c, float64 (m, B), and f ≥ 0, float64 (m,).
    """
    z_inside = products.double() @ drawn.inverse.T
    left = squared_length.double() - z_inside.square().sum(1)
    factor = torch.where(left > 0, drawn.outside / left.clamp_min(torch.finfo(left.dtype).tiny).sqrt(), 0.0)
    return drawn.inside - factor[:, None] * (z_inside @ drawn.inverse), factor


def _span(gram: Tensor) -> tuple[Tensor, Tensor]:
    """Return the means' coordinates (B, r) in an orthonormal basis of their span, and the basis as their combinations
    (r, B).

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


def _chi(freedom: int, shape: torch.Size, generator: Generator | None, device: torch.device) -> Tensor:
    """Draws of the length of a standard normal vector of ``freedom`` ≥ 0 entries, float64 of ``shape``."""
    if freedom == 0:
        return torch.zeros(shape, dtype=torch.float64, device=device)
    half = torch.full(shape, freedom / 2, dtype=torch.float64, device=device)
    return torch.sqrt(2 * standard_gamma(half, generator))


def _total_lengths(
    lengths: Sequence[Tensor], dimensions: Sequence[int], generators: Sequence[Generator | None]
) -> list[Tensor]:
    """Return lengths (m,) of each model's m sums of vectors with lengths (m, B) and uniform directions in
    R^dimension.
    """
    pairs = [_pairs(own.shape[1]) if dimension > 1 else [] for own, dimension in zip(lengths, dimensions, strict=True)]
    shapes = [[(len(own), size) for size in sizes] for own, sizes in zip(lengths, pairs, strict=True)]
    cosines = sphere_coordinates(dimensions, shapes, generators, lengths[0].device)
    left = list(lengths)
    for level in range(max(map(len, pairs))):
        models = [model for model, sizes in enumerate(pairs) if level < len(sizes)]
        cut = [_halves(left[model], pairs[model][level]) for model in models]
        a, b = (torch.cat([halves[side].flatten() for halves in cut]) for side in (0, 1))
        cosine = torch.cat([cosines[model][level].flatten() for model in models])
        both = (a.square() + b.square() + 2 * a * b * cosine).clamp_min_(0).sqrt_()
        sums = both.split([halves[0].numel() for halves in cut])
        for model, (half, _, odd), own in zip(models, cut, sums, strict=True):
            left[model] = torch.cat([own.view(half.shape), odd], 1)
    for model, dimension in enumerate(dimensions):
        if dimension == 0:
            left[model] = torch.zeros_like(left[model])
        elif dimension == 1:
            draw = {"generator": generators[model], "device": left[model].device}
            signs = torch.randint(2, left[model].shape, **draw) * 2 - 1
            left[model] = (signs * left[model]).sum(1, keepdim=True).abs()
    return [own[:, 0] for own in left]


def _pairs(count: int) -> list[int]:
    """Return the number of pairs added in each round until one of ``count`` vectors is left."""
    pairs = []
    while count > 1:
        pairs.append(count // 2)
        count -= pairs[-1]
    return pairs


def _halves(lengths: Tensor, pairs: int) -> Sequence[Tensor]:
    """Return the first and the second of each pair, and the unpaired rest."""
    return lengths.split([pairs, pairs, lengths.shape[1] - 2 * pairs], 1)
