"""Asks an engine's models in a process of their own: a model's file can hang or swell, a user's class do anything."""

from importlib import import_module
from pathlib import Path

import numpy as np

from dp_leakage.common.apart import GIB, Limits, apart
from dp_leakage.common.config import Json
from dp_leakage.common.paths import is_file, user_path
from dp_leakage.data.dataset import Dataset
from dp_leakage.engines import ENGINES
from dp_leakage.engines.answers import Answers

TRIAL, OWN_TRIAL, START, RECORD = 5, 60, 60, 2  # seconds: see `limits_of`
BYTES_A_SECOND = 1e8  # of a file that is loaded, at the least
MEMORY = 8 * GIB  # of an ONNX model's run


def asked(
    engine: str, settings: Json, data: Dataset, subsets: list[np.ndarray], seeds: list[int], trial: bool = False
) -> Answers:
    """What an engine's ``answers`` returns.

    Args:
        engine: one of `ENGINES`.
        settings, data, subsets, seeds: of its ``answers``.
        trial: whether a model is only tried out, on a dozen records.

    Raises:
        UserError: as the engine; or the model goes beyond a limit, or its code ends the process.
    """
    module = import_module(ENGINES[engine])
    name = str(settings["architecture"]["name"])
    work = lambda: [module.answers(settings, data, subsets, seeds).tensors()]  # noqa: E731
    (tensors,) = apart(f"engine {engine}: {name}", work, limits_of(engine, name, len(data.y), trial))
    return Answers.from_tensors(tensors)


def limits_of(engine: str, name: str, records: int, trial: bool) -> Limits:
    """What a model may use. Training, and a class of the user's own, may take as long as they like.

    An ONNX model comes from anywhere, so it has 5 s for a dozen records when it is tried out. As slow a model passes
    the step as well, which gives a minute, and two seconds for each record.
    """
    if engine != "onnx":
        return Limits(seconds=OWN_TRIAL) if trial else Limits()
    path: Path = user_path(name)
    loading = path.stat().st_size / BYTES_A_SECOND if is_file(path) else 0
    return Limits(loading + (TRIAL if trial else START + RECORD * records), MEMORY)
