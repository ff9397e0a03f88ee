"""People with several records: the owner of each record, and table columns that look like one."""

import re
from collections.abc import Collection, Sequence
from numbers import Number
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from dp_leakage.common.errors import UserError, brief

if TYPE_CHECKING:
    import pandas as pd

MISSING_VALUES = ["", "?", "NA", "N/A", "n/a", "NaN", "nan", "null", "NULL", "None"]  # of every column of a table
LEAST_PERSONS = 10  # different values; with fewer it is rather a flag, or a number of persons
LEAST_RECORDS = 2.0  # records of a value on average
SEPARATORS = ("_", "-", "[.]", " ")  # between a person's name and the number of an image, as in regular expressions
WORDS = (
    "account|client|customer|employee|household|member|owner|participant|patient|person|speaker|student|subject|user|"
    "writer"
)
NAME = re.compile(rf"(.*[\W_])?({WORDS})([\W_]?(code|id|key|name|no|nr|number))?|(p|u|.*[\W_])?id", re.IGNORECASE)


def owners(names: np.ndarray, where: str) -> tuple[np.ndarray, tuple[str, ...]]:
    """Return the owner of each record, int64 (n,), numbered from 0 in the order of their names; and the names.

    Args:
        names: (n,) a person's name for each record, as text or number.
        where: file and column, for error messages.

    Raises:
        UserError: a name is missing or neither text nor number, or the names are of fewer than two persons.
    """
    if names.dtype.kind in "mM":
        raise UserError(f"{where} holds dates or times; expected a name or number of a person for each record")
    given = [None if type(name).__name__ in ("NAType", "NaTType") else name for name in names.tolist()]
    wrong = next((name for name in given if name is not None and not isinstance(name, str | Number)), None)
    if wrong is not None:
        raise UserError(
            f"{where} holds values of type {type(wrong).__name__}; expected a name or number for each record"
        )
    texts = ["" if name is None or name != name else str(name) for name in given]
    texts = ["" if text.strip() in MISSING_VALUES else text for text in texts]
    if "" in texts:
        row = texts.index("")
        raise UserError(
            f"{where}: record {row} names no person (got {brief(given[row])!r}); expected a name or number for each"
        )
    found = sorted(set(texts))  # an array of texts would have the length of the longest for each record
    if len(found) < 2:
        raise UserError(f"{where}: names only one person, '{found[0]}'; expected two people or more")
    places = {text: place for place, text in enumerate(found)}
    return np.array([places[text] for text in texts], np.int64), tuple(found)


def alike(people: Sequence[str], where: str) -> tuple[str, ...]:
    """Return a sentence about names that differ only in blanks or case; empty if there are no such names.

    >>> alike(["P1", "p1 ", "p2"], "t.csv: column 'patient'")[0]
    "t.csv: column 'patient': 2 names differ in blanks or case alone, such as 'P1' and 'p1 '; each counts as a person."
    """
    first: dict[str, str] = {}
    pairs = [(first.setdefault(name.strip().casefold(), name), name) for name in people]
    differing = [(one, other) for one, other in pairs if one != other]
    if not differing:
        return ()
    one, other = differing[0]
    count = len({name for pair in differing for name in pair})
    words = f"{count} names differ in blanks or case alone, such as {one!r} and {other!r}; each counts as a person."
    return (f"{where}: {words}",)


def numbers(person: np.ndarray, rows: np.ndarray) -> np.ndarray:
    """Number the owners of some rows from 0 in the order of their first row: int64 (n,).

    >>> numbers(np.array([7, 7, 3, 5]), np.array([2, 0, 3, 1]))
    array([0, 1, 2, 1])
    """
    _, first, own = np.unique(person[rows], return_index=True, return_inverse=True)
    return np.argsort(np.argsort(first))[own.reshape(-1)]


def effective(person: np.ndarray) -> float:
    """Return a lower limit on the number of independent records with the same information, (Σn)²/Σn² over people with n
    records (Kish 1965).

    A share of all records varies no more than a share of that many independent ones, however similar a person's
    records.
    """
    return effective_of(np.unique(person, return_counts=True)[1])


def effective_of(counts: np.ndarray) -> float:
    """As `effective`, from each person's number of records."""
    return float(counts.sum() ** 2 / np.square(counts, dtype=float).sum())


def likely_persons(frame: "pd.DataFrame", beside: Collection[str], most_categories: int) -> tuple[tuple[str, int], ...]:
    """Return (name, number of different values) of each column that seems to identify the owner of a record.

    Such a column holds texts or whole numbers, with at least `LEAST_RECORDS` records for each of at least
    `LEAST_PERSONS` values, and either is called like one (``patient``, ``user_id``), or has more than
    ``most_categories`` different texts. A column of numbers with another name is never found, since ages look the same.

    Args:
        frame: the table, with columns that are not features.
        beside: columns that are known to be something else, such as the label.
        most_categories: more different texts than these are names rather than categories.
    """
    from pandas.api.types import infer_dtype

    found = []
    for name in frame.columns:
        column = frame[name]
        if name in beside:
            continue
        named, values = bool(NAME.fullmatch(name)), column.dropna()
        if column.dtype.kind == "f":  # whole numbers with gaps are read as these
            fits = named and bool((values % 1 == 0).all())
        elif column.dtype.kind in "iu":
            fits = named
        else:  # a Parquet file may hold lists, which cannot be counted
            fits = infer_dtype(values) in ("string", "categorical")
        if not fits:
            continue
        different = int(values.nunique())
        repeated = different >= LEAST_PERSONS and len(values) >= LEAST_RECORDS * different
        if repeated and (named or different > most_categories):
            found.append((name, different))
    return tuple(found)


class NumberedFiles(NamedTuple):
    """Files such as ``ill/pat07_2.png``, whose names seem to identify the person in the image.

    Attributes:
        pattern: the source's ``person``, a regular expression whose group is that name in every file.
        persons: number of different names.
        example: one of the files.
    """

    pattern: str
    persons: int
    example: str


def numbered_files(names: Sequence[str], y: np.ndarray) -> NumberedFiles | None:
    """Return the people that file names seem to identify, or None.

    Most file names must consist of a name shared with another file, a separator and a number. At least `LEAST_PERSONS`
    of these names must have at least `LEAST_RECORDS` files on average, and they must not just be the classes (as in
    ``cat/cat_07.png``).

    Args:
        names: (n,) paths of the files in their folder.
        y: int64 (n,), their classes.
    """
    for separator in SEPARATORS:
        numbered = [re.search(f"([^/]+){separator}[0-9]+[.][^/.]+$", name) for name in names]
        if 2 * sum(match is not None for match in numbered) <= len(names):
            continue
        # The dot keeps folders that end in a number from matching; a file without a number is a person of its own.
        pattern = f"([^/]+){separator}[0-9]+[.]" if all(numbered) else f"([^/]+?)(?:{separator}[0-9]+)?[.]"
        people = [match.group(1) if (match := re.search(pattern, name)) else "" for name in names]
        _, own, counts = np.unique(people, return_inverse=True, return_counts=True)
        in_classes = len(np.unique(np.stack([own, y]), axis=1)[0])
        shared = 2 * counts[counts > 1].sum() > len(names)
        several = len(counts) >= LEAST_PERSONS and len(names) >= LEAST_RECORDS * len(counts)
        if shared and several and "" not in people and in_classes > len(np.unique(y)):
            return NumberedFiles(pattern, len(counts), names[int(np.argmax(counts[own] > 1))])
    return None
