"""How K models share passes: which models go through forward and backward together, and how many records at a time.

Measured on CPUs: small fully connected layers gain from batching over models (one call instead of K), as long as a
lane's activations stay in the cache. Large ones are bound by their matrix products, and convolutions become slower, so
these process one model after the other. A GPU takes all models that fit into its memory.
"""

import torch
from torch import Generator, Tensor

from dp_leakage.models.layers import Layers, activation_floats
from dp_leakage.models.products import takes_one_at_a_time
from dp_leakage.privacy.mechanism import Mechanism
from dp_leakage.training import flat
from dp_leakage.training.gradients import Lane, bounds_examples
from dp_leakage.training.graphs import capturable
from dp_leakage.training.noise import directs

CACHE_BYTES = 1 << 22  # bytes for the activations of a lane (measured: softmax regression gains up to ten models)
PASS_BYTES = 1 << 28  # bytes of main memory for the activations of one pass
# In records. On a CPU, kernels round alike for every model whose part of memory begins at a multiple of this.
CPU_MULTIPLE = 8
RAGGED_MULTIPLE = 32  # on a GPU, so that batches of different lengths have few shapes and a training needs few graphs
SHARE_OF_GPU = 0.1  # share of its memory, so that four trainings fit with their graphs, which also hold activations


def make_lanes(layers: Layers, parameters: Tensor, gradient: Tensor, dropout: list[Generator], size: int) -> list[Lane]:
    """The models of the flat buffers ``parameters`` and ``gradient`` (K, P), in lanes of ``size`` models."""
    return [
        Lane(
            range(start, min(start + size, len(parameters))),
            flat.views(layers, parameters[start : start + size]),
            flat.views(layers, gradient[start : start + size]),
            dropout[start : start + size],
        )
        for start in range(0, len(parameters), size)
    ]


def lane_size(
    layers: Layers,
    parameters: Tensor,
    mechanism: Mechanism | None,
    batch_size: float,
    shape: tuple[int, ...],
    ragged: bool,
) -> int:
    """The most models in one lane. On a CPU it does not depend on K, so a model's bytes do not either.

    ``ragged``: whether the models' batches of a step differ in length.
    """
    if not bounds_examples(mechanism) or directs(mechanism):
        return 1
    bytes_per_model = batch_size * activation_floats(layers, shape) * parameters.element_size()
    if parameters.device.type != "cpu":
        memory = torch.cuda.get_device_properties(parameters.device).total_memory
        padding = RAGGED_MULTIPLE / batch_size
        return max(1, int(SHARE_OF_GPU * memory / bytes_per_model / (1 + padding)))
    # Padding ragged batches would make a model's arithmetic depend on the others' lengths.
    weights = (value for name, value in flat.views(layers, parameters).items() if name.endswith("weight"))
    if ragged or any(layer.alone for layer in layers) or any(map(takes_one_at_a_time, weights)):
        return 1
    return max(1, int(CACHE_BYTES / bytes_per_model))


def pass_width(layers: Layers, shape: tuple[int, ...]) -> int:
    """The most records of one model in one pass. Larger batches are summed piece by piece."""
    return max(1, int(PASS_BYTES / (4 * activation_floats(layers, shape))))


def batch_multiple(device: torch.device, mechanism: Mechanism | None, size: int, ragged: bool) -> int:
    """A batch is padded to a multiple of this many records if ``size`` models share a lane: `Program.multiple`."""
    if device.type == "cpu":
        return CPU_MULTIPLE if size > 1 else 1
    return RAGGED_MULTIPLE if ragged and capturable(mechanism) else 1
