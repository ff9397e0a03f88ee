"""Noise around a direction: exact draws from the von Mises–Fisher distribution.

vMF(μ, κ) on the unit sphere of Rᵈ has density C_d(κ) e^{κ⟨μ,x⟩}. Formal guarantee: one draw around each of m
unit vectors is 2κm-DP for replacing them all (``accounting.vmf`` says what a training spends).

Gaussian noise needs no module: it is one ``normal_``. As everywhere in this package, the draws come from
floating-point generators and are meant for experiments, not for release (they are not cryptographic).
"""

import math
from collections.abc import Callable, Sequence
from typing import NamedTuple

import torch
from torch import Generator, Tensor

from dp_leakage.common.kernels import aligned

SHORT = 64  # below this dimension a draw may lie so near ±μ that 32 bits would lose its orthogonal part
PROPOSALS = 64  # of each draw on a GPU: none is accepted with a probability below 1e-29


def sample_vmf(mean: Tensor, kappa: float | Tensor, generator: Generator | None = None) -> Tensor:
    """Draw once from vMF(μ, κ) for each row μ of ``mean``.

    A Gaussian vector g gives the direction of the part orthogonal to μ. It also gives the first proposal of the cosine,
    ⟨g, μ⟩/‖g‖, which is independent of that direction. Most proposals are accepted, and then nothing else of length d
    is drawn. A rejection redraws only scalars. Memory: one tensor like ``mean``.

    Args:
        mean: (n, d) or (d,), float32 or float64, rows of unit length, d ≥ 2.
        kappa: κ ≥ 0, one number or float64 (n,).
        generator: on the device of ``mean``.

    Returns:
        A tensor like ``mean``, rows of unit length to its precision.
    """
    rows = mean.reshape(-1, mean.shape[-1])
    kappas = torch.as_tensor(kappa, dtype=torch.float64, device=mean.device).expand(len(rows))
    noise = torch.empty_like(rows).normal_(generator=generator)
    streams = Streams([generator], [len(rows)], rows.device)
    return _turned(noise, rows, kappas, streams, _row_products).view(mean.shape)


def sample_vmf_of_streams(means: Tensor, kappas: Tensor, generators: Sequence[Generator]) -> Tensor:
    """Draw as `sample_vmf` for one row of each stream, as if alone: means (K, d), kappas float64 (K,)."""
    count, dimension = means.shape
    # Every row begins at a vector's edge, so that it rounds alike in any company.
    rows, noise = means.new_zeros(2, count, aligned(dimension))[:, :, :dimension]
    rows.copy_(means)
    for row, generator in zip(noise, generators, strict=True):
        row.normal_(generator=generator)
    return _turned(noise, rows, kappas, Streams(generators, [1] * count, means.device), _each_product)


def _turned(
    noise: Tensor, rows: Tensor, kappas: Tensor, streams: "Streams", products: Callable[[Tensor, Tensor], Tensor]
) -> Tensor:
    """Draw around the ``rows`` (n, d) from standard normal ``noise`` (n, d), which it overwrites.

    ``products`` are inner products of rows, float64 (n,).
    """
    dtype, dimension = rows.dtype, rows.shape[1]
    if dimension < SHORT:
        rows, noise = torch.nn.functional.normalize(rows.double(), dim=1), noise.double()
    along = products(noise, rows)
    length = torch.linalg.vector_norm(noise, dim=1).double()
    across_squared = (noise - along[:, None] * rows).square_().sum(1) if dimension < SHORT else length**2 - along**2
    least = torch.finfo(noise.dtype).eps * length  # if g is a multiple of μ
    across = torch.maximum(across_squared, least**2).sqrt_()
    cosine, sine = vmf_cosines(dimension, kappas, streams, (along / length, across / length))
    stretch = sine / across
    draw = noise.mul_(stretch[:, None].to(noise.dtype))
    draw.addcmul_(rows, (cosine - stretch * along)[:, None].to(noise.dtype))
    return draw.to(dtype)


