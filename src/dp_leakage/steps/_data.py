"""A prepared data set, from its file. Separate from `_models`, so that an edit of the trainer reruns no preparation."""

from pathlib import Path

import numpy as np

from dp_leakage.common.errors import UserError
from dp_leakage.data.dataset import Dataset
from dp_leakage.data.roles import OUTSIDERS, ROLES, trained_role
from dp_leakage.provenance.contents import Expected, check_arrays, check_distinct
from dp_leakage.provenance.files import read_arrays

OPTIONAL = ("person", "own_values")  # arrays that a data set may lack


def dataset_of(arrays: dict[str, np.ndarray]) -> Dataset:
    """Return the arrays of an ``.npz`` of step ``prepare`` or ``project`` as a Dataset."""
    roles = {name: rows for name, rows in arrays.items() if name not in Dataset._fields}
    return Dataset(arrays["x"], arrays["y"], roles, arrays["sensitive"], arrays.get("person"), arrays.get("own_values"))


def arrays_of(data: Dataset) -> dict[str, np.ndarray]:
    """Return the arrays of a Dataset; the inverse of `dataset_of`."""
    own = {name: getattr(data, name) for name in OPTIONAL}
    there = {name: array for name, array in own.items() if array is not None}
    return {"x": data.x, "y": data.y, "sensitive": data.sensitive, **there, **data.roles}


def checked_dataset(arrays: dict[str, np.ndarray], path: Path) -> Dataset:
    """Return `dataset_of` the arrays of an untrusted file. Raises UserError if they cannot be a data set."""
    nothing = np.empty(0)
    x, y, sensitive = (arrays.get(name, nothing) for name in ("x", "y", "sensitive"))
    roles = [role for role in ROLES if role in arrays]
    expected = {
        "x": Expected("float32", "nchw" if x.ndim == 4 else "nd"),
        "y": Expected("int64", "n", 0, y.size - 1),  # no class without records
        **{role: Expected("int64", str(axis), 0, y.size - 1) for axis, role in enumerate(roles)},
        **({"person": Expected("int64", "n", 0, y.size - 1)} if "person" in arrays else {}),
        **({"own_values": Expected("float32", "nc")} if "own_values" in arrays else {}),
        # An empty one, which is usual, is no array of values.
        **({"sensitive": Expected("int64", "s", 0, x[:1].size - 1)} if sensitive.size or sensitive.ndim != 1 else {}),
    }
    if "sensitive" not in arrays:
        raise UserError(f"{path}: array 'sensitive' is missing; it must hold column numbers, or nothing")
    checked = {name: array for name, array in arrays.items() if name != "sensitive" or name in expected}
    check_arrays(checked, expected, str(path))
    for role in (OUTSIDERS, trained_role(roles)):
        if role not in roles:
            raise UserError(f"{path}: array {role!r} is missing; the records of a study must have this role")
    check_distinct(np.concatenate([arrays[role] for role in roles]), f"{path}: the arrays of roles together")
    return dataset_of(arrays)


def read_dataset(path: Path, identity: str) -> Dataset:
    """Return ``data.npz`` as a Dataset. Raises UserError if it is damaged or of another identity."""
    return dataset_of(read_arrays(path, identity)[0])
