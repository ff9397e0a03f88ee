"""The gradient of one step: plain, or bounded and noised, for all models into one flat buffer.

sample → **per-unit gradients → bound → sum → noise → divide** → optimiser. The arithmetic goes the other way round,
which saves passes over the buffer: the noise, already divided, is drawn into it, and scaled gradients are added.
"""

from dataclasses import dataclass
from typing import Any

import torch
from torch import Generator, Tensor
from torch.nn.utils.rnn import pad_sequence

from dp_leakage.models.functional import Parameters
from dp_leakage.models.layers import Layers
from dp_leakage.privacy.clipping import bound_scales
from dp_leakage.privacy.mechanism import GROUPS, Mechanism
from dp_leakage.training.directional import add_directed, add_directed_examples
from dp_leakage.training.record import Record, backpropagate
from dp_leakage.training.samplers import Batch
from dp_leakage.user_code import function


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
        noise: for each model its row of ``gradient`` and its generator, on the buffer's device.
        lanes: how the models share passes.
        width: most records of one model in one pass.
    """

    layers: Layers
    x: Tensor
    y: Tensor
    mechanism: Mechanism | None
    divisor: float
    gradient: Tensor
    noise: list[tuple[Tensor, Generator]]
    lanes: list[Lane]
    width: int


def fill_gradient(program: Program, batches: list[Batch]) -> None:
    """The step's gradient of every model into ``program.gradient``; ``batches`` holds one batch per model."""
    mechanism = program.mechanism
    _draw_noise(program)
    for lane in program.lanes:
        of_lane = [batches[model] for model in lane.models]
        if bounds_examples(mechanism):
            _add_examples(program, lane, [rows for (rows,) in of_lane])
        elif _single_records(mechanism, of_lane[0]):
            # The mean of one record is the record: what every example as a unit computes, in the same way to the bit.
            _add_examples(program, lane, [torch.cat(of_lane[0])])
        else:
            _add_groups(program, lane, *of_lane)


def bounds_examples(mechanism: Mechanism | None) -> bool:
    """Whether every example is a unit; else whole batches or groups are (VMF around the sum: the batch)."""
    return mechanism is None or (mechanism.unit == "example" and mechanism.block != "sum")


def _single_records(mechanism: Mechanism, batch: Batch) -> bool:
    return mechanism.unit in GROUPS and len(batch) > 0 and all(len(unit) == 1 for unit in batch)


def _draw_noise(program: Program) -> None:
    """The divided noise N(0, (σC/divisor)²) or a plugin's, each model's from its own stream, or zeros."""
    mechanism, gradient = program.mechanism, program.gradient
    if mechanism is None or not mechanism.noise_multiplier:  # without, or of directions: that comes with the gradients
        gradient.zero_()
        return
    deviation = mechanism.noise_multiplier * mechanism.clip_norm / program.divisor
    own = None if mechanism.noise == "gaussian" else function(mechanism.noise, "noise")
    for row, generator in program.noise:
        if own is None:
            row.normal_(0.0, deviation, generator=generator)
        else:
            own(row, deviation, generator)


def _add_examples(program: Program, lane: Lane, batches: list[Tensor]) -> None:
    """Every example a unit."""
    rows, present = _side_by_side(batches, program.x.device)
    for start in range(0, rows.shape[1], program.width):
        part = slice(start, start + program.width)
        record = _backpropagate(program, lane, rows[:, part])
        if program.mechanism is not None and program.mechanism.noise == "vmf":
            add_directed_examples(record, **_directed(program, lane))
            continue
        if program.mechanism is None:
            sizes = rows.new_tensor([len(batch) for batch in batches])[:, None]
            scales = sizes.to(program.x.dtype).reciprocal_().expand(rows[:, part].shape)
        else:
            scales = _bound(program, record.norms())
        record.add_weighted_sum(scales if present is None else scales * present[:, part], lane.gradient)


def _side_by_side(batches: list[Tensor], device: torch.device) -> tuple[Tensor, Tensor | None]:
    """Batches as one (k, B), the shorter ones padded with row 0; and where they are not padding, None if nowhere."""
    if len(batches) == 1:
        return batches[0][None].to(device), None
    if len({batch.shape[0] for batch in batches}) == 1:
        return torch.stack(batches).to(device), None
    present = pad_sequence([torch.ones_like(batch) for batch in batches], batch_first=True)
    return pad_sequence(batches, batch_first=True).to(device), present.to(device)


def _add_groups(program: Program, lane: Lane, batch: Batch) -> None:
    """Each unit's mean gradient, bounded (zhang2020, algorithm 2; unit ``batch``: one unit). One model per lane."""
    mean = {name: torch.empty_like(view) for name, view in lane.gradient.items()}
    mechanism = program.mechanism
    for unit in batch:
        for view in mean.values():
            view.zero_()
        for rows in unit.split(program.width) if len(unit) else ():
            scales = program.x.new_full((1, len(rows)), 1 / len(unit))
            _backpropagate(program, lane, rows[None].to(program.x.device)).add_weighted_sum(scales, mean)
        if mechanism.noise == "vmf":
            add_directed(mean, **_directed(program, lane))
            continue
        norms = torch.stack([torch.linalg.vector_norm(view) for view in mean.values()])
        scale = _bound(program, torch.linalg.vector_norm(norms))
        for name, view in mean.items():
            lane.gradient[name].addcmul_(view, scale)


def _directed(program: Program, lane: Lane) -> dict[str, Any]:
    """What VMF noise needs besides the gradients; lanes are of one model then."""
    mechanism = program.mechanism
    return {
        "block": "whole" if mechanism.block == "sum" else mechanism.block,
        "kappa": mechanism.kappa,
        "scale": mechanism.clip_norm / program.divisor,
        "total": lane.gradient,
        "generator": program.noise[lane.models.start][1],
    }


def _bound(program: Program, norms: Tensor) -> Tensor:
    mechanism = program.mechanism
    return bound_scales(norms, mechanism.clip_norm, mechanism.bound).div_(program.divisor)


def _backpropagate(program: Program, lane: Lane, rows: Tensor) -> Record:
    flat = rows.flatten()
    x = program.x.index_select(0, flat).unflatten(0, rows.shape)
    y = program.y.index_select(0, flat).view(rows.shape)
    return backpropagate(program.layers, lane.parameters, x, y, lane.dropout)
