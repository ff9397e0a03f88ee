"""Untrained models, for attacks on their gradients."""

import torch

from dp_leakage.common.identity import derived_seed
from dp_leakage.data.dataset import Dataset
from dp_leakage.models.ensemble import Ensemble
from dp_leakage.models.layers import initial_parameters
from dp_leakage.privacy.protection import Protection
from dp_leakage.steps import Json
from dp_leakage.steps._models import architecture_of
from dp_leakage.steps._noise import private_training


def untrained(settings: Json, data: Dataset, seed: int) -> Ensemble:
    """Return new models with a training's mechanism and noise, without training.

    Their parameters are PyTorch's initial ones, not those of the training. An attack sees gradients of further new
    models (`attacks.reconstruction.released`), and uses the layers and the mechanism of these.

    Args:
        settings: the training settings that this depends on: ``architecture``, ``dropout``, ``mechanism``, ``repeats``,
            ``epochs``, ``batch_size`` and ``n_records``.
        data: the training data.
        seed: of the parameters.

    Raises:
        UserError: no noise reaches the budget.
    """
    layers = architecture_of(settings, data.x.shape[1:], data.n_classes)
    streams = [torch.Generator().manual_seed(derived_seed(seed, repeat) >> 1) for repeat in range(settings["repeats"])]
    starts = [initial_parameters(layers, stream) for stream in streams]
    schedule = settings["epochs"], settings["batch_size"], settings["n_records"]
    private = private_training(Protection.read(settings["mechanism"]), layers, *schedule)
    return Ensemble(
        layers,
        {name: torch.stack([start[name] for start in starts]) for name in starts[0]},
        torch.empty(len(starts), 0, dtype=torch.int64),
        None if private is None else private.mechanism,
    )
