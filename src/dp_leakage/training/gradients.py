"""Gradient of one step: plain, or bounded and noised, for all models in one flat buffer.

sample → **per-unit gradients → bound → sum → noise → divide** → optimizer. The arithmetic goes in reverse order, which
saves passes over the buffer: the noise, already divided, is drawn into it, and then scaled gradients are added.
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple

import torch
from torch import Generator, Tensor

from dp_leakage.models.layers import Layers, Parameters
from dp_leakage.models.norms import LEAST_NORM, norm
from dp_leakage.models.products import CHAIN, CPU_MULTIPLE
from dp_leakage.privacy.clipping import bound_scales, layer_norm
from dp_leakage.privacy.mechanism import BATCH, PER_LAYER, Mechanism
from dp_leakage.privacy.mechanisms.base import Noise
from dp_leakage.training.backward import BackwardPass, backpropagate
from dp_leakage.training.flat import views
from dp_leakage.training.samplers import Batch, Persons
from dp_leakage.training.tiles import Layout, even_layout, lay_out_persons, passes_of
from dp_leakage.training.views import Viewing, varied

MEANS = 1 << 28  # numbers of the mean gradients that one pass holds at once


@dataclass(frozen=True)
class ModelBatch:
    """A model batch: models that share a pass, with views of their parameters and gradients (name → (k, …))."""

    models: range
    parameters: Parameters
    gradient: Parameters
    dropout: list[Generator]

    def alone(self, place: int) -> "ModelBatch":
        """Return one model of the model batch, by index, as a model batch."""
        if len(self.models) == 1:
            return self
        own = slice(place, place + 1)
        parameters, gradient = (
            {name: view[own] for name, view in views.items()} for views in (self.parameters, self.gradient)
        )
        return ModelBatch(self.models[own], parameters, gradient, self.dropout[own])


@dataclass(frozen=True)
class Program:
    """State shared by all steps of a training.

    Attributes:
        layers: the architecture.
        x: (n, …) records; y: int64 (n,) classes.
        mechanism: None for plain training.
        divisor: divides a bounded sum: the expected number of units in a batch, which does not depend on any record.
        gradient: flat buffer (K, P).
        noise: noise that the mechanism adds to ``gradient``, or to each unit's gradient.
        model_batches: the model batches.
        width: most records of one model in one pass.
        multiple: batches are padded to a multiple of this many records.
        lengths: (n,), see `backward.record_lengths`.
        tiles: the records of tiles, see `tiles.tile_sizes`; None if units have too many records for them.
        fixed: the models' fixed tensors, name → (K, …).
        viewing: the views of each example; model_batches then have one model. None for the examples as they are.
    """

    layers: Layers
    x: Tensor
    y: Tensor
    mechanism: Mechanism | None
    divisor: float
    gradient: Tensor
    noise: Noise
    model_batches: list[ModelBatch]
    width: int
    multiple: int = 1
    lengths: Tensor | None = None
    tiles: tuple[int, int] | None = None
    fixed: Parameters = field(default_factory=dict)
    viewing: Viewing | None = None


class Examples(NamedTuple):
    """Examples of one model batch in one step, if every example is a unit.

    Attributes:
        rows: int64 (k, B), the row numbers of x.
        weights: (k, B), each example's factor apart from its bound: 1/n in plain training, 1 in private training, 0 for
            the padding of a shorter batch; None if all are 1.
    """

    rows: Tensor
    weights: Tensor | None

    def parts(self, width: int) -> list["Examples"]:
        """Split the examples into passes of at most ``width`` records of one model."""
        count = self.rows.shape[1]
        if 0 < count <= width:
            return [self]
        slices = [slice(start, start + width) for start in range(0, count, width)]
        return [Examples(self.rows[:, own], None if self.weights is None else self.weights[:, own]) for own in slices]


class Apart(NamedTuple):
    """The part of a step's bounded sum that comes from some records, without noise, for an observer.

    Attributes:
        records: bool (n,), which of x.
        sums: flat buffer (K, P), to which it is added.
    """

    records: Tensor
    sums: Tensor


def fill_gradient(program: Program, batches: list[Batch], step: int = 0, apart: Apart | None = None) -> None:
    """Write every model's gradient into the buffer, for one batch per model.

    ``step`` is counted over the whole training. If examples are units and bounded as a whole, the same pass can also
    sum some of them separately (``apart``).
    """
    program.noise.add(step)
    if bounds_examples(program.mechanism):
        (examples,) = on_device([lay_out(program, batches)], program.x.device)
        add_examples(program, examples, apart)
        return
    for model_batch in program.model_batches:
        own = [batches[model] for model in model_batch.models]
        assert program.mechanism is not None  # plain training bounds nothing, so every example is a unit
        if sums_examples(program.mechanism):
            _add_whole_batches(program, model_batch, [rows for batch in own for rows in batch])
        elif program.noise.directs or program.mechanism.unit == BATCH:
            for units in zip(
                *own, strict=True
            ):  # where noise directs, model batches have one model; a batch is one unit
                _add_units(program, model_batch, units)
        elif program.tiles is not None:
            _add_persons(program, model_batch, [Persons.of(batch) for batch in own])
        else:
            for place, batch in enumerate(own):
                _add_large(program, model_batch.alone(place), Persons.of(batch))


def _add_persons(program: Program, model_batch: ModelBatch, batches: list[Persons]) -> None:
    """Add the bounded mean gradients of the people, or (sub)classes, of a batch for each model of a model batch."""
    assert program.tiles is not None
    most = min(program.tiles[1], program.width)  # a watched person comes with all records, drawn ones perhaps with few
    if torch.cat([batch.sizes for batch in batches]).numpy().max(initial=0) > most:
        for place, batch in enumerate(batches):
            _add_large(program, model_batch.alone(place), batch.where(batch.sizes > most))
        batches = [batch.where(batch.sizes <= most) for batch in batches]
    for persons in passes_of(batches, program.width):
        if any(map(len, persons)):
            _add_side_by_side(program, model_batch, persons)


def _add_side_by_side(program: Program, model_batch: ModelBatch, batches: list[Persons]) -> None:
    """As `_add_persons` for people whose records fit into one pass."""
    padded, _ = _padded(program, [batch.rows for batch in batches])
    rows = sent(padded, program.x.device)
    assert program.tiles is not None
    layout = lay_out_persons(batches, rows.shape[1], program.tiles).to(rows.device)
    passed = _backpropagate(program, model_batch, rows)
    # A model without persons goes over a record of another model, on which its parameters may overflow.
    means = _finite_means(program, model_batch, passed, layout, rows.shape, all(map(len, batches)))
    means.add_weighted_sum(_bound(program, means.norms), model_batch)


class Means(NamedTuple):
    """Mean gradients of G people whose records share a pass.

    Attributes:
        passed: the pass, over records (K, B).
        layout: positions of the records.
        norms: (G,), finite.
        apart: int64 (g,), the people whose gradients cancel. Their means are formed, so that the vector with this
            length enters the sum.
        formed: those, name → (g, …).
    """

    passed: BackwardPass
    layout: Layout
    norms: Tensor
    apart: Tensor
    formed: Parameters

    def add_weighted_sum(self, scales: Tensor, model_batch: ModelBatch) -> None:
        """Add each model's sum of scale·mean to its gradient; scales (G,)."""
        of_persons = (scales / self.layout.sizes).index_fill_(0, self.apart, 0.0)
        shape = len(model_batch.models), self.passed.parts[0].examples
        of_records = torch.zeros(math.prod(shape), dtype=scales.dtype, device=scales.device)
        of_records.index_copy_(0, self.layout.places, of_persons.index_select(0, self.layout.persons))
        self.passed.add_weighted_sum(of_records.view(shape), model_batch.gradient)
        if not len(self.apart):
            return
        starts = self.layout.sizes.cumsum(0) - self.layout.sizes
        models = self.layout.places[starts[self.apart]] // shape[1]
        for name, own in self.formed.items():
            scaled = own * _for_each(scales[self.apart], own)
            for model, view in enumerate(model_batch.gradient[name]):
                view.add_(scaled[models == model].sum(0))


