"""One interface to both engines: built-in architectures as ensembles, and a user's own modules with Opacus."""

from dataclasses import fields, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch

from dp_leakage.common.errors import UserError
from dp_leakage.data.dataset import Dataset
from dp_leakage.engines import ENGINES
from dp_leakage.models.architectures import build
from dp_leakage.models.ensemble import Ensemble, Models
from dp_leakage.models.layers.own import check_own
from dp_leakage.models.user_module import ModuleEnsemble, module_factory
from dp_leakage.privacy.mechanism import Mechanism
from dp_leakage.provenance.files import read_table, read_tensors
from dp_leakage.steps import Json
from dp_leakage.training.trainer import train
from dp_leakage.training.tuning import with_rate


def architecture_of(settings: Json, input_shape: tuple[int, ...], n_classes: int) -> Any:
    """What a cell trains: layers for engine ``ensemble``, a factory of modules for ``opacus``. Raises UserError."""
    named = settings["architecture"]
    if settings["engine"] == "opacus":
        arguments = {key: value for key, value in named.items() if key != "name"}
        return module_factory(named["name"], input_shape, n_classes, **arguments)
    layers = build(n_classes=n_classes, input_shape=input_shape, dropout=settings["dropout"], **named)
    check_own(layers)
    return layers


def train_models(settings: Json, architecture: Any, *arguments: Any, **options: Any) -> tuple[Models, list[Json]]:
    """Trains with the cell's engine; the arguments are those of ``training.trainer.train``."""
    if settings["engine"] == "opacus":
        from dp_leakage.training.opacus_engine import train_module

        return train_module(architecture, *arguments, **options)
    return train(architecture, *arguments, **options)


def tuned_settings(settings: Json, tuned: Path | None) -> tuple[Json, Json]:
    """Settings with the learning rate that step ``tune`` found best, and what the models' file says about it.

    Of equally good rates it is the first. Without such a step the settings stay as they are.

    Raises:
        UserError: the file is missing, damaged or of other settings.
    """
    if "tuned" not in settings:
        return settings, {}
    if tuned is None:
        raise UserError("tuned: missing; the settings name a learning rate that step tune chooses")
    tried, made = read_table(tuned, settings["tuned"])
    accuracy = tried.groupby("learning_rate", sort=False)["accuracy"].mean()
    rate = float(accuracy.idxmax())
    said = {"learning_rate": rate, "tried": [[float(key), float(value)] for key, value in accuracy.items()]}
    return settings | {"training": with_rate(settings["training"], rate)}, said | {"tuned_on": made["records"]}


def device_of(device: str) -> str:
    """``cpu`` or ``cuda``, from config.yaml. Raises UserError if there is no such device."""
    if device == "auto":
        return "cuda" if torch.cuda.is_available() else "cpu"
    if device == "cuda" and not torch.cuda.is_available():
        raise UserError("config.yaml: key 'device' is 'cuda', but no CUDA device is visible here; valid is auto or cpu")
    return device


def read_models(path: Path, identity: str | None, data: Dataset) -> Models:
    """A ``.safetensors`` file of step ``train``. Raises UserError if it is damaged or of another identity."""
    return models_of(*read_tensors(path, identity), data)


def models_of(tensors: dict[str, np.ndarray], made: Json, data: Dataset) -> Models:
    """The models from a file's tensors and provenance. Raises UserError if the file holds only answers."""
    settings: Json = made["settings"]
    if settings["engine"] in ENGINES:
        raise UserError(
            f"engine {settings['engine']} keeps what its models say, not the models; read the signals instead"
        )
    architecture = architecture_of(settings, data.x.shape[1:], data.n_classes)
    found = {name: torch.from_numpy(array) for name, array in tensors.items()}
    if settings["engine"] == "opacus":
        return ModuleEnsemble.from_tensors(architecture, found)
    return replace(Ensemble.from_tensors(architecture, found), mechanism=mechanism_of(made))


def mechanism_of(made: Json) -> Mechanism | None:
    """The mechanism that protected a training, with its noise, from the provenance of its file."""
    given = made["settings"]["mechanism"]
    if given is None:
        return None
    noise = {key: made[key] for key in ("noise_multiplier", "kappa")}
    return Mechanism(**{field.name: given[field.name] for field in fields(Mechanism) if field.name in given} | noise)
