"""A cell's models and their answers, from Python: ``read_cell("results/quickstart/digits/mlp/none")``.

The files may come from anybody. Their digests say only that they are whole, so their contents are checked, and nothing
in them names code that is imported.
"""

import os
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from dp_leakage.attacks.signals import Signals, positions
from dp_leakage.common.errors import UserError
from dp_leakage.common.paths import is_file, is_there
from dp_leakage.data.outputs import are_probabilities
from dp_leakage.provenance.contents import Expected, check_arrays, check_distinct
from dp_leakage.provenance.files import read_arrays, read_table

if TYPE_CHECKING:
    import numpy as np
    import pandas as pd
    from torch import nn

    from dp_leakage.data.dataset import Dataset
    from dp_leakage.models.ensemble import Models

MODELS = ("target.safetensors", "models.safetensors")
LARGEST = 2**34  # bytes of a file that is read
SCORES = {"repeat": "i", "record": "i", "member": "b", "score": "f", "flagged": "b"}  # columns, kinds of NumPy's types


@dataclass(frozen=True)
class Cell:
    """A folder of results with trained models: a cell, or shadow or reference models. Files are read when needed.

    Every property raises UserError if its file is missing, damaged, or holds what no step can have written.

    Attributes:
        folder: where the files lie.
        factory: makes a module of your own class, with parameters of any value; None for built-in architectures.
    """

    folder: Path
    factory: "Callable[[], nn.Module] | None" = None

    @cached_property
    def signals(self) -> Signals:
        """What the models said about every record; docs/signals.md describes it."""
        path = self._file("signals.npz")
        return Signals.held_by(read_arrays(path)[0], path)

    @cached_property
    def probability(self) -> "np.ndarray":
        """Probabilities of all classes, float32 (R, m, C), for ``scored.record``."""
        return self._class_scores[1]

    @cached_property
    def scored(self) -> Signals:
        """The signals of the m records whose class scores were kept, including these scores."""
        kept, probability = self._class_scores
        return replace(self.signals.records(positions(kept, self.signals.record)), probability=probability)

    @cached_property
    def data(self) -> "Dataset":
        """Features, labels and roles of the cell's data set."""
        from dp_leakage.steps._data import checked_dataset

        path = self._data_file
        found, said = checked_dataset(read_arrays(path)[0], path), self.signals
        if said.record.max() >= len(found.y) or (found.y[said.record] != said.y).any():
            raise UserError(f"{path} is not the data set of {self.folder / 'signals.npz'}: their records differ")
        return found

    @cached_property
    def models(self) -> "Models":
        """The trained models, on the CPU: ``logits(x)``, ``module(k)``, ``parameters``. Imports PyTorch."""
        from dp_leakage.steps._models import read_models

        found = [name for name in MODELS if is_there(self.folder / name)]
        return read_models(self._file((found or MODELS)[0]), None, self.data, self.factory)

    @cached_property
    def scores(self) -> "dict[str, pd.DataFrame]":
        """The scores of each attack on the cell, by the attack's name."""
        files = [
            self._file(str(path.relative_to(self.folder))) for path in sorted(self.folder.glob("attack/*.parquet"))
        ]
        return {path.stem: _checked_scores(read_table(path)[0], self.signals, path) for path in files}

    @cached_property
    def _class_scores(self) -> "tuple[np.ndarray, np.ndarray]":
        """The records whose probabilities were kept, int64 (m,), and these, float32 (R, m, C)."""
        path, said = self._file("class_scores.npz"), self.signals
        arrays = read_arrays(path)[0]
        wanted = {"record": Expected("int64", "m", 0), "probability": Expected("float32", "RmC", 0, 1)}
        lengths = check_arrays(arrays, wanted, str(path))
        record, probability = arrays["record"], arrays["probability"]
        check_distinct(record, f"{path}: array 'record'")
        if lengths["R"] != said.size or not set(record.tolist()) <= set(said.record.tolist()):
            raise UserError(f"{path} is not of the models and records of {self.folder / 'signals.npz'}")
        if not are_probabilities(probability) or lengths["C"] <= said.y.max():
            raise UserError(f"{path}: array 'probability' must have a probability for each class, which sum to 1")
        return record, probability

    def _file(self, name: str) -> Path:
        """The path of one of the files. Raises UserError if it is too large to be one."""
        path = self.folder / name
        if is_file(path) and os.path.getsize(path) > LARGEST:
            raise UserError(f"{path} has {os.path.getsize(path):,} bytes; it must have at most {LARGEST:,}")
        return path

    @property
    def _data_file(self) -> Path:
        for folder in self.folder.parents:
            if is_there(folder / "data.npz"):
                return Cell(folder)._file("data.npz")
        raise UserError(f"{self.folder}: no data.npz lies in a folder above it; valid is a cell's folder below results")


def _checked_scores(frame: "pd.DataFrame", said: Signals, path: Path) -> "pd.DataFrame":
    """Scores of an attack on the models that said this. Raises UserError if they cannot be."""
    import numpy as np

    if "repeat" not in frame or not len(frame):
        raise UserError(f"{path} must have a column 'repeat' and a row; got the columns {', '.join(map(str, frame))}")
    for name, kind in SCORES.items():
        if name in frame and frame[name].dtype.kind != kind:
            raise UserError(f"{path}: column {name!r} must be of kind {kind!r}; got {frame[name].dtype}")
    known = {"repeat": np.arange(said.size), "record": said.record if said.person is None else said.person}
    for name, valid in known.items():
        if name in frame and not np.isin(frame[name], valid).all():
            raise UserError(f"{path}: column {name!r} must hold {name}s of {path.parents[1] / 'signals.npz'}")
    if "score" in frame and not np.isfinite(frame["score"]).all():
        raise UserError(f"{path}: column 'score' must hold finite numbers")
    return frame


def read_cell(folder: str | Path, factory: "Callable[[], nn.Module] | None" = None) -> Cell:
    """A cell's results, by its folder.

    Args:
        folder: such as ``results/quickstart/digits/mlp/none``.
        factory: for models of your own class a function without arguments that makes one, such as
            ``lambda: Net(hidden=32)``. Results never name code that is run.

    Raises:
        UserError: no models were asked there.
    """
    found = Cell(Path(folder), factory)
    if not is_there(found.folder / "signals.npz"):
        raise UserError(
            f"{folder} holds no signals.npz; valid is a folder such as results/STUDY/DATASET/MODEL/DEFENSE of a study "
            "that ran"
        )
    return found
