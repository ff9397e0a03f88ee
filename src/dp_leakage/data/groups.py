"""Groups of records whose leakage is compared: by class, by the values of sensitive columns, by whether they repeat.

An average over all records hides who pays: models remember records of small groups, and unusual ones, much better than
the rest (Yaghini, Kulynych, Cherubin, Veale & Troncoso 2022, "Disparate vulnerability to membership inference").
"""

from collections.abc import Iterable
from typing import Literal, get_args

import numpy as np

from dp_leakage.data.dataset import Dataset

By = Literal["class", "sensitive", "duplicates"]
WAYS: tuple[str, ...] = get_args(By)
RECORDS = "records"  # in the same list of a study: each record by itself, which `metrics.calibration` measures
Groups = dict[str, dict[str, np.ndarray]]  # what they differ in → name → rows, int64

DISTINCT = 10  # up to so many different values, each is a group; more make quarters
QUARTERS = ("lowest quarter", "second quarter", "third quarter", "highest quarter")
NEAR = 1e-5  # of a record's length: what rounding leaves between equal records after a projection


def groups_of(data: Dataset, by: Iterable[By]) -> Groups:
    """The groups of the records whose membership is attacked.

    Args:
        data: features, labels, roles and the sensitive columns.
        by: ``class``: a group for each, called by its number; ``sensitive``: for each such column (``column 3``), a
            group for each of up to `DISTINCT` values, else quarters of equally many records, equal values together;
            ``duplicates``: records that occur more than once among all records, and the others.
    """
    rows = np.sort(data.targets)
    found: Groups = {}
    for way in by:
        if way == "class":
            found["class"] = _by_value(rows, data.y[rows])
        elif way == "duplicates":
            twice = repeated(data.x)[rows]
            found["duplicates"] = {"several times": rows[twice], "once": rows[~twice]}
        else:
            columns = data.x.reshape(len(data.x), -1)
            found |= {f"column {c}": _by_column(rows, columns[rows, c]) for c in data.sensitive.tolist()}
    return {way: {name: own for name, own in groups.items() if len(own)} for way, groups in found.items()}


def repeated(x: np.ndarray) -> np.ndarray:
    """Bool (n,): records, of features (n, …), that equal another one up to rounding (`NEAR`).

    Equal records have nearly equal projections on a random direction, so they are neighbors in that order.
    """
    flat = x.reshape(len(x), -1).astype(np.float64)
    order = np.argsort(flat @ np.random.default_rng(0).standard_normal(flat.shape[1]), kind="stable")
    apart = np.linalg.norm(np.diff(flat[order], axis=0), axis=1)
    equal = apart <= NEAR * np.linalg.norm(flat[order[1:]], axis=1)
    found = np.zeros(len(x), dtype=bool)
    found[order[1:]] |= equal
    found[order[:-1]] |= equal
    return found


def _by_value(rows: np.ndarray, values: np.ndarray) -> dict[str, np.ndarray]:
    return {f"{value:g}": rows[values == value] for value in np.unique(values)}


def _by_column(rows: np.ndarray, values: np.ndarray) -> dict[str, np.ndarray]:
    if len(np.unique(values)) <= DISTINCT:
        return _by_value(rows, values)
    ends = np.quantile(values, (0.25, 0.5, 0.75))
    quarter = np.searchsorted(ends, values, side="left")
    return {name: rows[quarter == place] for place, name in enumerate(QUARTERS)}
