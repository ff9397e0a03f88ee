"""Models that have not trained, for attacks on the gradients of such."""

import torch

from dp_leakage.common.identity import derived_seed
from dp_leakage.data.dataset import Dataset
from dp_leakage.models.ensemble import Ensemble
from dp_leakage.models.layers import initial_parameters
from dp_leakage.privacy.calibration import solved
from dp_leakage.steps import Json
from dp_leakage.steps._models import architecture_of
from dp_leakage.training.blocks import blocks_of


def untrained(settings: Json, data: Dataset, seed: int) -> Ensemble:
    """New models with the mechanism, and the noise, of a training that need not take place.

    They are not those that would train, but as PyTorch starts them. An attack sees gradients of new models of its own
    (`attacks.reconstruction.released`), and of these the layers and the mechanism.

    Args:
        settings: what this depends on of the training's settings: ``architecture``, ``dropout``, ``mechanism``,
            ``repeats``, ``epochs``, ``batch_size`` and ``n_records``.
        data: what the models would be trained on.
        seed: of the parameters.

    Raises:
        UserError: no noise reaches the budget.
    """
    layers, mechanism = architecture_of(settings, data.x.shape[1:], data.n_classes), settings["mechanism"]
    streams = [torch.Generator().manual_seed(derived_seed(seed, repeat) >> 1) for repeat in range(settings["repeats"])]
    starts = [initial_parameters(layers, stream) for stream in streams]
    private = solved(
        mechanism,
        blocks=blocks_of(layers, mechanism),
        epochs=settings["epochs"],
        batch_size=settings["batch_size"],
        dataset_size=settings["n_records"],
    )
    return Ensemble(
        layers,
        {name: torch.stack([start[name] for start in starts]) for name in starts[0]},
        torch.empty(len(starts), 0, dtype=torch.int64),
        None if private is None else private.mechanism,
    )
