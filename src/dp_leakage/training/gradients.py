"""The gradient of one step: plain, or bounded and noised, for all models into one flat buffer.

sample → **per-unit gradients → bound → sum → noise → divide** → optimiser. The arithmetic goes the other way round,
which saves passes over the buffer: the noise, already divided, is drawn into it, and scaled gradients are added.
"""

from dataclasses import dataclass
from typing import NamedTuple

import torch
import torch.nn.functional as F
from torch import Generator, Tensor
from torch.nn.utils.rnn import pad_sequence

from dp_leakage.models.layers import Layers, Parameters
from dp_leakage.models.norms import norm
from dp_leakage.privacy.clipping import bound_scales
from dp_leakage.privacy.mechanism import Mechanism, holds_groups
from dp_leakage.privacy.mechanisms.base import Noise
from dp_leakage.training.record import Record, backpropagate
from dp_leakage.training.samplers import Batch


@dataclass(frozen=True)
class Lane:
    """Models that go through one pass together, and views of their parameters and gradients (name → (k, …))."""

    models: range
    parameters: Parameters
    gradient: Parameters
    dropout: list[Generator]


@dataclass(frozen=True)
class Program:
    """What all steps of a training share.

    Attributes:
        layers: the architecture.
        x: (n, …) records; y: int64 (n,) classes.
        mechanism: None for plain training.
        divisor: what a bounded sum is divided by: the expected number of units in a batch, which no record moves.
        gradient: flat buffer (K, P).
        noise: what the mechanism adds to ``gradient``, or makes of each unit's gradient.
        lanes: how the models share passes.
        width: most records of one model in one pass.
        multiple: batches are padded to a multiple of this many records.
        lengths: (n,), see `record.record_lengths`.
    """

    layers: Layers
    x: Tensor
    y: Tensor
    mechanism: Mechanism | None
    divisor: float
    gradient: Tensor
    noise: Noise
    lanes: list[Lane]
    width: int
    multiple: int = 1
    lengths: Tensor | None = None


class Examples(NamedTuple):
    """What goes through one lane in one step, every example a unit; on the data's device.

    Attributes:
        rows: int64 (k, B), the row numbers of x.
        weights: (k, B), each example's factor besides its bound: 1/n in plain training, 1 in private, 0 where a
            shorter batch is padded; None where all are 1.
    """

    rows: Tensor
    weights: Tensor | None

    def parts(self, width: int) -> list["Examples"]:
        """The same in passes of at most ``width`` records of one model."""
        count = self.rows.shape[1]
        if 0 < count <= width:
            return [self]
        slices = [slice(start, start + width) for start in range(0, count, width)]
        return [Examples(self.rows[:, own], None if self.weights is None else self.weights[:, own]) for own in slices]


def fill_gradient(program: Program, batches: list[Batch], step: int = 0) -> None:
    """The gradient of every model into its lane: of ``step``, counted over the training, on one batch per model."""
    program.noise.add(step)
    if bounds_examples(program.mechanism):
        add_examples(program, lay_out(program, batches))
        return
    for lane in program.lanes:  # of one model each
        batch = batches[lane.models.start]
        if program.mechanism is not None and _single_records(program.mechanism, batch):
            # The mean of one record is the record: what every example as a unit computes, in the same way to the bit.
            _add_examples(program, lane, _side_by_side(program, [torch.cat(batch)]))
        else:
            _add_groups(program, lane, batch)


def lay_out(program: Program, batches: list[Batch]) -> list[Examples]:
    """What `add_examples` needs of one batch per model: for each lane its examples."""
    return [
        _side_by_side(program, [rows for model in lane.models for rows in batches[model]]) for lane in program.lanes
    ]


def add_examples(program: Program, examples: list[Examples]) -> None:
    """Adds to each lane's gradient that of its examples, every one a unit.

    But for noise of directions and plugins this work depends on the shapes in ``examples`` alone, and on a GPU it
    never waits for a result: so it can be captured (see `graphs`).
    """
    for lane, of_lane in zip(program.lanes, examples, strict=True):
        _add_examples(program, lane, of_lane)