def _finite_means(
    program: Program, model_batch: ModelBatch, passed: BackwardPass, layout: Layout, shape: torch.Size, own: bool = True
) -> Means:
    """As `BackwardPass.finite` for people whose records (K, B) share a pass.

    ``own``: whether all padding repeats records of a model's own persons.
    """
    norms, cancelled = passed.norms_of_means(layout, program.x.dtype)
    if not (own and math.isfinite(norms.sum())):
        kept = norms.isfinite()
        of_records = torch.zeros(shape, dtype=torch.bool, device=norms.device)  # padding too, since 0·∞ is not 0
        of_records.view(-1)[layout.places] = kept[layout.persons]
        passed, norms = BackwardPass([part.where(of_records) for part in passed.parts]), norms.where(kept, LEAST_NORM)
    apart = cancelled.nonzero()[:, 0]
    if not len(apart):
        return Means(passed, layout, norms, apart, {})
    sizes = layout.sizes[apart, None]
    width = torch.arange(int(sizes.max()), device=norms.device)
    first = (layout.sizes.cumsum(0) - layout.sizes)[apart, None]
    places = layout.places[first + width.minimum(sizes - 1)]
    formed, lengths = _formed(passed, model_batch, places, (width < sizes).to(norms.dtype) / sizes)
    return Means(passed, layout, norms.index_copy(0, apart, lengths), apart, formed)


