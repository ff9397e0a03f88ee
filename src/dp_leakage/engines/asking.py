"""Query an engine's models in a separate process, since a model file or a user's class can hang or exhaust memory."""

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
    """Return the result of an engine's ``answers``.

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
    """Return the limits of a model's process. Training and classes of the user have no time limit.

    An ONNX model may come from anywhere, so a trial with a dozen records is limited to 5 s. The step is limited to a
    minute plus two seconds per record, which a model of that speed meets.
    """
    if engine != "onnx":
        return Limits(seconds=OWN_TRIAL) if trial else Limits()
    path: Path = user_path(name)
    loading = path.stat().st_size / BYTES_A_SECOND if is_file(path) else 0
    return Limits(loading + (TRIAL if trial else START + RECORD * records), MEMORY)
