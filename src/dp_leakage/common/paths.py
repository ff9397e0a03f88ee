"""Paths as users write them, and tests of paths that never raise, unlike those of ``Path`` itself."""

import os
from pathlib import Path

from dp_leakage.common.errors import UserError


def user_path(text: str) -> Path:
    """One of the user's paths with a leading ``~`` expanded. ``~nobody`` stays as it is, and is no file.

    Raises:
        UserError: it has a character that no path can have.
    """
    if "\0" in text:
        raise UserError(f"{text!r} has a null character; valid is the path of a file or folder")
    return Path(os.path.expanduser(text))


def is_file(path: Path) -> bool:
    """Whether there is a file; no for a name of 5,000 letters, a loop of links, a pipe."""
    return os.path.isfile(path)


def is_dir(path: Path) -> bool:
    """Whether there is a folder."""
    return os.path.isdir(path)


def is_there(path: Path) -> bool:
    """Whether anything exists there; no for paths that are impossible."""
    return os.path.exists(path)
