"""Von Mises-Fisher noise in a training step (directional2023): unit vectors in, noisy unit vectors out.

The mechanism's ``block`` says what is one unit vector: a whole gradient, each layer's part of it (weight and bias
together), or each row (a neuron's or a kernel's weights and its bias).

A vector shorter than `LEAST` has no direction, so its draw is uniform on the sphere. That is vMF around a direction
picked at random without looking at the data. So by joint convexity no divergence, and no ratio of densities, exceeds
the one for a fixed direction.
"""

from collections.abc import Iterator, Sequence
from itertools import groupby
from typing import TYPE_CHECKING, NamedTuple

import torch
from torch import Generator, Tensor

from dp_leakage.models.layers import Parameters, PerExample
from dp_leakage.models.layers.linear import LinearGradients
from dp_leakage.privacy.mechanism import Block
from dp_leakage.privacy.noise import SHORT, sample_vmf, vmf_cosines
from dp_leakage.privacy.vmf_sum import combinations, draw_vmf_sums

if TYPE_CHECKING:
    from dp_leakage.training.backward import BackwardPass

LEAST = 1e-30  # float32 has too few digits for much shorter vectors
ROWS_BYTES = 1 << 25  # of rows that are drawn at a time


def add_directed_examples(
    passed: "BackwardPass", block: Block, kappa: float, scale: float, total: Parameters, generator: Generator
) -> None:
    """total += scale·Σ Xᵢ, with Xᵢ around the directions of each example's gradient (of one model, K = 1)."""
    if block == "whole":
        _add_sum(passed, list(total), kappa, scale, total, generator)
    elif block == "layer":
        for part in passed.parts:
            _add_sum(part, list(part.names), kappa, scale, total, generator)
    else:
        for part in passed.parts:
            _add_rows(part, kappa, scale, total, generator)


def add_directed(
    vector: Parameters, block: Block, kappa: float, scale: float, total: Parameters, generator: Generator
) -> None:
    """total += scale·X, with X around the direction of ``vector``, one gradient: name → (1, …), as ``total``."""
    layers = _by_layer(total)
    if block == "row":
        for names in layers:
            rows = torch.cat([vector[name][0].unflatten(0, (-1, 1)).flatten(1) for name in names], 1)
            _add_drawn_rows(_around(rows, kappa, generator), names, scale, total)
        return
    for names in layers if block == "layer" else [list(total)]:
        drawn = _around(torch.cat([vector[name].flatten() for name in names])[None], kappa, generator)[0]
        for name, view in _named(drawn, names, total).items():
            total[name].add_(view, alpha=scale)


def _by_layer(parameters: Parameters) -> list[list[str]]:
    """The parameters' names, grouped by layer."""
    return [list(names) for _, names in groupby(parameters, lambda name: name.rpartition(".")[0])]


def _around(vectors: Tensor, kappa: float, generator: Generator) -> Tensor:
    """One draw around the direction of each row of ``vectors`` (n, d), uniform if a row has no direction."""
    lengths = torch.linalg.vector_norm(
        vectors, dim=1, dtype=torch.float64
    )  # squares of small numbers vanish in float32
    directed = lengths > LEAST
    means = vectors / lengths[:, None].to(vectors.dtype)
    means[~directed] = torch.eye(1, vectors.shape[1], dtype=vectors.dtype, device=vectors.device)
    return sample_vmf(means, kappa * directed.double(), generator)


def _named(flat: Tensor, names: list[str], like: Parameters) -> Parameters:
    """Views of ``flat`` (d,) as the parameters ``names``, with K = 1 in front."""
    parts = flat.split([like[name].numel() for name in names])
    return {name: part.view(like[name].shape) for name, part in zip(names, parts, strict=True)}


def _add_sum(
    source: "BackwardPass | PerExample",
    names: list[str],
    kappa: float,
    scale: float,
    total: Parameters,
    generator: Generator,
) -> None:
    """All examples' draws at once, as one weighted sum and one normal vector (see `privacy.vmf_sum`)."""
    gram = source.gram()[0]
    lengths = gram.diagonal().sqrt()
    directed = lengths > LEAST
    dimension = sum(total[name].numel() for name in names)
    zeros = total[names[0]].new_zeros(dimension)
    for _ in range(int((~directed).sum())):
        drawn = _around(zeros[None], kappa, generator)[0]
        for name, view in _named(drawn, names, total).items():
            total[name].add_(view, alpha=scale)
    if not bool(directed.any()):
        return
    own = lengths[directed]
    cosines = (gram[directed][:, directed] / own[:, None] / own).fill_diagonal_(1)
    drawn = draw_vmf_sums(cosines, dimension, cosines.new_full((1, len(own)), kappa), generator=generator)
    normal = zeros.normal_(generator=generator)
    direction = _named(normal, names, total)
    products = source.directional_derivative(direction)[0, directed].double() / own
    weights, factor = combinations(drawn, products[None], torch.dot(normal, normal)[None])
    scales = zeros.new_zeros(1, len(lengths))
    scales[0, directed] = (weights[0] / own * scale).to(scales.dtype)
    source.add_weighted_sum(scales, total)
    for name, view in direction.items():
        total[name].add_(view, alpha=float(factor) * scale)


