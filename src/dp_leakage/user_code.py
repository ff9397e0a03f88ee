"""The user's own Python files: where they are, and their functions. ``plugins`` says what they may be."""

import importlib
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from dp_leakage.errors import UserError

FOLDERS: list[Path] = []  # of plugins, in config.yaml's order
FILES: dict[str, Path] = {}  # plugin → its file


def function(plugin: str, name: str) -> Callable[..., Any]:
    """A plugin's function. Raises UserError where its file cannot be imported."""
    try:
        return getattr(importlib.import_module(plugin), name)
    except Exception as error:  # a user's file can raise anything
        raise UserError(f"plugin {FILES.get(plugin, plugin)} cannot be used: {error!r}") from error


def add_folder(folder: Path) -> None:
    """Puts a folder at the end of Python's path, where its files hide no installed module."""
    if folder not in FOLDERS:
        FOLDERS.append(folder)
        sys.path.append(str(folder))
    importlib.invalidate_caches()


def module_files(module: str) -> list[Path]:
    """The file of a module of the user's: in the working folder, on PYTHONPATH or beside the plugins; else nothing."""
    places = [Path(), *map(Path, filter(None, os.environ.get("PYTHONPATH", "").split(os.pathsep))), *FOLDERS]
    relative = Path(*module.split("."))
    candidates = [place / end for place in places for end in (relative.with_suffix(".py"), relative / "__init__.py")]
    return [path.resolve() for path in candidates if path.is_file()][:1]
