"""Candidate settings of a release: a study's ``release.choose``. Pure, so that planning can refuse them."""

from itertools import product

from dp_leakage.common.config import Json
from dp_leakage.common.errors import UserError
from dp_leakage.common.schemas import Schema, check, enum
from dp_leakage.models.architectures import check_settings
from dp_leakage.training.settings import TrainingSettings
from dp_leakage.training.tuning import with_rate

CHOOSING = ("mean", "runs", "score_noise")  # keys of `release` beside `choose`
KEY = "release.choose"
FREE: dict[str, Schema] = {  # keys of training in which trainings may differ
    "learning_rate": {"type": "number", "exclusiveMinimum": 0, "maximum": 1000},
    "momentum": {"type": "number", "minimum": 0, "exclusiveMaximum": 1},
    "optimizer": enum("adam", "sgd"),
    "l2": {"type": "number", "minimum": 0},
    "initialization": enum("torch", "glorot"),
}


def release_grid(settings: Json, wanted: Json) -> tuple[Json, ...]:
    """Return the settings of every training that a release may draw; only the cell's own if nothing is chosen.

    Args:
        settings: of step ``train`` for the cell, with its ``training`` and ``architecture``.
        wanted: the study's key ``release``.

    Raises:
        UserError: a value or a combination of values that cannot be trained.
    """
    if "choose" not in wanted:
        for key in CHOOSING:
            if key in wanted:
                raise UserError(f"release.{key} has no effect without {KEY}; add that key, or remove release.{key}")
        return (settings,)
    if "target" in (settings["mechanism"] or {}):
        words = "the cell's noise keeps one training to a target, which a choice would exceed; name one with an ε"
        raise UserError(f"{KEY}: {words}, or remove the key")
    choose = wanted["choose"]
    for key, values in choose.items():
        for place, value in enumerate(values if key in FREE else []):
            check(value, FREE[key], key=f"{KEY}.{key}.{place}")
    return tuple(_changed(settings, dict(zip(choose, values, strict=True))) for values in product(*choose.values()))


def rate_told(training: Json, rate: float) -> Json:
    """Return the settings by which a training with another learning rate differs."""
    changed = with_rate(TrainingSettings(**training), rate)
    last = {"final_learning_rate": changed.final_learning_rate} if "final_learning_rate" in training else {}
    return {"learning_rate": rate} | last


def _changed(settings: Json, values: Json) -> Json:
    """Return settings with changed values: of the training if it has the key, otherwise of the architecture."""
    training, architecture = settings["training"], settings["architecture"]
    for key, value in values.items():
        if key == "learning_rate":
            training = training | rate_told(training, value)
        elif key in FREE:
            training = training | {key: value}
        elif key in training:
            words = f"all trainings must be alike in it; choose among {', '.join(FREE)} and the architecture's settings"
            raise UserError(f"{KEY}: {key} cannot be chosen, since {words}")
        else:
            architecture = architecture | {key: value}
    try:
        TrainingSettings(**training)
        check_settings(architecture["name"], {key: value for key, value in architecture.items() if key != "name"})
    except UserError as error:
        raise UserError(f"{KEY}: {error}") from None
    return settings | {"training": training, "architecture": architecture}
