"""Models of a training step: from settings, and from files."""

import fcntl
import os
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import get_args

import numpy as np
import torch

from dp_leakage.common.errors import UserError
from dp_leakage.common.identity import identity as identity_of
from dp_leakage.common.schemas import COUNT, FLAG, TEXT, Schema, check, enum, table
from dp_leakage.common.temporary import shared_folder
from dp_leakage.common.user_code import FILES
from dp_leakage.common.utilities import ACCURACY
from dp_leakage.data.dataset import Dataset
from dp_leakage.engines import ENGINES, TRAINERS
from dp_leakage.models.architectures import build, is_import_path
from dp_leakage.models.ensemble import NO_ROW, Ensemble
from dp_leakage.models.layers import Layers
from dp_leakage.models.layers.own import check_own
from dp_leakage.models.layers.torch_module import Factory
from dp_leakage.models.user_module import module_factory, module_layers
from dp_leakage.privacy.mechanism import Bound, check_step
from dp_leakage.privacy.mechanisms import MECHANISM_FILES
from dp_leakage.privacy.training import Training
from dp_leakage.provenance.contents import Expected, check_arrays
from dp_leakage.provenance.files import read_table, read_tensors
from dp_leakage.steps import Json
from dp_leakage.training.settings import TrainingSettings
from dp_leakage.training.tuning import with_rate


def architecture_of(settings: Json, input_shape: tuple[int, ...], n_classes: int) -> Layers:
    """Return a cell's architecture: built-in, or a module of the user. Raises UserError."""
    named = settings["architecture"]
    if is_import_path(named["name"]):
        arguments = {key: value for key, value in named.items() if key != "name"}
        factory = module_factory(named["name"], input_shape, n_classes, **arguments)
        return module_layers(factory, input_shape, n_classes)
    layers = build(n_classes=n_classes, input_shape=input_shape, dropout=settings["dropout"], **named)
    check_own(layers)
    return layers


def tuned_training(settings: Json, tuned: Path | None) -> tuple[TrainingSettings, Json]:
    """Return a training with the best learning rate of step ``tune``, and the provenance of the rate.

    Ties go to the first rate. Without such a step the training stays as it is.

    Raises:
        UserError: the file is missing, damaged or of other settings.
    """
    training = TrainingSettings(**settings["training"])
    if "tuned" not in settings:
        return training, {}
    if tuned is None:
        raise UserError("tuned: missing; the settings name a learning rate that step tune chooses")
    tried, made = read_table(tuned, settings["tuned"])
    measure = next(name for name in tried if name not in ("learning_rate", "fold"))
    reached = tried.groupby("learning_rate", sort=False)[measure].mean()
    rate = float(reached.idxmax())
    said = {"learning_rate": rate, "tried": [[float(key), float(value)] for key, value in reached.items()]}
    said |= {} if measure == ACCURACY else {"tuned_by": measure}
    return with_rate(training, rate), said | {"tuned_on": made["records"]}


def device_of(device: str, needed: bool = True) -> str:
    """Return ``cpu`` or ``cuda`` from config.yaml, in the latter case with a device that no other job uses, if
    possible.

    Args:
        device: ``auto``, ``cpu`` or ``cuda``.
        needed: whether ``cuda`` demands a device. What only asks trained models runs on any node of a cluster.

    Raises:
        UserError: a device is needed, and none is visible.
    """
    if device == "cpu" or not (torch.cuda.is_available() or (device == "cuda" and needed)):
        return "cpu"
    if not torch.cuda.is_available():
        raise UserError("config.yaml: key 'device' is 'cuda', but no CUDA device is visible here; use auto or cpu")
    if torch.cuda.device_count() > 1:
        torch.cuda.set_device(free_device(torch.cuda.device_count(), shared_folder()))
    return "cuda"


@cache
def free_device(count: int, folder: Path) -> int:
    """Return a device number below ``count`` that no other job of this submission uses, or any if all are in use.

    A lock file marks a device as used. The lock ends with this process, however that ends.

    Args:
        count: devices that this process sees.
        folder: for the locks, on this machine.
    """
    for device in range(count):
        file = os.open(folder / f"dp_leakage-{os.getuid()}-{os.environ.get('SLURM_JOB_ID', '')}-{device}", os.O_CREAT)
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(file)
        else:
            return device
    return os.getpid() % count


