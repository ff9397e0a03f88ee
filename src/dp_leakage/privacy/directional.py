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

from dp_leakage.common.kernels import aligned
from dp_leakage.models.layers import Parameters, PerExample
from dp_leakage.models.layers.linear import LinearGradients
from dp_leakage.privacy.mechanism import Block
from dp_leakage.privacy.noise import (
    PROPOSALS,
    SHORT,
    Streams,
    sample_vmf,
    sample_vmf_of_streams,
    vmf_cosines,
)
from dp_leakage.privacy.vmf_sum import combinations, draw_vmf_sums

if TYPE_CHECKING:
    from dp_leakage.training.backward import BackwardPass

LEAST = 1e-30  # float32 has too few digits for much shorter vectors
ROWS_BYTES = 1 << 25  # of rows that are drawn at a time
ROWS_BYTES_OF_GPU = 1 << 30


class Drawing(NamedTuple):
    """Parameters of draws around the example gradients of K models.

    Attributes:
        block: definition of one unit vector, see `Mechanism`.
        kappa: κ.
        scale: the factor of the draws.
        sizes: number of examples of each model; later ones are padding.
        generators: each model's stream.
        weights: (K, B), 0 for examples among these that are padding as well, 1 for the others; None if there are none.
            A GPU would have to wait for their number. Only for block ``row``.
    """

    block: Block
    kappa: float
    scale: float
    sizes: Sequence[int]
    generators: Sequence[Generator]
    weights: Tensor | None = None


def draws_padding(block: Block, device: torch.device) -> bool:
    """Return whether `add_directed_examples` draws around padding too, as a GPU does to avoid waiting for a result."""
    return block == "row" and device.type != "cpu"


def add_directed_examples(passed: "BackwardPass", drawing: Drawing, total: Parameters) -> None:
    """Compute total += scale·Σ Xᵢ for each model, with Xᵢ drawn around the direction of example i's gradient.

    Models share the calls that small draws wait for. Each draws what it draws alone, from its own stream.
    """
    if drawing.block == "whole":
        _add_sum(passed, list(total), drawing, total)
    elif drawing.block == "layer":
        for part in passed.parts:
            _add_sum(part, list(part.names), drawing, total)
    else:
        for part in passed.parts:
            _add_rows(part, drawing, total)


def add_directed(
    vectors: Parameters, block: Block, kappa: float, scale: float, total: Parameters, generators: Sequence[Generator]
) -> None:
    """Compute total += scale·X for each model, with X around the direction of its gradient in ``vectors``, shaped
    as ``total``.

    Each model draws what it draws alone, from its own stream.
    """
    layers = _by_layer(total)
    if block == "row":
        for names in layers:
            for model, generator in enumerate(generators):
                rows = torch.cat([vectors[name][model].unflatten(0, (-1, 1)).flatten(1) for name in names], 1)
                drawn = sample_vmf(*_directions(rows, kappa), generator)
                _add_drawn_rows(drawn, names, scale, _of_model(total, model))
        return
    for names in layers if block == "layer" else [list(total)]:
        flat = torch.cat([vectors[name].flatten(1) for name in names], 1)
        drawn = sample_vmf_of_streams(*_directions(flat, kappa), generators)
        for name, view in _named(drawn, names, total).items():
            total[name].add_(view, alpha=scale)


def _by_layer(parameters: Parameters) -> list[list[str]]:
    """Return the parameters' names, grouped by layer."""
    return [list(names) for _, names in groupby(parameters, lambda name: name.rpartition(".")[0])]


def _directions(vectors: Tensor, kappa: float) -> tuple[Tensor, Tensor]:
    """Return the rows of ``vectors`` (n, d) at length 1, and the κ of each: 0, for a uniform draw, if it has no
    direction.
    """
    # Squares of small numbers vanish in float32.
    lengths = torch.linalg.vector_norm(vectors, dim=1, dtype=torch.float64)
    directed = lengths > LEAST
    means = (vectors / lengths[:, None].to(vectors.dtype)).masked_fill_(~directed[:, None], 0.0)
    means[:, 0].masked_fill_(~directed, 1.0)  # any direction will do
    return means, kappa * directed.double()


def _named(flat: Tensor, names: list[str], like: Parameters) -> Parameters:
    """Return views of ``flat`` (K, d) as the parameters ``names``."""
    parts = flat.split([like[name][0].numel() for name in names], 1)
    return {name: part.unflatten(1, like[name].shape[1:]) for name, part in zip(names, parts, strict=True)}


def _of_model(total: Parameters, model: int) -> Parameters:
    return {name: view[model : model + 1] for name, view in total.items()}


