"""Model batches: which of K models go through forward and backward together, and how many records at a time.

Measured on CPUs: small fully connected layers gain from batching over models (one call instead of K), as long as the
activations of a model batch stay in the cache. Large ones are limited by their matrix products, and convolutions become
slower, so these process one model after the other. A GPU takes all models that fit into its memory.
"""

import math
from typing import NamedTuple

import torch
from torch import Generator, Tensor

from dp_leakage.models.layers import Layers, Parameters, activation_floats
from dp_leakage.models.products import CPU_MULTIPLE, takes_one_at_a_time
from dp_leakage.privacy.mechanism import BATCH, Mechanism
from dp_leakage.training import flat
from dp_leakage.training.gradients import ModelBatch
from dp_leakage.training.graphs import capturable
from dp_leakage.training.noise import directs, goes_alone

# Bytes of activations. A model batch of 8 MB takes up to a sixth less time than one of 4, larger ones hardly less
# (measured on processors with 2 MB of cache a core). A model's bytes depend on whether it is alone, but
# not on the number of other models.
ALONE_BYTES = 1 << 21  # a model with more is alone
LANE_BYTES = 1 << 23
PASS_BYTES = 1 << 28  # bytes of main memory for the activations of one pass on a CPU
UNCUT = 1 << 62  # records, more than any batch has
RAGGED_SPREAD = 3.0  # standard deviations of a batch's length that its first pass leaves room for
RAGGED_MULTIPLE = 32  # on a GPU, so that batches of different lengths have few shapes and a training needs few graphs
# Records: on a CPU, a record's row of a product rounds alike wherever it lies in a pass of a multiple of so many. Of 8,
# it does not in a residual network (measured).
ROWS_MULTIPLE = 16
ONE_SHAPE_SPREAD = 6.0  # standard deviations of a batch's length, where one shape should do for a whole training
SHARE_OF_GPU = 0.1  # share of its memory, so that four trainings fit with their graphs, which also hold activations


def make_model_batches(
    layers: Layers, parameters: Tensor, gradient: Tensor, dropout: list[Generator], size: int, fixed: Parameters
) -> list[ModelBatch]:
    """Split the models of the flat buffers ``parameters`` and ``gradient`` (K, P) into model batches of ``size``
    models.

    ``fixed`` are their tensors other than parameters, name → (K, …).
    """
    parts = [slice(start, min(start + size, len(parameters))) for start in range(0, len(parameters), size)]
    return [
        ModelBatch(
            range(own.start, own.stop),
            flat.views(layers, parameters[own]) | {name: tensor[own] for name, tensor in fixed.items()},
            flat.views(layers, gradient[own]),
            dropout[own],
        )
        for own in parts
    ]


def model_batch_size(
    layers: Layers,
    parameters: Tensor,
    mechanism: Mechanism | None,
    batch_size: float,
    shape: tuple[int, ...],
) -> int:
    """Return the largest number of models in one model batch, for passes of ``batch_size`` records per model. On a CPU

    it does not depend on K, so neither do a model's bytes.
    """
    if goes_alone(mechanism) or any(layer.foreign for layer in layers):
        return 1
    bytes_per_model = batch_size * activation_floats(layers, shape) * parameters.element_size()
    if parameters.device.type != "cpu":
        padding = RAGGED_MULTIPLE / batch_size
        return max(1, int(pass_bytes(parameters.device) / bytes_per_model / (1 + padding)))
    weights = (value for name, value in flat.views(layers, parameters).items() if name.endswith("weight"))
    if any(layer.alone for layer in layers) or any(map(takes_one_at_a_time, weights)):
        return 1
    return 1 if bytes_per_model > ALONE_BYTES else int(LANE_BYTES / bytes_per_model)


class Passes(NamedTuple):
    """Division of a training's batches into passes.

    Attributes:
        models: the most models in one model batch.
        width: the most records of one model in one pass. Larger batches are summed piece by piece.
        multiple: a batch is padded to a multiple of this many records.
    """

    models: int
    width: int
    multiple: int


def cut(
    layers: Layers,
    parameters: Tensor,
    mechanism: Mechanism | None,
    expected: float,
    shape: tuple[int, ...],
    deviation: float,
) -> Passes:
    """Choose the passes for batches of ``expected`` records on average, with this standard ``deviation``.

    If the deviation is not 0, so that batch sizes vary, and models share a pass on a CPU, every pass has the same
    width. So a model's bytes do not depend on the lengths of other models' batches: a pass needed only by another model
    adds zeros to it. Nearly every batch fits into one pass.

    A record that leaves a batch must not change the rounding of the other records' gradients, since crafted parameters
    can amplify such a change (`privacy.clipping`). So the passes of private trainings have lengths for which kernels
    round consistently.
    """
    most, ragged = pass_width(layers, shape, parameters.device), deviation > 0
    if mechanism is None and any(layer.foreign for layer in layers):
        return Passes(1, UNCUT, 1)  # it may mix the records of a batch
    if parameters.device.type != "cpu":
        multiple = 1
        if ragged and capturable(mechanism):
            # What noise that directs draws depends on the width, which should not depend on other models' batches.
            least = expected + ONE_SHAPE_SPREAD * deviation if directs(mechanism) else 1
            multiple = RAGGED_MULTIPLE * math.ceil(least / RAGGED_MULTIPLE)
        return Passes(model_batch_size(layers, parameters, mechanism, min(expected, most), shape), most, multiple)
    width = math.ceil((expected + RAGGED_SPREAD * deviation) / CPU_MULTIPLE) * CPU_MULTIPLE
    size = model_batch_size(layers, parameters, mechanism, width, shape)
    if ragged and (any(layer.draws for layer in layers) or (mechanism is not None and mechanism.unit == BATCH)):
        size = 1  # a model's stream may only depend on its own batches, and whole batches of other lengths go alone
    if size == 1:
        multiple = 1 if mechanism is None or directs(mechanism) else min(ROWS_MULTIPLE, most)
        return Passes(1, most - most % multiple, multiple)
    return Passes(size, width, width) if ragged else Passes(size, most, CPU_MULTIPLE)


def pass_width(layers: Layers, shape: tuple[int, ...], device: torch.device) -> int:
    """Return the most records of one model that memory allows in one pass."""
    floats = activation_floats(layers, shape) + sum(layer.formed_floats for layer in layers)
    return max(1, int(pass_bytes(device) / (4 * floats)))


def pass_bytes(device: torch.device) -> int:
    """Return the bytes of memory for the activations of one pass. On a GPU, all models of a model batch share them."""
    if device.type == "cpu":
        return PASS_BYTES
    return int(SHARE_OF_GPU * torch.cuda.get_device_properties(device).total_memory)
