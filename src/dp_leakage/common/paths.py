"""Paths as users write them, and tests of paths that never raise, unlike those of ``Path`` itself."""

import os
from collections.abc import Iterable
from pathlib import Path

from dp_leakage.common.errors import UserError

COPIES: dict[str, Path] = {}  # a user's path → the copy of the file that this job was given


def use_copies(names: Iterable[str], files: Iterable[Path] | None) -> None:
    """Says where this job finds the user's files: Snakemake gives a job without a shared disk copies of them.
    None says nothing.
    """
    if files is not None:
        COPIES.update(zip(filter(is_plain, names), files, strict=True))


def is_plain(text: str) -> bool:
    """Whether Snakemake can take a path for an input: it would take parts in braces for wildcards."""
    return "{" not in text


def user_path(text: str) -> Path:
    """One of the user's paths: this job's copy, or the path with a leading ``~`` expanded. ``~nobody`` stays as it is,
    and is no file.

    Raises:
        UserError: it has a character that no path can have.
    """
    if "\0" in text:
        raise UserError(f"{text!r} has a null character; valid is the path of a file or folder")
    return COPIES.get(text) or Path(os.path.expanduser(text))


def is_file(path: Path) -> bool:
    """Whether there is a file; no for a name of 5,000 letters, a loop of links, a pipe."""
    return os.path.isfile(path)


def is_dir(path: Path) -> bool:
    """Whether there is a folder."""
    return os.path.isdir(path)


def explained_by(prints: Path) -> Path | None:
    """Return the file beside a paper's printed numbers that says what their names are here; None if there is none."""
    file = prints.with_suffix(".py")
    return file if file.is_file() else None


def beginning(path: Path, size: int) -> bytes:
    """Return a file's first bytes; none if there is no file that can be read."""
    try:
        if is_file(path):  # opening a pipe would wait
            with path.open("rb") as file:
                return file.read(size)
    except OSError:
        pass
    return b""


def is_there(path: Path) -> bool:
    """Whether anything exists there; no for paths that are impossible."""
    return os.path.exists(path)
