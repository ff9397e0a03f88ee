"""How K models share passes: what goes through forward and backward together, and how many records at a time.

Measured on CPUs: small fully connected layers gain from being batched over models (one call instead of K), as long as
a lane's activations stay in the cache; large ones are bound by their matrix products, and convolutions lose, so these
take one model after the other. A GPU takes all models that fit into its memory.
"""

import torch
from torch import Generator, Tensor

from dp_leakage.models.functional import activation_floats
from dp_leakage.models.layers import Conv2d, Layers
from dp_leakage.models.products import takes_one_at_a_time
from dp_leakage.privacy.mechanism import Mechanism
from dp_leakage.training import flat
from dp_leakage.training.gradients import Lane, bounds_examples

CACHE_BYTES = 1 << 22  # for the activations of a lane (measured: softmax regression gains up to ten models)
PASS_BYTES = 1 << 28  # main memory for the activations of one pass
SHARE_OF_GPU = 0.1  # of its memory, so that four trainings fit, each with its graphs: these hold activations, too


def make_lanes(
    layers: Layers,
    parameters: Tensor,
    gradient: Tensor,
    dropout: list[Generator],
    mechanism: Mechanism | None,
    batch_size: float,
    shape: tuple[int, ...],
) -> list[Lane]:
    """The models of the flat buffers ``parameters`` and ``gradient`` (K, P), sorted into lanes."""
    size = lane_size(layers, parameters, mechanism, batch_size, shape)
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
    layers: Layers, parameters: Tensor, mechanism: Mechanism | None, batch_size: float, shape: tuple[int, ...]
) -> int:
    """Most models in one lane."""
    if not bounds_examples(mechanism) or (mechanism is not None and mechanism.noise == "vmf"):
        return 1
    bytes_per_model = batch_size * activation_floats(layers, shape) * parameters.element_size()
    if parameters.device.type != "cpu":
        memory = torch.cuda.get_device_properties(parameters.device).total_memory
        return max(1, int(SHARE_OF_GPU * memory / bytes_per_model))
    # Poisson batches differ in length; padding would make a model's arithmetic depend on the others' lengths.
    ragged = mechanism is not None and mechanism.sampler in ("poisson", "class_poisson")
    convolves = any(isinstance(layer, Conv2d) for layer in layers)
    large = any(map(takes_one_at_a_time, flat.views(layers, parameters).values()))
    if ragged or convolves or large:
        return 1
    return max(1, int(CACHE_BYTES / bytes_per_model))


def pass_width(layers: Layers, shape: tuple[int, ...]) -> int:
    """Most records of one model in one pass; larger batches are summed piece by piece."""
    return max(1, int(PASS_BYTES / (4 * activation_floats(layers, shape))))
