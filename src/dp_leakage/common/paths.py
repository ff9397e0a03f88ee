"""Paths as users write them, and tests of paths that never raise, unlike those of ``Path`` itself."""

import os
from collections.abc import Iterable
from pathlib import Path

from dp_leakage.common.errors import UserError

COPIES: dict[str, Path] = {}  # a user's path → the copy of the file that this job was given


def use_copies(names: Iterable[str], files: Iterable[Path] | None) -> None:
    """Register this job's copies of the user's files, which Snakemake makes for a job without a shared disk.

    None: the job uses the files themselves.
    """
    if files is not None:
        COPIES.update(zip(filter(is_plain, names), files, strict=True))


def is_plain(text: str) -> bool:
    """Return whether Snakemake accepts a path as an input: it treats text in braces as wildcards."""
    return "{" not in text


def user_path(text: str) -> Path:
    """Return one of the user's paths: this job's copy, or the path with a leading ``~`` expanded.

    ``~nobody`` stays unchanged and is not an existing file.

    Raises:
        UserError: a character is not allowed in paths.
    """
    if "\0" in text:
        raise UserError(f"{text!r} has a null character; expected the path of a file or folder")
    return COPIES.get(text) or Path(os.path.expanduser(text))


def is_file(path: Path) -> bool:
    """Return whether a regular file exists; False for names of 5,000 letters, link loops and pipes."""
    return os.path.isfile(path)


def is_dir(path: Path) -> bool:
    """Return whether a folder exists."""
    return os.path.isdir(path)


def explained_by(prints: Path) -> Path | None:
    """Return the file that maps the names of a paper's printed numbers to names used here, or None."""
    file = prints.with_suffix(".py")
    return file if file.is_file() else None


def beginning(path: Path, size: int) -> bytes:
    """Return a file's first bytes; empty if the file is missing or unreadable."""
    try:
        if is_file(path):  # opening a pipe would wait
            with path.open("rb") as file:
                return file.read(size)
    except OSError:
        pass
    return b""


def is_there(path: Path) -> bool:
    """Return whether a path exists; False for impossible paths."""
    return os.path.exists(path)
