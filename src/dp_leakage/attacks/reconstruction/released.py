"""Information released by a training step: the gradient of a batch, protected as in the target's training.

In a batch of one record only the mechanism protects the record from the attacker. In larger ones the records hide each
other as well.
"""

from collections.abc import Iterator
from itertools import product
from typing import NamedTuple

import torch
from torch import Generator, Tensor

from dp_leakage.attacks.reconstruction.matching import check_layers
from dp_leakage.common.errors import UserError
from dp_leakage.common.identity import derived_seed
from dp_leakage.data.dataset import Dataset
from dp_leakage.models.ensemble import Ensemble
from dp_leakage.models.layers import Layers, Parameters, initial_parameters, parameter_shapes
from dp_leakage.privacy.mechanism import Mechanism
from dp_leakage.training import flat
from dp_leakage.training.gradients import ModelBatch, Program, bounds_examples, fill_gradient
from dp_leakage.training.noise import start_noise


class Released(NamedTuple):
    """The gradients of the batches of n records under one model.

    Attributes:
        repeat: number of the target model.
        batch: records per step.
        weights: ``initial`` or ``trained``, see `released`.
        layers: the architecture.
        parameters: name → (…) of the model; the attacker knows them.
        gradients: name → (n / batch, …), what the attacker sees.
        generator: the attacker's own random stream.
    """

    repeat: int
    batch: int
    weights: str
    layers: Layers
    parameters: Parameters
    gradients: Parameters
    generator: Generator


def victims(data: Dataset, count: int, attack: str) -> tuple[Tensor, Tensor]:
    """Return the first ``count`` members, which are a random sample: images float32 (n, c, h, w) in [0, 1], classes
    (n,).

    Raises:
        UserError: the records are not images in [0, 1], or there are fewer members.
    """
    members = data.roles["target_members"]
    if not 1 <= count <= len(members):
        raise UserError(f"attack {attack}: key 'images' is {count}; expected 1 to the {len(members)} members")
    x = data.x[members[:count]]
    if x.ndim != 4 or x.min() < 0 or x.max() > 1:
        raise UserError(f"attack {attack} reconstructs images; it needs pixels in [0, 1], without projection")
    return torch.from_numpy(x), torch.from_numpy(data.y[members[:count]])


def released(target: Ensemble, x: Tensor, y: Tensor, settings: dict, seed: int, attack: str) -> Iterator[Released]:
    """Yield the gradients of batches of records, under each target model and each of the weights of ``settings``.

    Args:
        target: the R models under attack, with the mechanism that they were trained with.
        x: (n, …) records; y: (n,) classes.
        settings: ``weights``, a list: ``initial``, a new model with PyTorch's initial parameters; ``trained``, the
            target. ``batch``, how many records a step takes, or a list.
        seed: of the initial models, the noise and the attacker's draws, so that all cells share them.
        attack: its name, for error messages.

    Raises:
        UserError: a user's own model, records that do not fill whole batches, or units that are groups of records in
            batches of several.
    """
    check_layers(target.layers, attack)
    batches, mechanism = batches_of(settings), target.mechanism
    for batch in batches:
        if len(x) % batch:
            raise UserError(f"attack {attack}: key 'batch' must divide 'images'; got {batch} and {len(x)}")
        if batch > 1 and mechanism is not None and mechanism.unit not in ("example", "batch"):
            raise UserError(
                f"attack {attack}: key 'batch' must be 1 where units are of kind {mechanism.unit}; got {batch}"
            )
    for batch, weights, repeat in product(batches, settings["weights"], range(target.size)):
        own = derived_seed(seed, repeat)
        if weights == "initial":
            parameters = initial_parameters(target.layers, _stream(own, "start"))
        else:
            parameters = {name: value[repeat] for name, value in target.parameters.items()}
        gradients = released_gradients(target.layers, parameters, x, y, mechanism, _stream(own, "noise"), batch)
        yield Released(repeat, batch, weights, target.layers, parameters, gradients, _stream(own, attack))


def batches_of(settings: dict) -> list[int]:
    """Return the batch sizes of the attacked steps."""
    batch = settings["batch"]
    return batch if isinstance(batch, list) else [batch]


def released_gradients(
    layers: Layers,
    parameters: Parameters,
    x: Tensor,
    y: Tensor,
    mechanism: Mechanism | None,
    noise: Generator,
    batch: int = 1,
) -> Parameters:
    """Compute the gradient of a step on each batch of records, bounded and noised by the trainer itself.

    Args:
        layers: the architecture.
        parameters: name → (…) of one model.
        x: (n, …) records; y: int64 (n,) classes.
        mechanism: protection of the step; None: plain gradient.
        noise: random stream of the mechanism.
        batch: number of consecutive records per step; it divides n.

    Returns:
        name → (n / batch, …), means over the batch as in training.
    """
    step = x.new_zeros(1, flat.size(layers))
    model_batch = ModelBatch(
        range(1), {name: value[None] for name, value in parameters.items()}, flat.views(layers, step), [noise]
    )
    units = float(batch if bounds_examples(mechanism) else 1)
    own = start_noise(mechanism, step, units, [noise], 1)
    program = Program(layers, x, y, mechanism, units, step, own, [model_batch], width=batch)
    rows = []
    with torch.no_grad():
        for batched in torch.arange(len(x)).split(batch):
            fill_gradient(program, [[batched]])
            rows.append(step[0].clone())
    views = flat.views(layers, torch.stack(rows))
    return {name: views[name] for name in parameter_shapes(layers)}


def _stream(seed: int, role: str) -> Generator:
    return Generator().manual_seed(derived_seed(seed, role) >> 1)
