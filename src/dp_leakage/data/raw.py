"""Records as a source returns them, and checks shared by all sources."""

from collections.abc import Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import NamedTuple

import numpy as np

from dp_leakage.common.errors import UserError
from dp_leakage.data.outside import OUTSIDE
from dp_leakage.data.roles import attackers_roles

# Up to here the squares of a record's numbers add up in float32 (3.4e38), for 3.4 million features. The largest images
# that are read have 3 × 1024 × 1024.
LARGEST = 1e16


class Gap(NamedTuple):
    """A column of a table in which some records have no value.

    Attributes:
        name: the column's.
        columns: the columns of ``x`` that it became: one for numbers, zeros and ones for categories.
        records: int64 rows without a value; they are 0 in ``columns``.
        categories: the names of all categories; empty for numbers.
    """

    name: str
    columns: tuple[int, ...]
    records: np.ndarray
    categories: tuple[str, ...] = ()


class Column(NamedTuple):
    """A column of the user's table, and how its values become columns of ``x``.

    Attributes:
        name: the column's.
        categories: the texts that it holds, sorted; empty for numbers. Each becomes a column of zeros and ones, but of
            two only the second does.
        fill: replacement for a missing value (and for a text that is not a category); None for nothing.
        truth: whether its numbers are truth values, 0 and 1.
    """

    name: str
    categories: tuple[str, ...] = ()
    fill: float | str | None = None
    truth: bool = False

    @property
    def words(self) -> tuple[str, ...]:
        """Return the user's names of the values, in the order of `values`; empty for numbers."""
        return ("False", "True") if self.truth else self.categories

    @property
    def width(self) -> int:
        """Return the number of columns of ``x`` that encode this column."""
        return len(self.categories) if len(self.categories) > 2 else 1

    def values(self, part: np.ndarray) -> np.ndarray:
        """Return the numbers or the category indices, (n,), from the encoding columns of ``x``, (n, `width`)."""
        if len(self.categories) == 2:
            return part[:, 0].astype(np.int64)
        return part.argmax(axis=1) if self.categories else part[:, 0]


class Raw(NamedTuple):
    """All records of a source, before splitting and projecting.

    Attributes:
        x: float32, (n, d), or (n, channels, height, width) with values in [0, 1].
        y: int64, (n,), classes 0 … len(class_names)-1, each of them present.
        class_names: names of the classes.
        feature_names: (d,) names of the columns; empty for images.
        sensitive: int64, columns of ``x`` named by the user for attribute inference; empty if none was.
        given: the publisher's own split, e.g. ``train`` and ``test`` → int64 rows; empty if there is none.
        notes: sentences for the report.
        sha256: file (or folder) name → SHA-256 of what was read.
        gaps: missing values, to be filled when the roles are known (`filled`).
        names: the user's names of the records, (n,): an image's file, a table's key; empty if there are none.
        columns: of the user's table, in the order of ``x``; empty if the records are numbers as they stand.
        persons: columns of the user's table that seem to say whose record it is, features or not, and how many
            different values each has (`persons.likely_persons`).
        divisor: divisor of the file's numbers: 255 for images of whole numbers.
        person: int64 (n,), the owner of each record, numbered from 0; None if every record has its own owner.
        people: the names of the people, by these numbers; empty if there are none.
    """

    x: np.ndarray
    y: np.ndarray
    class_names: tuple[str, ...]
    feature_names: tuple[str, ...] = ()
    sensitive: np.ndarray = np.empty(0, np.int64)
    given: Mapping[str, np.ndarray] = MappingProxyType({})
    notes: tuple[str, ...] = ()
    sha256: Mapping[str, str] = MappingProxyType({})
    gaps: tuple[Gap, ...] = ()
    names: tuple[str, ...] = ()
    columns: tuple[Column, ...] = ()
    persons: tuple[tuple[str, int], ...] = ()
    divisor: float = 1.0
    person: np.ndarray | None = None
    people: tuple[str, ...] = ()


def own_columns(raw: Raw) -> Iterator[tuple[Column, np.ndarray]]:
    """Yield each column of the user's table, and the columns of ``x``, (n, d), that it became, (n, `Column.width`)."""
    start = 0
    for column in raw.columns or [Column(name) for name in raw.feature_names]:
        yield column, raw.x[:, start : (start := start + column.width)]


def sensitive_columns(raw: Raw) -> tuple[tuple[Column, ...], np.ndarray]:
    """Return the c sensitive columns and their values in the user's units.

    Returns:
        The columns; float32 (n, c), numbers or the places of categories.
    """
    columns, values, start = [], [], 0
    for column, part in own_columns(raw):
        if start in raw.sensitive:
            columns.append(column)
            values.append(column.values(part))
        start += column.width
    return tuple(columns), np.array(values, np.float32).reshape(-1, len(raw.y)).T


def filled(raw: Raw, roles: Mapping[str, np.ndarray]) -> Raw:
    """Fill each missing value with the median (numbers) or the most frequent category of the attacker's records.

    If no role belongs to the attacker, or those records have no value, the value comes from all records. That lies
    outside the privacy budget, and the notes say so.

    Args:
        raw: as its source returns it.
        roles: of the study (``roles.attackers_roles``).
    """
    if not raw.gaps:
        return raw
    own = [roles[role] for role in attackers_roles(roles)]
    x, notes, fills = raw.x.copy(), [], {}
    for gap in raw.gaps:
        known = np.setdiff1d(np.concatenate(own), gap.records) if own else np.empty(0, np.int64)
        by = f"the attacker's {len(known):,} records"
        if not len(known):
            known = np.setdiff1d(np.arange(len(x)), gap.records)
            by = f"all records, which lies {OUTSIDE}"
        value, fills[gap.name], words = _usual(gap, x[np.ix_(known, np.array(gap.columns))])
        x[np.ix_(gap.records, np.array(gap.columns))] = value
        notes.append(f"{gap.name}: {len(gap.records)} missing values were replaced by {words} of {by}.")
    columns = tuple(column._replace(fill=fills.get(column.name)) for column in raw.columns)
    return raw._replace(x=x, notes=(*raw.notes, *notes), gaps=(), columns=columns)


