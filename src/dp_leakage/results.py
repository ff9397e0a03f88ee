"""Results of a study from Python: ``dp_leakage.open("results/quickstart")``, or `read_cell` for one cell.

The files may be untrusted. Their digests only show that they are complete, so their contents are checked, and no file
names code that is imported.
"""

import json
import os
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dp_leakage.attacks.signals import Signals, positions
from dp_leakage.common.errors import UserError, close, nearest
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
    """Folder of results with trained models: a cell, or shadow or reference models. Files are read when needed.

    Every property raises UserError if its file is missing or damaged, or if no step can have written its contents.

    Attributes:
        folder: the folder.
        factory: makes a module of your own class, with parameters of any value; None for built-in architectures.
    """

    folder: Path
    factory: "Callable[[], nn.Module] | None" = None

    @cached_property
    def signals(self) -> Signals:
        """Return the models' outputs on every record; docs/signals.md describes them."""
        path = self._file("signals.npz")
        return Signals.held_by(read_arrays(path)[0], path)

    @cached_property
    def probability(self) -> "np.ndarray":
        """Probabilities of all classes, float32 (R, m, C), for ``scored.record``."""
        return self._class_scores[1]

    @cached_property
    def scored(self) -> Signals:
        """Return the signals of the m records with stored class scores, including these scores."""
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
    def metrics(self) -> "pd.DataFrame":
        """The cell's metrics, a row each: ``metric``, ``repeat``, ``value``, ``low``, ``high`` and qualifiers."""
        return read_table(self._file("metrics.parquet"))[0]

    @cached_property
    def curves(self) -> "pd.DataFrame":
        """The training curves: ``repeat``, ``epoch``, ``loss``, ``train_accuracy``, ``test_accuracy``."""
        frame = read_table(self._file("training.parquet"))[0]
        return frame.drop(columns=[name for name in frame if frame[name].dtype == object])

    def roc(self, attack: str) -> "pd.DataFrame":
        """Return the attack's ROC curve in each repeat: ``repeat``, ``fpr``, ``tpr``, from (0, 0) to (1, 1).

        Raises:
            UserError: the cell has no scores of this attack.
        """
        import pandas as pd
        from sklearn.metrics import roc_curve

        if attack not in self.scores:
            raise UserError(f"{self.folder} has no scores of attack {attack!r}; {nearest(attack, self.scores)}")
        rates = []
        for repeat, rows in self.scores[attack].groupby("repeat"):
            fpr, tpr, _ = roc_curve(rows["member"], rows["score"])
            rates.append(pd.DataFrame({"repeat": repeat, "fpr": fpr, "tpr": tpr}))
        return pd.concat(rates, ignore_index=True)

    @cached_property
    def _class_scores(self) -> "tuple[np.ndarray, np.ndarray]":
        """Return the records with stored probabilities, int64 (m,), and these, float32 (R, m, C)."""
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
        """Return the path of one of the files. Raises UserError if it is too large to be one."""
        path = self.folder / name
        if is_file(path) and os.path.getsize(path) > LARGEST:
            raise UserError(f"{path} has {os.path.getsize(path):,} bytes; it must have at most {LARGEST:,}")
        return path

    @property
    def _data_file(self) -> Path:
        for folder in self.folder.parents:
            if is_there(folder / "data.npz"):
                return Cell(folder)._file("data.npz")
        raise UserError(f"{self.folder}: no data.npz lies in a folder above it; expected a cell's folder below results")


@dataclass(frozen=True)
class Results:
    """Results folder of a study. Files are read when needed.

    Every property raises UserError if a file is missing or damaged.

    Attributes:
        folder: such as ``results/quickstart``.
    """

    folder: Path

    @cached_property
    def cells(self) -> dict[str, Cell]:
        """The cells that were measured, by ``DATASET/MODEL/DEFENSE``."""
        files = sorted(self.folder.glob("*/*/*/metrics.parquet"))
        return {file.parent.relative_to(self.folder).as_posix(): Cell(file.parent) for file in files}

    def __getitem__(self, name: str) -> Cell:
        """Return a cell. Raises UserError for an unknown name."""
        if name not in self.cells:
            hint = close(name, self.cells)
            raise UserError(f"{self.folder} has no cell {name!r}; {hint}`.cells` has all {len(self.cells)}")
        return self.cells[name]

    @cached_property
    def metrics(self) -> "pd.DataFrame":
        """Metrics of all cells: the columns of `Cell.metrics`, and the cell's dataset, model, defense, ε, …"""
        from dp_leakage.steps._metrics import joined

        read = [read_table(cell.folder / "metrics.parquet") for cell in self.cells.values()]
        return joined([(made["settings"]["columns"], frame) for frame, made in read])

    @cached_property
    def curves(self) -> "pd.DataFrame":
        """Training curves of all cells: the columns of `Cell.curves`, ``dataset``, ``model`` and ``defense``."""
        import pandas as pd

        names = ("dataset", "model", "defense")
        trained = ((key, cell) for key, cell in self.cells.items() if is_there(cell.folder / "training.parquet"))
        frames = [cell.curves.assign(**dict(zip(names, key.split("/"), strict=True))) for key, cell in trained]
        return pd.concat(frames, ignore_index=True) if frames else pd.DataFrame()

    @cached_property
    def claims(self) -> list[dict[str, Any]]:
        """The sentences of the report with their numbers, as docs/signals.md describes them."""
        path = self.folder / "claims.json"
        try:
            claims: list[dict[str, Any]] = json.loads(path.read_text(encoding="utf-8"))["claims"]
        except (OSError, ValueError, KeyError, TypeError):
            raise UserError(f"{path} cannot be read; run the study to its report: dp-leakage run STUDY") from None
        return claims


def read_results(folder: str | Path) -> Results:
    """Return a study's results, by its folder.

    Raises:
        UserError: no cell was measured there.
    """
    found = Results(Path(folder))
    if not found.cells:
        raise UserError(
            f"{folder} must be a study's folder of results, such as results/quickstart, with measured cells"
        )
    return found


def _checked_scores(frame: "pd.DataFrame", said: Signals, path: Path) -> "pd.DataFrame":
    """Check and return an attack's scores on the models of these signals. Raises UserError if they do not fit."""
    import numpy as np

    if "repeat" not in frame:
        raise UserError(f"{path} must have a column 'repeat'; got the columns {', '.join(map(str, frame))}")
    if not len(frame):
        raise UserError(f"{path} must have at least one row; it is empty")
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
    """Return a cell's results from its folder.

    Args:
        folder: such as ``results/quickstart/digits/mlp/none``.
        factory: for models of your own class a function without arguments that makes one, such as ``lambda:
            Net(hidden=32)``. Results never name code that is run.

    Raises:
        UserError: the folder has no model outputs.
    """
    found = Cell(Path(folder), factory)
    if not is_there(found.folder / "signals.npz"):
        raise UserError(
            f"{folder} holds no signals.npz; expected a folder such as results/STUDY/DATASET/MODEL/DEFENSE of a study "
            "that ran"
        )
    return found