def _formed(
    passed: BackwardPass, model_batch: ModelBatch, places: Tensor, weights: Tensor
) -> tuple[Parameters, Tensor]:
    """Return weighted sums of the gradients at ``places`` (t, T) of a pass, name → (t, …), and their finite lengths
    (t,).
    """
    sums = {name: view.new_zeros(len(places), *view.shape[1:]) for name, view in model_batch.gradient.items()}
    BackwardPass([part.taken(places) for part in passed.parts]).add_weighted_sum(weights, sums)
    return _finite(sums)


def lay_out(program: Program, batches: Sequence[Batch]) -> list[Examples]:
    """Return the examples of each model batch in a step of one batch per model, still on the CPU."""
    mean = program.mechanism is None
    return [
        _side_by_side(program, [rows for model in model_batch.models for rows in batches[model]], mean)
        for model_batch in program.model_batches
    ]


def on_device(steps: list[list[Examples]], device: torch.device) -> list[list[Examples]]:
    """Copy results of `lay_out` for several steps to the device: one copy for all rows, and one for all weights."""
    if device.type == "cpu":
        return steps
    rows = _sent_together([own.rows for step in steps for own in step], device)
    weights = _sent_together([own.weights for step in steps for own in step if own.weights is not None], device)
    return [[Examples(next(rows), None if own.weights is None else next(weights)) for own in step] for step in steps]


def _sent_together(tensors: list[Tensor], device: torch.device) -> Iterator[Tensor]:
    """Yield the tensors on the device, as views of one tensor."""
    if not tensors:
        return iter(())
    together = sent(torch.cat([tensor.flatten() for tensor in tensors]), device)
    parts = together.split([tensor.numel() for tensor in tensors])
    return (part.view(tensor.shape) for part, tensor in zip(parts, tensors, strict=True))


def add_examples(program: Program, examples: list[Examples], apart: Apart | None = None) -> None:
    """Add the examples' gradients to each model batch's gradient, with every example a unit; see `fill_gradient`.

    Except for noise that waits and plugins, this work depends only on the shapes in ``examples`` and on a GPU never
    waits for a result, so it can be captured (see `graphs`).
    """
    for model_batch, of_model_batch in zip(program.model_batches, examples, strict=True):
        _add_examples(program, model_batch, of_model_batch, apart)


