"""The user's own Python files: their location, and the only way in which this package calls their functions.

`plugins` defines their interface. An error in them becomes one sentence with file and line, and the traceback goes to
the log: it would not help a user who did not write this package.
"""

import importlib
import logging
import os
import sys
import traceback
from collections.abc import Callable, Collection, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from importlib.util import source_from_cache
from math import inf
from pathlib import Path
from tempfile import gettempdir
from types import ModuleType
from typing import Any, NoReturn

from dp_leakage.common.errors import UserError
from dp_leakage.common.places import located

FOLDERS: list[Path] = []  # of the plugins, in the order of config.yaml
FILES: dict[str, Path] = {}  # plugin → its file
DEFINED: dict[str, frozenset[str]] = {}  # plugin → the functions and classes that its file defines
ROUNDING = 1e-6  # relative tolerance by which a budget may be exceeded
PACKAGE = Path(__file__).parents[1]
_running: list[str] = []  # whose code runs, the innermost last
log = logging.getLogger("dp_leakage")


def call(module: str, name: str, *arguments: Any, thing: str = "") -> Any:
    """Call a function of a module of this package or of a plugin; ``thing`` is as for `guarded`.

    Raises:
        UserError: a plugin cannot be imported, or its function raises.
    """
    with guarded(module, thing):
        return getattr(_imported(module), name)(*arguments)


def _imported(module: str) -> ModuleType:
    """Return the module with a dotted name, or the module of a file in a study's folder, which can import
    its neighbors.
    """
    if not module.endswith(".py"):
        return importlib.import_module(module)
    file = located(Path(module)).resolve()
    if str(file.parent) not in sys.path:
        sys.path.append(str(file.parent))
    found = importlib.import_module(file.stem)
    if Path(found.__file__ or "").resolve() != file:
        raise UserError(f"{module}: another Python module is called '{file.stem}'; rename the file")
    return found


def guarded(module: str, thing: str = "") -> AbstractContextManager[None]:
    """Return `blamed` for the user's code, and a context that does nothing for this package's own code.

    Args:
        module: module of the running code.
        thing: the plugin's declaration that the code runs for (`whose`).
    """
    if module.endswith(".py"):
        return blamed(module, located(Path(module)))
    return blamed(whose(module, thing), FILES[module]) if module in FILES else nullcontext()


def whose(plugin: str, thing: str) -> str:
    """Name a plugin for a message, with the declaration's name if it differs.

    >>> whose("mine", "mine"), whose("mine", "mine_twice")
    ('plugin mine', 'plugin mine (mine_twice)')
    """
    return f"plugin {plugin}" if thing in ("", plugin) else f"plugin {plugin} ({thing})"


def function(plugin: str, name: str) -> Callable[..., Any]:
    """Return a plugin's function, for callers that call it often. Raises UserError if its file cannot be imported."""
    with blamed(f"plugin {plugin}", FILES.get(plugin)):
        return getattr(importlib.import_module(plugin), name)


@contextmanager
def blamed(what: str, file: Path | None) -> Iterator[None]:
    """Turn exceptions of the user's code into a sentence: ``plugin mine, line 3: KeyError: 'x'``.

    NumPy's error state and the working folder are restored afterwards.

    Args:
        what: name of the code in the block.
        file: its file; None if unknown.
    """
    numpy, folder = sys.modules.get("numpy"), Path.cwd()
    try:
        with _staying(), _reading(what), numpy.errstate() if numpy else nullcontext():
            yield
    except (UserError, KeyboardInterrupt, GeneratorExit):
        raise
    except BaseException as error:  # a user's file can raise anything, or call sys.exit
        frames = traceback.extract_tb(error.__traceback__)
        own = [frame for frame in frames if file is not None and Path(frame.filename).resolve() == file.resolve()]
        if own:
            log.error("%s: traceback of the error:\n%s", what, "".join(traceback.format_list(frames)).rstrip())
        line = f", line {own[-1].lineno}" if own else ""
        words = _said(error).strip().splitlines()
        reason = f"{type(error).__name__}: {words[0]}" if words else type(error).__name__
        raise UserError(f"{what}{line}: {reason}") from error
    finally:
        os.chdir(folder)


@contextmanager
def _reading(what: str) -> Iterator[None]:
    """Attribute all files that are read in the block to this code of the user's (`notice_reads`)."""
    _running.append(what)
    try:
        yield
    finally:
        _running.pop()


