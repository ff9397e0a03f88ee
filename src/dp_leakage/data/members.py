"""Training records of an external model, from a list of their names or numbers in a file next to the data."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from dp_leakage.common.errors import UserError, first_wrong_byte, no_utf8
from dp_leakage.common.paths import is_file, user_path
from dp_leakage.data.raw import trained_and_not

SUFFIXES = (".txt", ".csv", ".tsv", ".npy")
HEADERS = ("record", "records", "member", "members", "index", "id")  # headings that a list's first line may have
MAX_BYTES = 2**30


def is_list(name: str) -> bool:
    """Return whether this names a file of members rather than a column or an array."""
    return Path(name).suffix.lower() in SUFFIXES and is_file(user_path(name))


def listed(path: Path, n: int, names: Sequence[str] = (), header: str = "") -> dict[str, np.ndarray]:
    """Return rows ``train`` (the records in a list) and ``test`` (all other records).

    Args:
        path: a name or number on each line, or a ``.npy`` of numbers, texts, or one truth value for each record.
        n: number of records.
        names: the records' names, (n,); without names the list holds row numbers, counted from 0.
        header: the column's name, which may be the first line, like `HEADERS`.

    Raises:
        UserError: the list cannot be read, is empty, names a record twice, an unknown record, or all records.
    """
    entries = _entries(path, n)
    place = _places(path, n, names)
    if entries and entries[0] not in place and entries[0].lower() in (*HEADERS, header.lower()):
        entries = entries[1:]
    if not entries:
        raise UserError(f"{path} lists no members; expected a record's {_kind(names)} on each line")
    member = np.zeros(n, dtype=bool)
    for line, entry in enumerate(entries, start=1):
        if entry not in place:
            valid = f"{_kind(names)}s of the data, such as {names[0]!r}" if len(names) else f"row numbers, 0 to {n - 1}"
            raise UserError(f"{path}: entry {line} is {entry[:50]!r}; expected {valid}")
        if member[place[entry]]:
            raise UserError(f"{path}: record {entry} occurs twice; list each member once")
        member[place[entry]] = True
    return trained_and_not(member, str(path))


def _kind(names: Sequence[str]) -> str:
    return "name" if len(names) else "row number"


def _places(path: Path, n: int, names: Sequence[str]) -> dict[str, int]:
    """Return the row of each record, by the name that a list may use."""
    if not len(names):
        return {str(row): row for row in range(n)}
    place = {name: row for row, name in enumerate(names)}
    if len(place) < n:
        twice = next(name for row, name in enumerate(names) if place[name] != row)
        raise UserError(f"two records are called {twice!r}, so that {path} is ambiguous; names must be unique")
    return place


def _entries(path: Path, n: int) -> list[str]:
    """Return the list's entries as texts; truth values become row numbers."""
    if not is_file(path):
        raise UserError(f"{path}: no such file; expected a list of members ({', '.join(SUFFIXES)})")
    if path.stat().st_size > MAX_BYTES:
        raise UserError(f"{path} has {path.stat().st_size:,} bytes; a list of members has up to {MAX_BYTES:,}")
    if path.suffix.lower() != ".npy":
        try:
            lines = path.read_text(encoding="utf-8-sig").splitlines()
        except UnicodeDecodeError as error:
            raise no_utf8(path, *first_wrong_byte(error)) from None
        except OSError as error:
            raise UserError(f"{path} cannot be read as a list of members ({error.strerror})") from None
        return [line.strip().strip('"') for line in lines if line.strip()]
    try:
        found = np.load(path, allow_pickle=False)
    except Exception as error:  # a damaged file can raise anything
        raise UserError(f"{path} cannot be read as an array without Python objects ({error})") from None
    if not isinstance(found, np.ndarray) or found.ndim != 1 or found.dtype.kind not in "biuU":
        shown = f"{found.dtype} of shape {found.shape}" if isinstance(found, np.ndarray) else type(found).__name__
        raise UserError(f"{path} holds {shown}; expected one line of row numbers, names or truth values")
    if found.dtype.kind == "b" and len(found) != n:
        raise UserError(f"{path} has {len(found)} truth values; expected one for each of the {n} records")
    return [str(entry) for entry in (np.flatnonzero(found) if found.dtype.kind == "b" else found).tolist()]
