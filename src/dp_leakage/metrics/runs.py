"""Score files as arrays with the independently trained runs as their first axis."""

import numpy as np
import pandas as pd

ALL = "all"  # in place of a repeat: over all of them


def by_repeat(frame: pd.DataFrame, columns: list[str], keys: list[str]) -> tuple[list[np.ndarray], np.ndarray]:
    """Return columns of a score file as arrays of runs by records.

    Args:
        frame: repeat, member, the ``keys`` and the ``columns``: one row per repeat and key, in any order.
        columns: columns to return.
        keys: columns that identify a row within a repeat, such as ``record``.

    Returns:
        For each column an array (R, n), the n rows sorted by keys; and the members: bool (n,) if they are the same in
        all repeats, otherwise (R, n), by the coins of each.

    Raises:
        ValueError: a number is NaN, rows differ between repeats, or members or non-members are missing in one.
    """
    order = np.lexsort([frame[key].to_numpy() for key in [*reversed(keys), "repeat"]])
    n_repeats = frame["repeat"].nunique()

    def matrix(column: str) -> np.ndarray:
        return frame[column].to_numpy()[order].reshape(n_repeats, -1)

    if n_repeats == 0 or len(frame) % n_repeats or not all((matrix(key) == matrix(key)[:1]).all() for key in keys):
        raise ValueError("Every repeat of a score file must hold the same records once.")
    member = matrix("member").astype(bool)
    if member.all(axis=1).any() or not member.any(axis=1).all():
        raise ValueError("A score file needs both members and non-members.")
    arrays = [matrix(column) for column in columns]
    if any(np.isnan(a).any() for a in arrays if a.dtype.kind == "f"):
        raise ValueError(f"A score file holds NaN in {columns}.")
    return arrays, member[0] if (member == member[0]).all() else member