def _add_sum(source: "BackwardPass | PerExample", names: list[str], drawing: Drawing, total: Parameters) -> None:
    """Add all of a model's draws at once, as one weighted sum and one normal vector (see `privacy.vmf_sum`)."""
    gram, sizes = source.gram(), torch.tensor(drawing.sizes)
    lengths = gram.diagonal(dim1=1, dim2=2).sqrt()
    within = (torch.arange(lengths.shape[1]) < sizes[:, None]).to(lengths.device)
    directed = (lengths > LEAST) & within
    dimension = sum(total[name][0].numel() for name in names)
    normal = total[names[0]].new_zeros(len(sizes), aligned(dimension))[:, :dimension]
    counts = directed.sum(1).tolist()
    for model, count in enumerate(counts):
        for _ in range(drawing.sizes[model] - count):
            drawn = sample_vmf(*_directions(normal[:1], drawing.kappa), drawing.generators[model])
            for name, view in _named(drawn, names, total).items():
                total[name][model : model + 1].add_(view, alpha=drawing.scale)
    models = [model for model, count in enumerate(counts) if count]
    if not models:
        return
    places = [directed[model].nonzero()[:, 0] for model in models]
    generators = [drawing.generators[model] for model in models]
    cosines = gram / lengths[:, :, None] / lengths[:, None]
    grams = [cosines[model][own][:, own].fill_diagonal_(1) for model, own in zip(models, places, strict=True)]
    kappas = [gram.new_full((1, len(own)), drawing.kappa) for own in places]
    drawn = draw_vmf_sums(grams, dimension, kappas, generators=generators)
    for model, generator in zip(models, generators, strict=True):
        normal[model].normal_(generator=generator)
    direction = _named(normal, names, total)
    products = source.directional_derivative(direction).double() / lengths
    scales, factors = total[names[0]].new_zeros(lengths.shape), total[names[0]].new_zeros(len(sizes))
    for model, own, sums in zip(models, places, drawn, strict=True):
        squared_length = torch.dot(normal[model], normal[model])
        weights, factor = combinations(sums, products[model, own][None], squared_length[None])
        scales[model, own] = (weights[0] / lengths[model, own] * drawing.scale).to(scales.dtype)
        factors[model] = factor[0] * drawing.scale
    source.add_weighted_sum(scales, total)
    for name, view in direction.items():
        total[name].addcmul_(view, factors.view(-1, *[1] * (view.ndim - 1)))


def _add_rows(part: PerExample, drawing: Drawing, total: Parameters) -> None:
    if isinstance(part, LinearGradients):
        inputs = part.input.shape[2]
        sums = drawing.weights is None and not draws_padding("row", part.delta.device)  # they wait, and know no weights
        few = [model for model, size in enumerate(drawing.sizes) if sums and 0 < size <= inputs]
        many = [model for model, size in enumerate(drawing.sizes) if size and model not in few]
        for add, models in ((_add_linear_sums, few), (_add_linear_rows, many)):
            if models:
                add(part, models, drawing, total)
        return
    for start, rows in _row_chunks(part):
        for model, (size, generator) in enumerate(zip(drawing.sizes, drawing.generators, strict=True)):
            if size > start:
                own = rows[model, : size - start]
                drawn = sample_vmf(*_directions(own.flatten(0, 1), drawing.kappa), generator).view(own.shape)
                if drawing.weights is not None:
                    drawn.mul_(drawing.weights[model, start : start + len(own), None, None])
                _add_drawn_rows(drawn.sum(0), part.names, drawing.scale, _of_model(total, model))


class LinearRows(NamedTuple):
    """Rows of a linear layer's gradients: row j of example i is δᵢⱼ(xᵢ, 1), so only its sign depends on j.

    Attributes:
        means: float64 (B, i + 1), the directions of (xᵢ, 1).
        signs: float64 (B, o), 1 or −1.
        kappas: float64 (B, o), 0 where a row has no direction.
        weights: float64 (B, 1), 0 for padding, whose draws do not count, otherwise 1.
    """

    means: Tensor
    signs: Tensor
    kappas: Tensor
    weights: Tensor


def _linear_rows(part: LinearGradients, models: Sequence[int], drawing: Drawing) -> list[LinearRows]:
    """Return the rows of each model's examples."""
    inputs = torch.nn.functional.pad(part.input.double(), (0, 1), value=1.0)
    lengths = torch.linalg.vector_norm(inputs, dim=2, keepdim=True)
    delta = part.delta.double()
    kappas = drawing.kappa * (delta.abs() * lengths > LEAST).double()
    weights = torch.ones_like(lengths) if drawing.weights is None else drawing.weights.double()[:, :, None]
    found = LinearRows(inputs / lengths, torch.where(delta < 0, -1.0, 1.0).double(), kappas, weights)
    return [LinearRows(*(values[model, : drawing.sizes[model]] for values in found)) for model in models]


