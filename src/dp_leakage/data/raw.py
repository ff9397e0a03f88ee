"""What a source hands over, and the checks that every source makes at the border."""

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import NamedTuple

import numpy as np

from dp_leakage.errors import UserError


class Raw(NamedTuple):
    """All records of a source, before splitting and projecting.

    Attributes:
        x: float32, (n, d), or (n, channels, height, width) with values in [0, 1].
        y: int64, (n,), classes 0 … len(class_names)-1, each of them present.
        class_names: what the classes are called.
        feature_names: (d,) names of the columns; empty for images.
        sensitive: int64, columns of ``x`` named by the user for attribute inference; empty if none was.
        given: the publisher's own split, e.g. ``train`` and ``test`` → int64 rows; empty if there is none.
        notes: sentences for the report.
        sha256: file (or folder) name → SHA-256 of what was read.
    """

    x: np.ndarray
    y: np.ndarray
    class_names: tuple[str, ...]
    feature_names: tuple[str, ...] = ()
    sensitive: np.ndarray = np.empty(0, np.int64)
    given: Mapping[str, np.ndarray] = MappingProxyType({})
    notes: tuple[str, ...] = ()
    sha256: Mapping[str, str] = MappingProxyType({})


def encode_labels(labels: np.ndarray, where: str) -> tuple[np.ndarray, tuple[str, ...]]:
    """Class numbers (int64) and class names from labels of any kind; numbers sort as numbers, texts as texts.

    Args:
        labels: (n,) integers, booleans, texts, or floats that are whole numbers.
        where: file and column, for the complaint.

    Raises:
        UserError: a label is missing or fractional, or there are fewer than two classes.
    """
    labels = np.asarray(labels)
    if labels.dtype.kind == "f":
        _require(~np.isnan(labels), f"{where}: record {{row}} has no label; every record needs one")
        whole = np.isfinite(labels) & (labels == np.floor(labels))
        _require(
            whole,
            f"{where}: record {{row}} has the label {{value}}; labels are classes: whole numbers or texts",
            labels,
        )
        labels = labels.astype(np.int64)
    elif labels.dtype.kind not in "iubUO":
        raise UserError(f"{where}: labels of type {labels.dtype} are not classes; valid are whole numbers or texts")
    names, y = np.unique(labels, return_inverse=True)
    if len(names) < 2:
        found = f"only one class ({names[0]})" if len(names) else "no records"
        raise UserError(f"{where}: {found}; at least two classes are needed")
    return y.reshape(-1).astype(np.int64), tuple(str(name) for name in names)


def check_range(labels: np.ndarray, n_classes: int, where: str, first: int = 0) -> None:
    """Complain about the first label outside ``first`` … ``first + n_classes - 1``."""
    valid = (labels >= first) & (labels < first + n_classes)
    words = f"{where}: record {{row}} has the label {{value}}; valid are {first} to {first + n_classes - 1}"
    _require(valid, words, labels)


def check_finite(x: np.ndarray, where: str, columns: Sequence[str] = ()) -> None:
    """Complain about the first record of ``x`` that holds NaN or an infinity, naming its column if it can."""
    for start in range(0, len(x), 4096):
        finite = np.isfinite(x[start : start + 4096]).reshape(len(x[start : start + 4096]), -1)
        if not finite.all():
            row, column = np.argwhere(~finite)[0]
            name = f"column {columns[column]!r}" if len(columns) else f"feature {column}"
            value = x[start + row].reshape(-1)[column]
            raise UserError(f"{where}: record {start + row} has {value} in {name}; only finite numbers are valid")


def ranges(**counts: int) -> dict[str, np.ndarray]:
    """Consecutive int64 row ranges by name: ``ranges(train=3, test=2)`` → train 0-2, test 3-4."""
    ends = np.cumsum(list(counts.values()))
    return {name: np.arange(end - n, end, dtype=np.int64) for (name, n), end in zip(counts.items(), ends, strict=True)}


def _require(good: np.ndarray, complaint: str, values: np.ndarray | None = None) -> None:
    if not good.all():
        row = int(np.flatnonzero(~good)[0])
        raise UserError(complaint.format(row=row, value=None if values is None else values[row]))