def _add_rows(part: PerExample, kappa: float, scale: float, total: Parameters, generator: Generator) -> None:
    if isinstance(part, LinearGradients):
        add = _add_linear_sums if part.examples <= part.input.shape[2] else _add_linear_rows
        add(part, kappa, scale, total, generator)
        return
    for rows in _row_chunks(part):
        drawn = _around(rows.flatten(0, 1), kappa, generator)
        _add_drawn_rows(drawn.view(rows.shape).sum(0), part.names, scale, total)


class LinearRows(NamedTuple):
    """The rows of a linear layer's gradients: row j of example i is δᵢⱼ(xᵢ, 1), so only its sign depends on j.

    Attributes:
        means: float64 (B, i + 1), the directions of (xᵢ, 1).
        signs: float64 (B, o), 1 or −1.
        kappas: float64 (B, o), 0 where a row has no direction.
    """

    means: Tensor
    signs: Tensor
    kappas: Tensor


def _linear_rows(part: LinearGradients, kappa: float) -> LinearRows:
    inputs = torch.nn.functional.pad(part.input[0].double(), (0, 1), value=1.0)
    lengths = torch.linalg.vector_norm(inputs, dim=1, keepdim=True)
    delta = part.delta[0].double()
    kappas = kappa * (delta.abs() * lengths > LEAST).double()
    return LinearRows(inputs / lengths, torch.where(delta < 0, -1.0, 1.0).double(), kappas)


def _add_linear_rows(
    part: LinearGradients, kappa: float, scale: float, total: Parameters, generator: Generator
) -> None:
    """`_add_rows` by `sample_vmf`, without ever forming the rows or their draws: only the draws' sums."""
    means, signs, kappas = _linear_rows(part, kappa)
    dimension = means.shape[1]
    dtype = torch.float64 if dimension < SHORT else part.input.dtype
    size = max(1, ROWS_BYTES // (signs.shape[1] * dimension * 8))
    rows = torch.zeros(signs.shape[1], dimension, dtype=torch.float64, device=means.device)
    for own, sign, of_rows in zip(means.split(size), signs.split(size), kappas.split(size), strict=True):
        noise = part.input.new_empty(*sign.shape, dimension).normal_(generator=generator).to(dtype)
        along = sign * torch.bmm(noise, own.to(dtype)[:, :, None])[:, :, 0].double()
        length = torch.linalg.vector_norm(noise, dim=2).double()
        least = torch.finfo(dtype).eps * length  # if the noise is a multiple of the mean
        across = (length**2 - along**2).maximum(least**2).sqrt_()
        first = (along / length, across / length)
        cosine, sine = vmf_cosines(dimension, of_rows, sign.shape, generator, first, means.device)
        stretch = sine / across
        rows += torch.bmm(stretch.T[:, None, :].to(dtype), noise.transpose(0, 1))[:, 0]
        rows.addmm_(((cosine - stretch * along) * sign).T, own)
    _add_drawn_rows(rows.to(part.input.dtype), part.names, scale, total)


def _add_linear_sums(
    part: LinearGradients, kappa: float, scale: float, total: Parameters, generator: Generator
) -> None:
    """`_add_rows` by `privacy.vmf_sum`."""
    means, signs, kappas = _linear_rows(part, kappa)
    gram = (means @ means.T).fill_diagonal_(1)
    short = means.to(part.input.dtype)
    size = max(1, ROWS_BYTES // (4 * len(gram) ** 2))
    rows = []
    for own_kappas, own_signs in zip(kappas.T.split(size), signs.T.split(size), strict=True):
        drawn = draw_vmf_sums(gram, means.shape[1], own_kappas, own_signs, generator)
        normal = short.new_empty(len(own_kappas), short.shape[1]).normal_(generator=generator)
        weights, factor = combinations(drawn, normal @ short.T, normal.square().sum(1))
        rows.append(normal.mul_(factor[:, None]).addmm_(weights.to(short.dtype), short))
    _add_drawn_rows(torch.cat(rows), part.names, scale, total)


def _row_chunks(part: PerExample) -> Iterator[Tensor]:
    """(n, o, d): the gradient rows of some examples at a time."""
    examples = part.examples
    per_example = part.rows(slice(0, 1)).numel() * 8
    size = max(1, ROWS_BYTES // per_example)
    for start in range(0, examples, size):
        yield part.rows(slice(start, start + size))[0]


def _add_drawn_rows(rows: Tensor, names: Sequence[str], scale: float, total: Parameters) -> None:
    """total += scale·rows. Each row holds the numbers of the parameters ``names``, one after the other."""
    widths = [total[name].numel() // len(rows) for name in names]
    for name, part in zip(names, rows.split(widths, 1), strict=True):
        total[name].add_(part.reshape(total[name].shape), alpha=scale)