def _add_linear_rows(part: LinearGradients, models: Sequence[int], drawing: Drawing, total: Parameters) -> None:
    """Add as `_add_rows`, by `sample_vmf`, without ever forming the rows or their draws: only the draws' sums."""
    outputs, dimension = part.delta.shape[2], part.input.shape[2] + 1
    size = _drawn_at_once(outputs, dimension, part.delta.device)
    at_once = max(1, size // part.examples)
    for begin in range(0, len(models), at_once):
        together = models[begin : begin + at_once]
        own = _linear_rows(part, together, drawing)
        sums = [part.input.new_zeros(outputs, dimension, dtype=torch.float64) for _ in together]
        for start in range(0, max(len(rows.means) for rows in own), size):
            left = [place for place, rows in enumerate(own) if len(rows.means) > start]
            chunk = [LinearRows(*(values[start : start + size] for values in own[place])) for place in left]
            generators = [drawing.generators[together[place]] for place in left]
            _draw_rows(chunk, part.input.dtype, generators, [sums[place] for place in left])
        for model, rows in zip(together, sums, strict=True):
            _add_drawn_rows(rows.to(part.input.dtype), part.names, drawing.scale, _of_model(total, model))


def _draw_rows(
    examples: list[LinearRows], drawn_as: torch.dtype, generators: Sequence[Generator], sums: list[Tensor]
) -> None:
    """Add one draw around each row of each model's examples to the model's ``sums``, float64 (o, i + 1)."""
    dimension = examples[0].means.shape[1]
    dtype = torch.float64 if dimension < SHORT else drawn_as
    noises, alongs, acrosses, lengths = [], [], [], []
    for (means, signs, *_), generator in zip(examples, generators, strict=True):
        noise = means.new_empty(*signs.shape, dimension, dtype=drawn_as).normal_(generator=generator).to(dtype)
        along = signs * torch.bmm(noise, means.to(dtype)[:, :, None])[:, :, 0].double()
        length = torch.linalg.vector_norm(noise, dim=2).double()
        least = torch.finfo(dtype).eps * length  # if the noise is a multiple of the mean
        noises.append(noise)
        alongs.append(along.flatten())
        lengths.append(length.flatten())
        acrosses.append((length**2 - along**2).maximum(least**2).sqrt_().flatten())
    along, across, length = torch.cat(alongs), torch.cat(acrosses), torch.cat(lengths)
    streams = Streams(generators, [own.numel() for own in alongs], along.device)
    kappas = torch.cat([own.kappas.flatten() for own in examples])
    cosine, sine = vmf_cosines(dimension, kappas, streams, (along / length, across / length))
    stretch = sine / across
    factors = zip(stretch.split(streams.counts), (cosine - stretch * along).split(streams.counts), strict=True)
    for own, noise, (stretched, left), into in zip(examples, noises, factors, sums, strict=True):
        across, along = (part.view(own.signs.shape) * own.weights for part in (stretched, left))
        into += torch.bmm(across.T[:, None, :].to(dtype), noise.transpose(0, 1))[:, 0]
        into.addmm_((along * own.signs).T, own.means)


def _add_linear_sums(part: LinearGradients, models: Sequence[int], drawing: Drawing, total: Parameters) -> None:
    """Add as `_add_rows`, by `privacy.vmf_sum`."""
    examples = _linear_rows(part, models, drawing)
    generators = [drawing.generators[model] for model in models]
    grams = [(own.means @ own.means.T).fill_diagonal_(1) for own in examples]
    shorts = [own.means.to(part.input.dtype) for own in examples]
    outputs, dimension = part.delta.shape[2], part.input.shape[2] + 1
    size = max(1, ROWS_BYTES // (4 * part.examples**2))
    found: list[list[Tensor]] = [[] for _ in models]
    for start in range(0, outputs, size):
        kappas, signs = ([own[which].T[start : start + size] for own in examples] for which in (2, 1))
        drawn = draw_vmf_sums(grams, dimension, kappas, signs, generators)
        for sums, short, generator, rows in zip(drawn, shorts, generators, found, strict=True):
            normal = short.new_empty(len(sums.inside), dimension).normal_(generator=generator)
            weights, factor = combinations(sums, normal @ short.T, normal.square().sum(1))
            rows.append(normal.mul_(factor[:, None]).addmm_(weights.to(short.dtype), short))
    for model, rows in zip(models, found, strict=True):
        _add_drawn_rows(torch.cat(rows), part.names, drawing.scale, _of_model(total, model))


def _row_chunks(part: PerExample) -> Iterator[tuple[int, Tensor]]:
    """Yield the gradient rows of some examples at a time, (K, n, o, d), and the index of the first example."""
    one = part.rows(slice(0, 1))
    size = _drawn_at_once(one.shape[2], one.shape[3], one.device)
    for start in range(0, part.examples, size):
        yield start, part.rows(slice(start, start + size))


def _drawn_at_once(rows: int, dimension: int, device: torch.device) -> int:
    """Return the number of examples whose rows are drawn together. On a GPU, all proposals of a draw need memory as
    well.
    """
    if device.type == "cpu":
        return max(1, ROWS_BYTES // (rows * dimension * 8))
    return max(1, ROWS_BYTES_OF_GPU // (rows * (dimension + 8 * PROPOSALS) * 8))


def _add_drawn_rows(rows: Tensor, names: Sequence[str], scale: float, total: Parameters) -> None:
    """Compute total += scale·rows. Each row holds the numbers of the parameters ``names``, one after the other."""
    widths = [total[name].numel() // len(rows) for name in names]
    for name, part in zip(names, rows.split(widths, 1), strict=True):
        total[name].add_(part.reshape(total[name].shape), alpha=scale)
