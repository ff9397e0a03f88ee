"""Models of an earlier run that a training with another number of repeats keeps, so that it trains the others alone.

A model depends on its own seed alone, so the first k of K models have the bytes of k models trained by themselves.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from dp_leakage.common.errors import UserError
from dp_leakage.common.identity import identity
from dp_leakage.engines import ENGINES, GIVEN
from dp_leakage.provenance.files import read_json, read_table, read_tensors
from dp_leakage.steps import Json, log
from dp_leakage.training.loop import History

Tensors = Mapping[str, np.ndarray]


@dataclass(frozen=True)
class Kept:
    """The first ``count`` models of a training.

    Attributes:
        count: number of models; 0: all are to be trained.
        tensors: contents of the models' file, by name; empty without models.
        axes: axis of the models in a tensor, where it is not the first.
        history: rows of their history.
        seconds: time that their training took.
    """

    count: int = 0
    tensors: Tensors = field(default_factory=dict)
    axes: Mapping[str, int] = field(default_factory=dict)
    history: History = field(default_factory=list)
    seconds: float = 0.0

    def with_tensors(self, others: Tensors) -> dict[str, np.ndarray]:
        """Return the tensors of these models followed by those of further models; one of the two may have none."""
        if not self.tensors or not others:
            return dict(self.tensors or others)
        return {name: np.concatenate([own, others[name]], self.axes.get(name, 0)) for name, own in self.tensors.items()}

    def with_history(self, others: History) -> History:
        """Return the history of all models, epoch by epoch; the further rows count their models from 0."""
        rows = [*self.history, *(row | {"model": row["model"] + self.count} for row in others)]
        return sorted(rows, key=lambda row: (row["epoch"], row["model"]))


def kept_models(settings: Json, models: Path, history: Path, timing: Path, made: Json) -> Kept:
    """Return the models that an earlier run trained by the same settings, except for the number of repeats.

    No model is kept if a file is missing, damaged, or of other settings or code. On a GPU, batched kernels round
    differently with other models in the batch, and so may another version of a package. All models are then trained
    again, and the log says so.

    Args:
        settings: of step ``train``.
        models, history, timing: outputs of the step, as an earlier run left them.
        made: the device and the versions of packages that this run uses.
    """
    if settings["engine"] in GIVEN:
        return Kept()  # nothing is trained
    try:
        tensors, stamp = read_tensors(models)
        there = _repeats(settings, stamp)
        if there is None:
            return Kept()
        frame, _ = read_table(history, stamp["identity"])
        seconds = float(read_json(timing)["train_seconds"])
    except UserError:
        return Kept()
    wanted = settings["repeats"]
    differs = [key for key, value in made.items() if stamp.get(key, value) != value]
    if differs or made.get("device", "cpu") != "cpu":
        why = f"they were made with other {' and '.join(differs)}" if differs else "a GPU rounds by the models beside"
        log.info("training all %d models again, also the %d that are there: %s", wanted, there, why)
        return Kept()
    count = min(there, wanted)
    log.info("kept %d of %d models; training %d of %d", count, there, wanted - count, wanted)
    answers = settings["engine"] in ENGINES
    axes = {"margin": 1} if answers else {}
    first = {name: own.take(range(count), axes.get(name, 0)) for name, own in tensors.items()}
    rows = [] if answers else _rows(frame[frame["repeat"] < count])
    return Kept(count, first, axes, rows, seconds * count / there)


def _repeats(settings: Json, stamp: Json) -> int | None:
    """Return the number of models in a file of the same training with another number; None if it is of another."""
    others = stamp.get("settings", {})
    repeats, wanted = others.get("repeats"), settings["repeats"]
    same = identity(others | {"repeats": wanted}) == identity(settings) and identity(others) == stamp.get("identity")
    return repeats if same and repeats != wanted else None


def _rows(frame: Any) -> History:
    """Return the rows of a history from its table, a pandas DataFrame."""
    names = [name for name in ("epoch", "loss", "train_accuracy", "test_accuracy", "losses") if name in frame]
    columns = {"model": frame["repeat"].tolist()} | {name: frame[name].tolist() for name in names}
    return [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]