def _usual(gap: Gap, values: np.ndarray) -> tuple[np.ndarray, float | str, str]:
    """Return the value that fills gaps: in the columns of ``x``, in the user's table, and in words."""
    if not gap.categories:
        median = np.float32(np.median(values))
        return np.array([median]), float(median), f"{median:g}, the median"
    counts = values.sum(axis=0)
    if len(gap.categories) == 2:  # one column stands for both categories
        counts = np.array([len(values) - counts[0], counts[0]])
    most = int(np.argmax(counts))
    ones = np.arange(len(gap.categories)) == most
    shown = (ones[1:] if len(ones) == 2 else ones).astype(np.float32)
    return shown, gap.categories[most], f"{gap.categories[most]!r}, the most frequent"


def encode_labels(labels: np.ndarray, where: str) -> tuple[np.ndarray, tuple[str, ...]]:
    """Return class numbers (int64) and class names from labels of any type; numbers sort as numbers, texts as texts.

    Args:
        labels: (n,) integers, booleans, texts, or floats that are whole numbers.
        where: file and column, for the error message.

    Raises:
        UserError: a label is missing or fractional, or there are fewer than two classes.
    """
    labels = np.asarray(labels)
    if labels.dtype.kind == "f":
        _require(~np.isnan(labels), f"{where}: record {{row}} has no label; every record needs one")
        # From 2⁵³ on, neighboring whole numbers share one float, so classes would merge.
        whole = np.isfinite(labels) & (labels == np.floor(labels)) & (np.abs(labels) < 2.0**53)
        _require(
            whole,
            f"{where}: record {{row}} has the label {{value}}; labels are classes: texts, or whole numbers below 2⁵³",
            labels,
        )
        labels = labels.astype(np.int64)
    elif labels.dtype.kind not in "iubUO":
        raise UserError(f"{where}: labels of type {labels.dtype} are not classes; expected whole numbers or texts")
    names, y = np.unique(labels, return_inverse=True)
    if len(names) < 2:
        found = f"only one class ({names[0]})" if len(names) else "no records"
        raise UserError(f"{where}: {found}; at least two classes are needed")
    return y.reshape(-1).astype(np.int64), tuple(str(name) for name in names)


def check_range(labels: np.ndarray, n_classes: int, where: str, first: int = 0) -> None:
    """Raise UserError for the first label outside ``first`` … ``first + n_classes - 1``."""
    valid = (labels >= first) & (labels < first + n_classes)
    words = f"{where}: record {{row}} has the label {{value}}; expected {first} to {first + n_classes - 1}"
    _require(valid, words, labels)


def check_finite(x: np.ndarray, where: str, columns: Sequence[str] = ()) -> None:
    """Raise UserError for the first number of ``x`` that is NaN, infinite or beyond `LARGEST`, naming
    record and column.
    """
    for start in range(0, len(x), 4096):
        part = x[start : start + 4096].reshape(len(x[start : start + 4096]), -1)
        good = np.abs(part) <= LARGEST  # NaN is not
        if not good.all():
            row, column = np.argwhere(~good)[0]
            name = f"column {columns[column]!r}" if len(columns) else f"feature {column}"
            rule = "only finite numbers are valid"
            if np.isfinite(value := part[row, column]):
                rule = f"numbers must be within ±{LARGEST:g}; rescale the column, or remove the record"
            raise UserError(f"{where}: record {start + row} has {value:g} in {name}; {rule}")


MEMBER = {"1": True, "0": False, "1.0": True, "0.0": False, "true": True, "false": False, "yes": True, "no": False}


def member_flags(values: np.ndarray, where: str) -> np.ndarray:
    """Return bool (n,), True for training records, from 1 and 0, true and false, or yes and no. Raises UserError
    otherwise.
    """
    texts = [str(value).strip().lower() for value in np.asarray(values).tolist()]
    for line, text in enumerate(texts):
        if text not in MEMBER:
            raise UserError(
                f"{where}: 'member' is {text!r} on line {line + 1} of the records; expected 1 and 0, true and "
                "false, yes and no"
            )
    return np.array([MEMBER[text] for text in texts], dtype=bool)


def trained_and_not(values: np.ndarray, where: str) -> dict[str, np.ndarray]:
    """Return rows ``train`` (trained on) and ``test`` (not trained on). UserError if one of them is empty."""
    member = member_flags(values, where)
    rows = {"train": np.flatnonzero(member), "test": np.flatnonzero(~member)}
    for name, words in (("train", "members"), ("test", "non-members")):
        if not len(rows[name]):
            raise UserError(f"{where} has no {words}; attacks need both")
    return rows


def ranges(**counts: int) -> dict[str, np.ndarray]:
    """Return consecutive int64 row ranges by name: ``ranges(train=3, test=2)`` → train 0-2, test 3-4."""
    ends = np.cumsum(list(counts.values()))
    return {name: np.arange(end - n, end, dtype=np.int64) for (name, n), end in zip(counts.items(), ends, strict=True)}


def _require(good: np.ndarray, complaint: str, values: np.ndarray | None = None) -> None:
    if not good.all():
        row = int(np.flatnonzero(~good)[0])
        raise UserError(complaint.format(row=row, value=None if values is None else values[row]))