def notice_reads(known: Collection[Path], apart: Collection[Path]) -> None:
    """Log the files that the user's code reads through Python and whose edits rerun nothing, until the process ends.

    Args:
        known: resolved files whose edits do rerun steps.
        apart: resolved folders whose files the user does not edit, e.g. results.
    """
    places = [*apart, *(Path(place).resolve() for place in (sys.prefix, sys.base_prefix, PACKAGE, gettempdir()))]
    told: set[Path] = set()

    def heard(event: str, arguments: tuple[Any, ...]) -> None:
        if event == "open" and _running and (path := _file_read(*arguments)) is not None:
            if path in known or path in told or not path.is_file():
                return
            if any(path.is_relative_to(place) for place in places) or _is_of_system(path):
                return
            told.add(path)
            words = "an edit of it reruns nothing; name it in a list FILES at the top of the file that reads it"
            log.warning("beware: %s reads %s, and %s", _running[-1], path, words)

    sys.addaudithook(heard)


def _file_read(path: object, mode: str | None, flags: int) -> Path | None:
    """Return the file that Python opens for reading (for a compiled module its source), or None."""
    writes = set(mode or "") & set("wax+") or (not mode and flags & (os.O_WRONLY | os.O_RDWR))
    if writes or not isinstance(path, str | bytes | os.PathLike):
        return None
    file = Path(os.fsdecode(path)).resolve()
    if file.suffix == ".pyc":
        with suppress(ValueError, NotImplementedError):
            return Path(source_from_cache(str(file)))
    return file


def _is_of_system(path: Path) -> bool:
    """Return whether a file lies in a system folder, among installed packages, or in a hidden folder."""
    system = path.parts[1] in ("proc", "sys", "dev", "etc", "usr", "lib", "lib64", "var", "run")
    return system or any(part.startswith(".") or part in ("site-packages", "dist-packages") for part in path.parts)


@contextmanager
def _staying() -> Iterator[None]:
    """Turn `os._exit` in the block into SystemExit, since the job would end as if successful. In forks it
    still exits.
    """
    ends, own = os._exit, os.getpid()

    def leave(status: int) -> NoReturn:
        if os.getpid() != own:
            ends(status)
        raise SystemExit(f"os._exit({status}) would end the job")

    os._exit = leave
    try:
        yield
    finally:
        os._exit = ends


def _said(error: BaseException) -> str:
    """Return the text of an error; empty if the user's exception class cannot give one."""
    try:
        return str(error)
    except Exception:
        return ""


def spent_by(plugin: str, noise_multiplier: float, case: Any) -> float:
    """Return the ε of a plugin's ``epsilon``, checked for properties of every correct ε.

    Raises:
        UserError: ε is not a finite number above 0, or does not fall as the noise grows.
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
    """Return the noise that a plugin's ``amount_for`` returns for a budget, which may be None.

    Raises:
        UserError: the noise is not a finite number above 0, or spends more than the budget by the plugin's own
            ``epsilon``.
    """
    said = call(plugin, "amount_for", epsilon, case)
    if said is None:
        return None
    amount = _positive(plugin, f"amount_for returns {said!r} at epsilon {epsilon:g}", said)
    if (spent := spent_by(plugin, amount, case)) > epsilon * (1 + ROUNDING):
        words = f"amount_for returns {amount:g} for epsilon {epsilon:g}, at which epsilon returns {spent:g}"
        raise UserError(f"plugin {plugin}: {words}; expected noise that spends at most the budget")
    return amount


def _budget(plugin: str, noise_multiplier: float, value: Any) -> float:
    return _positive(plugin, f"epsilon returns {value!r} at noise_multiplier {noise_multiplier:g}", value)


def _positive(plugin: str, words: str, value: Any) -> float:
    try:
        number = float(value)
    except (TypeError, ValueError, OverflowError, RuntimeError):
        number = None
    if number is None or isinstance(value, bool | str) or not 0 < number < inf:
        raise UserError(f"plugin {plugin}: {words}; expected a finite number above 0")
    return number


def add_folder(folder: Path) -> None:
    """Put a folder at the end of Python's path, so that its files hide no installed module."""
    if folder not in FOLDERS:
        FOLDERS.append(folder)
        sys.path.append(str(folder))
    importlib.invalidate_caches()


def module_file(module: str) -> Path | None:
    """Return the file of a user's module from the working folder, PYTHONPATH or the plugins' folder, or None."""
    places = [Path(), *map(Path, filter(None, os.environ.get("PYTHONPATH", "").split(os.pathsep))), *FOLDERS]
    relative = Path(*module.split("."))
    candidates = [place / end for place in places for end in (relative.with_suffix(".py"), relative / "__init__.py")]
    return next((path.resolve() for path in candidates if path.is_file()), None)
