"""The user's own Python files: where they are, and the one way in which their functions are called.

``plugins`` says what they may be. Whatever happens in them becomes one sentence with file and line, and the way there
goes to the log: a stranger's traceback helps nobody who did not write the code below it.
"""

import importlib
import logging
import os
import sys
import traceback
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from math import inf
from pathlib import Path
from types import ModuleType
from typing import Any

from dp_leakage.common.errors import UserError

FOLDERS: list[Path] = []  # of plugins, in config.yaml's order
FILES: dict[str, Path] = {}  # plugin → its file
DEFINED: dict[str, frozenset[str]] = {}  # plugin → the functions and classes that its file defines
ROUNDING = 1e-6  # by which a budget may be exceeded
log = logging.getLogger("dp_leakage")


def call(module: str, name: str, *arguments: Any) -> Any:
    """What a function of a module returns, of the package's own or of a plugin's.

    Raises:
        UserError: a plugin cannot be imported, or its function raises.
    """
    with guarded(module):
        return getattr(_imported(module), name)(*arguments)


def _imported(module: str) -> ModuleType:
    """The module of a dotted name; or of a file that lies with a study, which can import what lies beside it."""
    if not module.endswith(".py"):
        return importlib.import_module(module)
    file = Path(module).resolve()
    if str(file.parent) not in sys.path:
        sys.path.append(str(file.parent))
    found = importlib.import_module(file.stem)
    if Path(found.__file__ or "").resolve() != file:
        raise UserError(f"{module}: another Python module is called '{file.stem}'; rename the file")
    return found


def guarded(module: str) -> AbstractContextManager[None]:
    """`blamed` for the user's code; nothing for the package's own, whose errors are ours to mend."""
    if module.endswith(".py"):
        return blamed(module, Path(module))
    return blamed(f"plugin {module}", FILES[module]) if module in FILES else nullcontext()


def function(plugin: str, name: str) -> Callable[..., Any]:
    """A plugin's function, for what calls it often. Raises UserError where its file cannot be imported."""
    with blamed(f"plugin {plugin}", FILES.get(plugin)):
        return getattr(importlib.import_module(plugin), name)


@contextmanager
def blamed(what: str, file: Path | None) -> Iterator[None]:
    """Turns what the user's code raises into a sentence: ``plugin mine, line 3: KeyError: 'x'``.

    Args:
        what: whose code runs in the block.
        file: its file; None where it is not known.
    """
    try:
        yield
    except (UserError, KeyboardInterrupt, GeneratorExit):
        raise
    except BaseException as error:  # a user's file can raise anything, and leave by sys.exit
        frames = traceback.extract_tb(error.__traceback__)
        own = [frame for frame in frames if file is not None and Path(frame.filename).resolve() == file.resolve()]
        if own:
            log.error("%s: the way to the error:\n%s", what, "".join(traceback.format_list(frames)).rstrip())
        line = f", line {own[-1].lineno}" if own else ""
        words = str(error).strip().splitlines()
        reason = f"{type(error).__name__}: {words[0]}" if words else type(error).__name__
        raise UserError(f"{what}{line}: {reason}") from error


def spent_by(plugin: str, noise_multiplier: float, case: Any) -> float:
    """The ε that a plugin's ``epsilon`` finds. What it says of privacy is not believed blindly.

    Raises:
        UserError: it is no finite number above 0, or does not fall as the noise grows.
    """
    here, there = (
        _budget(plugin, amount, call(plugin, "epsilon", amount, case))
        for amount in (noise_multiplier, 2 * noise_multiplier)
    )
    if not there < here:
        raise UserError(
            f"plugin {plugin}: epsilon is {here:g} at noise_multiplier {noise_multiplier:g} and {there:g} at twice "
            "that; it must fall as the noise grows"
        )
    return here


def amount_by(plugin: str, epsilon: float, case: Any) -> float | None:
    """The noise that a plugin's ``amount_for`` finds for a budget; None where it says so.

    Raises:
        UserError: it is no finite number above 0, or by the plugin's own ``epsilon`` it spends more than the budget.
    """
    said = call(plugin, "amount_for", epsilon, case)
    if said is None:
        return None
    amount = _positive(plugin, f"amount_for returns {said!r} at epsilon {epsilon:g}", said)
    if (spent := spent_by(plugin, amount, case)) > epsilon * (1 + ROUNDING):
        words = f"amount_for returns {amount:g} for epsilon {epsilon:g}, at which epsilon returns {spent:g}"
        raise UserError(f"plugin {plugin}: {words}; valid is noise that spends at most the budget")
    return amount


def _budget(plugin: str, noise_multiplier: float, value: Any) -> float:
    return _positive(plugin, f"epsilon returns {value!r} at noise_multiplier {noise_multiplier:g}", value)


def _positive(plugin: str, words: str, value: Any) -> float:
    try:
        number = float(value)
    except (TypeError, ValueError, OverflowError, RuntimeError):
        number = None
    if number is None or isinstance(value, bool | str) or not 0 < number < inf:
        raise UserError(f"plugin {plugin}: {words}; valid is a finite number above 0")
    return number


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