def bounds_examples(mechanism: Mechanism | None) -> bool:
    """Whether every example is a unit; else whole batches or groups are (VMF around the sum: the batch)."""
    return mechanism is None or (mechanism.unit == "example" and mechanism.block != "sum")


def _single_records(mechanism: Mechanism, batch: Batch) -> bool:
    return holds_groups(mechanism.unit) and len(batch) > 0 and all(len(unit) == 1 for unit in batch)


def _add_examples(program: Program, lane: Lane, examples: Examples) -> None:
    """Every example a unit."""
    for rows, weights in examples.parts(program.width):
        record = _backpropagate(program, lane, rows)
        if program.noise.directs:  # of one model, so without padding
            program.noise.add_examples(record, lane.gradient, lane.models.start)
            continue
        if program.mechanism is None:
            scales = weights
        else:
            scales = _bound(program, record.norms())
            if weights is not None:
                scales.mul_(weights)
        record.add_weighted_sum(scales, lane.gradient)


def _side_by_side(program: Program, batches: list[Tensor]) -> Examples:
    """A batch for each model of a lane, the shorter ones padded with row 0 at weight 0."""
    private = program.mechanism is not None
    sizes = [batch.shape[0] for batch in batches]
    width = -(-max(sizes) // program.multiple) * program.multiple
    if min(sizes) == width:
        rows = torch.stack(batches) if len(batches) > 1 else batches[0].unsqueeze(0)
        weights = None if private else torch.full(rows.shape, 1 / max(width, 1), dtype=program.x.dtype)
    else:
        rows = F.pad(pad_sequence(batches, batch_first=True), (0, width - max(sizes)))
        own = torch.tensor(sizes)[:, None]
        weights = (torch.arange(width) < own).to(program.x.dtype)
        if not private:
            weights.div_(own.clamp(min=1))
    if program.x.device.type != "cpu":
        # From pageable memory, not blocking is safe: the driver has taken its copy when it returns.
        rows = rows.to(program.x.device, non_blocking=True)
        weights = None if weights is None else weights.to(program.x.device, non_blocking=True)
    return Examples(rows, weights)


def _add_groups(program: Program, lane: Lane, batch: Batch) -> None:
    """Each unit's mean gradient, bounded (zhang2020, algorithm 2; unit ``batch``: one unit). One model per lane."""
    mean = {name: torch.empty_like(view) for name, view in lane.gradient.items()}
    for unit in batch:
        for view in mean.values():
            view.zero_()
        for rows in unit.split(program.width) if len(unit) else ():
            scales = program.x.new_full((1, len(rows)), 1 / len(unit))
            _backpropagate(program, lane, rows[None].to(program.x.device)).add_weighted_sum(scales, mean)
        if program.noise.directs:
            program.noise.add_unit(mean, lane.gradient, lane.models.start)
            continue
        norms = torch.stack([norm(view.flatten()) for view in mean.values()])
        scale = _bound(program, torch.linalg.vector_norm(norms))
        for name, view in mean.items():
            lane.gradient[name].addcmul_(view, scale)


def _bound(program: Program, norms: Tensor) -> Tensor:
    mechanism = program.mechanism
    assert mechanism is not None  # without one nothing is bounded
    return bound_scales(norms, mechanism.clip_norm, mechanism.bound, program.divisor)


def _backpropagate(program: Program, lane: Lane, rows: Tensor) -> Record:
    flat = rows.flatten()
    x = program.x.index_select(0, flat).view(*rows.shape, *program.x.shape[1:])
    y = program.y.index_select(0, flat).view(rows.shape)
    lengths = None if program.lengths is None else program.lengths.index_select(0, flat).view(rows.shape)
    return backpropagate(program.layers, lane.parameters, x, y, lane.dropout, lengths)
