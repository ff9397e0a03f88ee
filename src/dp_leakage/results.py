"""A cell's models and their answers, from Python: ``read_cell("results/quickstart/digits/mlp/none")``."""

from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from dp_leakage.attacks.signals import Signals, positions
from dp_leakage.common.errors import UserError
from dp_leakage.provenance.files import read_arrays, read_table

if TYPE_CHECKING:
    import numpy as np
    import pandas as pd

    from dp_leakage.data.dataset import Dataset
    from dp_leakage.models.ensemble import Models

MODELS = ("target.safetensors", "models.safetensors")


@dataclass(frozen=True)
class Cell:
    """A folder of results with trained models: a cell, or shadow or reference models. Files are read when needed.

    Every property raises UserError if its file is missing or damaged.
    """

    folder: Path

    @cached_property
    def signals(self) -> Signals:
        """What the models said about every record; docs/signals.md describes it."""
        return Signals.held_by(read_arrays(self.folder / "signals.npz")[0])

    @cached_property
    def probability(self) -> "np.ndarray":
        """Probabilities of all classes, float32 (R, m, C), for ``scored.record``."""
        return read_arrays(self.folder / "class_scores.npz")[0]["probability"]

    @cached_property
    def scored(self) -> Signals:
        """The signals of the m records whose class scores were kept, including these scores."""
        kept = read_arrays(self.folder / "class_scores.npz")[0]["record"]
        part = self.signals.records(positions(kept, self.signals.record))
        return replace(part, probability=self.probability)

    @cached_property
    def data(self) -> "Dataset":
        """Features, labels and roles of the cell's data set."""
        from dp_leakage.steps._data import dataset_of

        return dataset_of(read_arrays(self._data_file)[0])

    @cached_property
    def models(self) -> "Models":
        """The trained models, on the CPU: ``logits(x)``, ``module(k)``, ``parameters``. Imports PyTorch."""
        from dp_leakage.steps._models import read_models

        found = [self.folder / name for name in MODELS if (self.folder / name).exists()]
        return read_models((found or [self.folder / MODELS[0]])[0], None, self.data)

    @cached_property
    def scores(self) -> "dict[str, pd.DataFrame]":
        """The scores of each attack on the cell, by the attack's name."""
        return {path.stem: read_table(path)[0] for path in sorted(self.folder.glob("attack/*.parquet"))}

    @property
    def _data_file(self) -> Path:
        for folder in self.folder.parents:
            if (folder / "data.npz").exists():
                return folder / "data.npz"
        raise UserError(f"{self.folder}: no data.npz lies in a folder above it; valid is a cell's folder below results")


def read_cell(folder: str | Path) -> Cell:
    """A cell's results, by its folder. Raises UserError if no models were asked there."""
    found = Cell(Path(folder))
    if not (found.folder / "signals.npz").exists():
        raise UserError(
            f"{folder} holds no signals.npz; valid is a folder such as results/STUDY/DATASET/MODEL/DEFENSE of a study "
            "that ran"
        )
    return found
