"""A prepared data set, from its file. Separate from `_models`, so that an edit of the trainer reruns no preparation."""

from pathlib import Path

import numpy as np

from dp_leakage.data.dataset import Dataset
from dp_leakage.provenance.files import read_arrays


def dataset_of(arrays: dict[str, np.ndarray]) -> Dataset:
    """The arrays of an ``.npz`` of step ``prepare`` or ``project`` as a Dataset."""
    fields = ("x", "y", "sensitive")
    roles = {name: rows for name, rows in arrays.items() if name not in fields}
    return Dataset(arrays["x"], arrays["y"], roles, arrays["sensitive"])


def read_dataset(path: Path, identity: str) -> Dataset:
    """``data.npz`` as a Dataset. Raises UserError if it is damaged or of another identity."""
    return dataset_of(read_arrays(path, identity)[0])