def adds_apart(program: Program) -> bool:
    """Return whether `fill_gradient` can add some records separately, independent of the batch's other records.

    Not on a GPU, which replays the step.
    """
    mechanism, layers = program.mechanism, program.layers
    if mechanism is None or program.noise.directs or mechanism.bound == PER_LAYER or program.viewing is not None:
        return False
    alike = not any(layer.foreign or layer.draws for layer in layers)
    return alike and program.x.device.type == "cpu" and bounds_examples(mechanism)


def bounds_examples(mechanism: Mechanism | None) -> bool:
    """Return whether every example is a unit. Otherwise units are whole batches or groups (for VMF around the sum, the
    batch).
    """
    return mechanism is None or (mechanism.unit == "example" and not sums_examples(mechanism))


def sums_examples(mechanism: Mechanism | None) -> bool:
    """Return whether noise is drawn around the sum of a batch's examples."""
    return mechanism is not None and mechanism.unit == "example" and mechanism.block == "sum"


def _add_examples(program: Program, model_batch: ModelBatch, examples: Examples, apart: Apart | None) -> None:
    """Add the gradients if every example is a unit."""
    for rows, weights in examples.parts(program.width):
        if program.viewing is not None:
            _add_views(program, program.viewing, model_batch, rows, weights)
            continue
        passed = _backpropagate(program, model_batch, rows)
        if program.mechanism is None:
            passed.add_weighted_sum(weights, model_batch.gradient)
            continue
        passed, norms = passed.finite()
        if program.noise.directs:
            program.noise.add_all_examples(passed, weights, model_batch.gradient, model_batch.models)
            continue
        if program.mechanism.bound == PER_LAYER:
            _add_by_layer(program, passed, weights, model_batch)
            continue
        scales = example_scales(program.noise, norms, model_batch.models, weights)
        if weights is not None:
            scales.mul_(weights)
        passed.add_weighted_sum(scales, model_batch.gradient)
        if apart is not None:
            of_model_batch = views(program.layers, apart.sums[model_batch.models.start : model_batch.models.stop])
            passed.add_weighted_sum(scales * apart.records[rows], of_model_batch)


def _add_views(
    program: Program, viewing: Viewing, model_batch: ModelBatch, rows: Tensor, weights: Tensor | None
) -> None:
    """Add the mean gradients of each example's augmented copies, bounded as one, for a single model."""
    count, flat = viewing.views.count, rows.flatten()
    x = varied(program.x.index_select(0, flat), viewing.views, viewing.generators[model_batch.models.start])
    y = program.y.index_select(0, flat).repeat_interleave(count)
    passed = backpropagate(program.layers, model_batch.parameters, x[None], y[None], model_batch.dropout)
    given = torch.ones_like(rows, dtype=program.x.dtype) if weights is None else weights
    if program.mechanism is None:
        passed.add_weighted_sum((given / count).repeat_interleave(count, 1), model_batch.gradient)
        return
    means = _finite_means(program, model_batch, passed, even_layout(len(flat), count).to(rows.device), y[None].shape)
    scales = example_scales(program.noise, means.norms[None], model_batch.models, weights) * given
    means.add_weighted_sum(scales[0], model_batch)


def example_scales(noise: Noise, norms: Tensor, models: range, weights: Tensor | None = None) -> Tensor:
    """Return the factor that bounds and divides each example's gradient, whose lengths are ``norms`` (k, B)."""
    if noise.bounds:
        return noise.scales(norms, models, weights)
    return bound_scales(norms, noise.mechanism.clip_norm, noise.mechanism.bound, noise.divisor)


def _add_by_layer(program: Program, passed: BackwardPass, weights: Tensor | None, model_batch: ModelBatch) -> None:
    """Add each layer's gradients, bounded separately."""
    assert program.mechanism is not None  # without a mechanism nothing is bounded
    share = layer_norm(program.mechanism.clip_norm, len(passed.parts))
    for part in passed.parts:
        scales = bound_scales(part.norms(), share, PER_LAYER, program.divisor)
        if weights is not None:
            scales.mul_(weights)
        part.add_weighted_sum(scales, model_batch.gradient)