def read_models(path: Path, identity: str | None, data: Dataset, factory: Factory | None = None) -> Ensemble:
    """Read a ``.safetensors`` file of step ``train``.

    Args:
        path: the file.
        identity: of the settings that it was made from; None if any will do.
        data: the models' training data.
        factory: as in `models_of`.

    Raises:
        UserError: the file is damaged, of another identity, or does not hold models of this data set.
    """
    return models_of(*read_tensors(path, identity), data, path, identity, factory)


def models_of(
    tensors: dict[str, np.ndarray],
    made: Json,
    data: Dataset,
    path: Path,
    identity: str | None,
    factory: Factory | None = None,
) -> Ensemble:
    """Create the models from a file's tensors and provenance.

    A file never names code that is imported. A module of the user's is imported by its path only if the study names
    the same path, which the identity of its settings shows.

    Args:
        tensors, made: as `read_tensors` gives them.
        data: the models' training data.
        path: of the file, for error messages.
        identity: of the study's settings; None if there is no study.
        factory: makes the user's module, whose parameters are then replaced; None takes the study's.

    Raises:
        UserError: the file holds only answers, names code itself, or is not what a training can have written.
    """
    settings = settings_of(made, path)
    if settings["engine"] in ENGINES:
        raise UserError(
            f"{path}: engine {settings['engine']} stores its models' outputs, not the models; read the signals instead"
        )
    indices = {name: array for name, array in tensors.items() if name == "train_indices"}
    check_arrays(indices, {"train_indices": Expected("int64", "Kn", NO_ROW, len(data.y) - 1)}, str(path))
    found = {name: torch.from_numpy(array) for name, array in tensors.items()}
    try:
        name = settings["architecture"]["name"]
        if is_import_path(name) and factory is None and identity_of(settings) != identity:
            raise UserError(f"its models are of your class {name!r}, which must be given: read_cell(…, factory={name})")
        if is_import_path(name) and factory is not None:
            layers = module_layers(factory, data.x.shape[1:], data.n_classes)
        else:
            layers = architecture_of(settings, data.x.shape[1:], data.n_classes)
        private = training_of(made)
        mechanism = None if private is None else private.mechanism
        return replace(Ensemble.from_tensors(layers, found), mechanism=mechanism)
    except UserError as error:
        raise UserError(f"{path}: {error}") from None


def settings_of(made: Json, path: Path) -> Json:
    """Return the settings of a training from the provenance of its file. Raises UserError if it is not what step
    ``train`` writes.
    """
    check(made, MADE, f"{path}, of what made it")
    settings: Json = made["settings"]
    return settings


def training_of(made: Json) -> Training | None:
    """Return the training with a mechanism from a file's provenance, or None. Raises UserError."""
    given = made.get("training")
    if given is None:
        return None
    check(given, _training(), key="training")
    training = Training.read(given)
    check_step(training.mechanism)
    return training


def _training() -> Schema:
    """Return the schema of a training. Bounds and noises must be built-in or of a plugin in use, since they are
    imported.
    """
    declared = enum("none", *get_args(Bound), *FILES, *(name.rpartition(".")[2] for name in MECHANISM_FILES))
    amount: Schema = {"type": ["null", "number"], "minimum": 0}
    mechanism: dict[str, Schema] = {
        **dict.fromkeys(("sampler", "unit", "block"), TEXT),
        **dict.fromkeys(("bound", "noise"), declared),
        "clip_norm": {"type": "number", "exclusiveMinimum": 0},
        "settings": {"type": "object"},
        **dict.fromkeys(("noise_multiplier", "kappa"), amount),
    }
    training: dict[str, Schema] = {
        "mechanism": table(mechanism, [*mechanism]),
        **dict.fromkeys(("epochs", "dataset_size", "records"), COUNT),
        "batch_size": {"type": "number", "exclusiveMinimum": 0},
        "blocks": {"type": "array", "items": {"type": "integer", "minimum": 2}},
        "projection_noise": amount,
        "groups": {**COUNT, "type": ["null", "integer"]},
        "moves": FLAG,
    }
    return table(training, [*training])


SETTINGS: dict[str, Schema] = {  # what is read of a training's settings
    "engine": enum(*TRAINERS, *ENGINES),
    "architecture": {"type": "object", "required": ["name"], "properties": {"name": {"type": "string"}}},
    "dropout": {"type": "number", "minimum": 0, "exclusiveMaximum": 1},
    "mechanism": {"type": ["null", "object"]},
}
MADE: Schema = {
    "required": ["settings"],
    "properties": {"settings": {"type": "object", "required": list(SETTINGS), "properties": SETTINGS}},
}