class Streams(NamedTuple):
    """Random streams that draw side by side. Each fills its own part of a flat tensor with the same numbers as when
    alone.

    Attributes:
        generators: on ``device``.
        counts: number of draws of each.
        device: of the numbers.
    """

    generators: Sequence[Generator | None]
    counts: Sequence[int]
    device: torch.device

    def uniforms(self, times: int) -> Tensor:
        """Draw uniforms in (0, 1], so that their logarithms are finite: float64 (times, sum of the counts).

        Each stream draws all of its numbers at once; they equal those of ``times`` single draws.
        """
        pairs = zip(self.generators, self.counts, strict=True)
        drawn = [_rand((times, count), generator, self.device) for generator, count in pairs]
        return 1 - (drawn[0] if len(drawn) == 1 else torch.cat(drawn, 1))

    def owners(self) -> Tensor:
        """Return the index of the stream that draws each number, int64."""
        counts = torch.tensor(self.counts, device=self.device)
        return torch.arange(len(counts), device=self.device).repeat_interleave(counts)


def vmf_cosines(
    dimension: int, kappa: Tensor, streams: Streams, first: tuple[Tensor, Tensor] | None = None
) -> tuple[Tensor, Tensor]:
    """Draw cosines ⟨μ, x⟩ of x from vMF(μ, κ), and their sines, by rejection.

    Ulrich's (1984) and Wood's (1994) envelope, written so that nothing cancels. With m = d−1, r = √(m²+4κ²) and x₀ =
    2κ/(m+r), a proposal is a coordinate s of a uniform point on the sphere, mapped to t = (x₀+s)/(1+x₀s). Then √(1−t²)
    = √(1−x₀²) √(1−s²)/(1+x₀s) with 1−x₀² = 2m/(m+r), and since κ(1−x₀²) = m x₀ the logarithm of the acceptance
    probability is m (u/(1+u) − ln(1+u)) with u = x₀s. At least about 0.66 are accepted. Small draws take as long as
    their calls of PyTorch, so several streams share these. Only a CPU looks which are rejected: a GPU, which would have
    to wait for that, makes `PROPOSALS` of each draw at once.

    Args:
        dimension: d ≥ 2, of all streams.
        kappa: κ ≥ 0 of each draw, float64 (n,), stream after stream.
        streams: who draws how many of the n.
        first: the first proposals (s, √(1−s²)), float64 (n,), if there are any; they must be independent of everything
            else.

    Returns:
        Cosine and sine, float64 (n,).
    """
    m = dimension - 1.0
    r = torch.sqrt(m * m + 4 * kappa * kappa)
    x0 = 2 * kappa / (m + r)
    s, c = (part.clone() for part in first) if first is not None else sphere_coordinate(dimension, *streams.uniforms(2))
    (chance,) = streams.uniforms(1)
    accept = _accepted if kappa.device.type == "cpu" else _accepted_at_once
    s, c = accept(dimension, x0, (s, c), chance, streams)
    stretch = 1 + x0 * s
    return (x0 + s) / stretch, torch.sqrt(2 * m / (m + r)) * c / stretch


def _rejects(dimension: int, slope: Tensor, proposed: Tensor, chance: Tensor) -> Tensor:
    """Return which proposals s are rejected, by uniforms that are overwritten; the slope is x₀ of `vmf_cosines`."""
    u = slope * proposed
    return chance.log_() > (dimension - 1.0) * (u / (1 + u) - torch.log1p(u))


def _accepted(
    dimension: int, x0: Tensor, first: tuple[Tensor, Tensor], chance: Tensor, streams: Streams
) -> tuple[Tensor, Tensor]:
    """Return the first accepted proposals (s, √(1−s²)); rejected ones are proposed again. Overwrites its arguments."""
    s, c = first
    pending, slope, proposed, owners = torch.arange(len(s), device=s.device), x0, s, streams.owners()
    while len(rejected := _rejects(dimension, slope, proposed, chance).nonzero()[:, 0]):
        pending, slope, owners = pending[rejected], slope[rejected], owners[rejected]
        streams = streams._replace(counts=owners.bincount(minlength=len(streams.counts)).tolist())
        radius, angle, chance = streams.uniforms(3)
        proposed, across = sphere_coordinate(dimension, radius, angle)
        s[pending], c[pending] = proposed, across
    return s, c