def _side_by_side(program: Program, batches: list[Tensor], mean: bool) -> Examples:
    """Return a batch for each model, with the weights of its mean, or 1. Shorter batches are padded at weight 0."""
    rows, sizes = _padded(program, batches)
    width = rows.shape[1]
    if min(sizes) == width:
        weights = torch.full(rows.shape, 1 / max(width, 1), dtype=program.x.dtype) if mean else None
    else:
        own = torch.tensor(sizes)[:, None]
        weights = (torch.arange(width) < own).to(program.x.dtype)
        if mean:
            weights.div_(own.clamp(min=1))
    return Examples(rows, weights)


def _padded(program: Program, batches: list[Tensor]) -> tuple[Tensor, list[int]]:
    """Return each model's batch, int64 (k, B), padded with its last row, and the length of each batch.

    A row of another model could make this model's parameters overflow.
    """
    sizes = [batch.shape[0] for batch in batches]
    width = -(-max(sizes) // program.multiple) * program.multiple
    if min(sizes) == width:
        return torch.stack(batches) if len(batches) > 1 else batches[0].unsqueeze(0), sizes
    own, rows = torch.tensor(sizes)[:, None], torch.cat(batches)
    return rows[_places(own, width).clamp(0, len(rows) - 1)], sizes


def _places(sizes: Tensor, width: int) -> Tensor:
    """Return the indices of parts of ``sizes`` (k, 1), laid one after the other, int64 (k, width).

    Shorter parts repeat their last index.
    """
    return sizes.cumsum(0) - sizes + torch.arange(width).minimum(sizes - 1)


def sent(tensor: Tensor, device: torch.device) -> Tensor:
    """Return a tensor of the CPU on the training's device, without waiting for the copy.

    A GPU copies from pinned memory by itself. From other memory, the driver would wait for the GPU's earlier work first
    if the tensor is large.
    """
    if device.type == "cuda":
        tensor = tensor.pin_memory()
    return tensor.to(device, non_blocking=True)


def _add_units(program: Program, model_batch: ModelBatch, units: Sequence[Tensor]) -> None:
    """Add the bounded mean gradient of one unit's records, for each model of the model batch.

    Units go side by side if kernels then round as for one alone: that takes equal lengths, a multiple of
    `CPU_MULTIPLE`, in a single pass.
    """
    count = len(units[0])
    together = all(len(unit) == count for unit in units) and not count % CPU_MULTIPLE and count <= program.width
    if len(units) > 1 and not together:
        for place, unit in enumerate(units):
            _add_units(program, model_batch.alone(place), [unit])
        return
    mean = {name: torch.zeros_like(view) for name, view in model_batch.gradient.items()}
    for rows in torch.stack(list(units)).split(program.width, dim=1) if count else ():
        scales = program.x.new_full(rows.shape, 1 / count)
        _backpropagate(program, model_batch, sent(rows, program.x.device)).add_weighted_sum(scales, mean)
    _add_means(program, model_batch, mean)


def joins_units(device: torch.device) -> bool:
    """Return whether units of many records share passes.

    A GPU takes as long for the records of one unit as for those of many. A CPU gains nothing from company (measured).
    """
    return device.type != "cpu"


def _add_large(program: Program, model_batch: ModelBatch, units: Persons) -> None:
    """Add the bounded mean gradients of units of many records, for a single model.

    Each gradient is added separately, so long sums are cut in the same way as products (`products.CHAIN`).
    """
    if len(units) > CHAIN:
        number = torch.arange(len(units)) // CHAIN
        for chain in range(int(number[-1]) + 1):
            sums = {name: torch.zeros_like(view) for name, view in model_batch.gradient.items()}
            _add_large(program, replace(model_batch, gradient=sums), units.where(number == chain))
            for name, view in model_batch.gradient.items():
                view.add_(sums[name])
        return
    together = units.sizes <= (program.width if joins_units(program.x.device) else 0)
    for unit in units.where(~together):
        _add_units(program, model_batch, [unit])
    for (part,) in passes_of([units.where(together)], program.width):
        if len(part):
            _add_in_one_pass(program, model_batch, part)


def _add_in_one_pass(program: Program, model_batch: ModelBatch, units: Persons) -> None:
    """As `_add_units` for units whose records fit into one pass: each is then a row of records, padded at weight 0."""
    passed = _backpropagate(program, model_batch, sent(units.rows[None], program.x.device))
    sizes = units.sizes[:, None]
    width = int(sizes.max())
    places = sent(_places(sizes, width), program.x.device)
    weights = sent((torch.arange(width) < sizes).to(program.x.dtype) / sizes, program.x.device)
    at_once = max(1, MEANS // program.gradient.shape[1])
    for own, shares in zip(places.split(at_once), weights.split(at_once), strict=True):
        means, lengths = _formed(passed, model_batch, own, shares)
        scales = _bound(program, lengths)
        for name, view in means.items():
            model_batch.gradient[name].add_(torch.tensordot(scales, view, 1))


def _add_whole_batches(program: Program, model_batch: ModelBatch, batches: list[Tensor]) -> None:
    """Add the noisy mean gradient of a batch for each model. Shorter batches are padded at weight 0."""
    means = {name: torch.zeros_like(view) for name, view in model_batch.gradient.items()}
    for rows, weights in _side_by_side(program, batches, mean=True).parts(program.width):
        assert weights is not None  # of a mean
        passed = _backpropagate(program, model_batch, sent(rows, program.x.device))
        passed.add_weighted_sum(sent(weights, program.x.device), means)
    _add_means(program, model_batch, means)


def _add_means(program: Program, model_batch: ModelBatch, mean: Parameters) -> None:
    """Add one unit's mean gradient for each model, bounded or made noisy."""
    mean, lengths = _finite(mean)
    if program.noise.directs:
        program.noise.add_all_units(mean, model_batch.gradient, model_batch.models)
        return
    scales = _bound(program, lengths)
    for name, view in mean.items():
        model_batch.gradient[name].addcmul_(view, _for_each(scales, view))


def _finite(means: Parameters) -> tuple[Parameters, Tensor]:
    """Return `BackwardPass.finite` for mean gradients, name → (k, …), and (k,) their lengths."""
    of_names = torch.stack([norm(view.flatten(1)) for view in means.values()], 1)
    lengths = torch.stack([torch.linalg.vector_norm(own) for own in of_names])
    kept = lengths.isfinite()
    if bool(kept.all()):
        return means, lengths
    return {name: view.where(_for_each(kept, view), 0.0) for name, view in means.items()}, lengths.where(
        kept, LEAST_NORM
    )


def _for_each(values: Tensor, view: Tensor) -> Tensor:
    """Reshape (k,) to (k, 1, …), to broadcast with ``view`` (k, …)."""
    return values.view(-1, *[1] * (view.ndim - 1))


def _bound(program: Program, norms: Tensor) -> Tensor:
    mechanism = program.mechanism
    assert mechanism is not None  # without a mechanism nothing is bounded
    return bound_scales(norms, mechanism.clip_norm, mechanism.bound, program.divisor)


def _backpropagate(program: Program, model_batch: ModelBatch, rows: Tensor) -> BackwardPass:
    flat = rows.flatten()
    x = program.x.index_select(0, flat).view(*rows.shape, *program.x.shape[1:])
    y = program.y.index_select(0, flat).view(rows.shape)
    lengths = None if program.lengths is None else program.lengths.index_select(0, flat).view(rows.shape)
    return backpropagate(program.layers, model_batch.parameters, x, y, model_batch.dropout, lengths)
