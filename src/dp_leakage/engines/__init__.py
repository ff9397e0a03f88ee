"""Engines that store outputs instead of models: for external models and other libraries' estimators.

Each module has ``answers(settings, data, subsets, seeds)`` → `Answers`, the outputs of K models on all records. Step
``train`` writes them in place of the parameters that other engines write. Importing this package is fast.
"""

from collections.abc import Mapping
from typing import Any

ENGINES = {
    "outputs": "dp_leakage.engines.outputs",
    "onnx": "dp_leakage.engines.onnx",
    "module": "dp_leakage.engines.module",
    "estimator": "dp_leakage.engines.estimator",
}
# Engines that keep the models themselves, by the module that trains.
OPACUS = "opacus"
TRAINERS = {"ensemble": "dp_leakage.training.trainer", OPACUS: "dp_leakage.training.opacus_trainer"}
GIVEN = ("outputs", "onnx", "module")  # engines of models that exist already
# Keys of an architecture that name files of the user, by engine.
FILES = {"outputs": ("name", "of"), "onnx": ("name",), "module": ("weights",), "estimator": ()}


def files_of(settings: Mapping[str, Any]) -> list[str]:
    """Return the user's files that a training with these settings reads: models or answers that exist already."""
    named = settings["architecture"]
    return [str(named[key]) for key in FILES.get(settings["engine"], ()) if key in named]