def _accepted_at_once(
    dimension: int, x0: Tensor, first: tuple[Tensor, Tensor], chance: Tensor, streams: Streams
) -> tuple[Tensor, Tensor]:
    """Return as the rejection loop, from so many proposals that waiting for the result is unnecessary."""
    radius, angle, chances = streams.uniforms(3 * (PROPOSALS - 1)).unflatten(0, (3, -1))
    again, across = sphere_coordinate(dimension, radius, angle)
    proposed, beside = torch.cat([first[0][None], again]), torch.cat([first[1][None], across])
    accepted = ~_rejects(dimension, x0, proposed, torch.cat([chance[None], chances]))
    place = accepted.byte().argmax(0, keepdim=True)  # the first one
    return proposed.gather(0, place)[0], beside.gather(0, place)[0]


def sphere_coordinates(
    dimensions: Sequence[int],
    shapes: Sequence[Sequence[tuple[int, ...]]],
    generators: Sequence[Generator | None],
    device: torch.device | str = "cpu",
) -> list[list[Tensor]]:
    """Draw for each stream and dimension the s of `sphere_coordinate` for each of its ``shapes``.

    The draws are those of one call for each shape, in few calls of PyTorch.
    """
    sizes = [[math.prod(shape) for shape in own] for own in shapes]
    counts = [sum(own) for own in sizes]
    if not any(counts):
        return [[torch.zeros(shape, dtype=torch.float64, device=device) for shape in own] for own in shapes]
    drawn = [_rand((2 * count,), generator, device) for generator, count in zip(generators, counts, strict=True)]
    parts = (1 - torch.cat(drawn)).split([size for own in sizes for size in own for _ in range(2)])
    each = torch.tensor(dimensions, dtype=torch.float64, device=device)
    dimension = each.repeat_interleave(torch.tensor(counts, device=device))
    coordinates, _ = sphere_coordinate(dimension, torch.cat(parts[::2]), torch.cat(parts[1::2]))
    found = iter(coordinates.split([size for own in sizes for size in own]))
    return [[next(found).view(shape) for shape in own] for own in shapes]


def sphere_coordinate(dimension: int | Tensor, radius: Tensor, angle: Tensor) -> tuple[Tensor, Tensor]:
    """Return one coordinate s of uniform points on the unit sphere of Rᵈ, d ≥ 2, and √(1−s²), float64.

    s/√(1−s²) times √(d−1) is Student-t with d−1 degrees of freedom, drawn from two uniforms in (0, 1] by Bailey's
    (1994) polar method, which stays exact for any d. The dimension is shared or given for each point; ``radius`` is
    overwritten.
    """
    w = radius.log_().mul_(-2.0 / (dimension - 1)).expm1_()
    tangent = w.sqrt_().mul_(torch.cos(2 * torch.pi * angle))
    c = torch.rsqrt(1 + tangent * tangent)
    return tangent * c, c


def _rand(shape: tuple[int, ...], generator: Generator | None, device: torch.device | str) -> Tensor:
    return torch.rand(shape, generator=generator, dtype=torch.float64, device=device)


def _row_products(a: Tensor, b: Tensor) -> Tensor:
    """Inner products of the rows, float64 (n,). As matrix products they need no temporary array of size (n, d)."""
    return torch.bmm(a[:, None, :], b[:, :, None])[:, 0, 0].double()


def _each_product(a: Tensor, b: Tensor) -> Tensor:
    """Compute products one by one: a batched product of a single row rounds differently from one of several."""
    return torch.stack([torch.dot(*rows) for rows in zip(a, b, strict=True)]).double()
