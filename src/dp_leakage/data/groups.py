"""Groups of records whose leakage is compared: by class, by the values of sensitive columns, by whether they repeat.

An average over all records hides who pays: models remember records of small groups, and unusual ones, much better than
the rest (Yaghini, Kulynych, Cherubin, Veale & Troncoso 2022, "Disparate vulnerability to membership inference").
"""

from collections.abc import Iterable, Sequence
from itertools import pairwise
from typing import Literal, NamedTuple, get_args

import numpy as np

from dp_leakage.data.dataset import Dataset

By = Literal["class", "sensitive", "duplicates"]
WAYS: tuple[str, ...] = get_args(By)
RECORDS = "records"  # in the same list of a study: each record by itself, which `metrics.calibration` measures
Groups = dict[str, dict[str, np.ndarray]]  # what they differ in → name → rows, int64

DISTINCT = 10  # up to so many different numbers, each is a group; more make about quarters
QUARTILES = (0.25, 0.5, 0.75)
NEAR = 1e-5  # of a record's length: what rounding leaves between equal records after a projection


class Names(NamedTuple):
    """Names that the user gave to classes and columns.

    Attributes:
        classes: by class number.
        columns: of `Dataset.own_values`, in order: its name, and the words for its values, none for numbers.
    """

    classes: Sequence[str]
    columns: Sequence[tuple[str, Sequence[str]]] = ()


def groups_of(data: Dataset, by: Iterable[By], names: Names) -> Groups:
    """Group the records whose membership is attacked.

    Args:
        data: features, labels, roles and the values of sensitive columns.
        by: ``class``: a group for each; ``sensitive``: for each such column a group for each category, or for each of
            up to `DISTINCT` numbers, otherwise about quarters of the records, from one rounded quartile to the next
            (``over 30 up to 45``); ``duplicates``: records that occur more than once among all records, and the others.
        names: of classes and columns. A column that is called as one of `WAYS` becomes ``column class``, say.
    """
    rows = np.sort(data.targets)
    found: Groups = {}
    for way in by:
        if way == "class":
            found["class"] = _by_category(rows, data.y[rows], names.classes)
        elif way == "duplicates":
            twice = repeated(data.x)[rows]
            found["duplicates"] = {"several times": rows[twice], "once": rows[~twice]}
        else:
            for place, (column, categories) in enumerate(names.columns):
                assert data.own_values is not None  # there are as many as names
                values = data.own_values[rows, place]
                by_value = _by_category(rows, values, categories) if categories else _by_number(rows, values)
                found[f"column {column}" if column in WAYS else column] = by_value
    return {way: {name: own for name, own in groups.items() if len(own)} for way, groups in found.items()}


def repeated(x: np.ndarray) -> np.ndarray:
    """Return bool (n,): records, of features (n, …), that equal another record up to rounding (`NEAR`).

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


def _by_category(rows: np.ndarray, places: np.ndarray, names: Sequence[str]) -> dict[str, np.ndarray]:
    return {name: rows[places == place] for place, name in enumerate(names)}


def _by_number(rows: np.ndarray, values: np.ndarray) -> dict[str, np.ndarray]:
    found = np.unique(values)
    if len(found) <= DISTINCT:
        return {_written(value): rows[values == value] for value in found}
    ends = _rounded_quartiles(values)
    part = np.searchsorted(ends, values, side="left")
    return {name: rows[part == place] for place, name in enumerate(_intervals(ends))}


def _rounded_quartiles(values: np.ndarray) -> np.ndarray:
    """Return the distinct quartiles, rounded to 1 to 10 % of the distance between the outer two.

    Group names appear in shared tables and figures, and an exact quartile would disclose one record's value.
    """
    quartiles = np.quantile(values.astype(np.float64), QUARTILES)
    between = quartiles[-1] - quartiles[0]
    if between > 0:  # otherwise half of the records have this value
        quartiles = np.round(quartiles, 1 - int(np.floor(np.log10(between)))) + 0.0  # which makes 0 of −0
    return np.unique(quartiles.astype(values.dtype))


def _intervals(ends: np.ndarray) -> list[str]:
    words = [_written(end) for end in ends]
    return [f"up to {words[0]}", *(f"over {low} up to {high}" for low, high in pairwise(words)), f"over {words[-1]}"]


def _written(number: float) -> str:
    """Format a number with enough digits to distinguish it from the others."""
    return np.format_float_positional(number, trim="-")
