"""A literal at the top of a file declares what the file is.

It is read without running the file. The package's own attacks, kinds of figures and data sources declare themselves in
this way, and so do plugins:

    ATTACK = {
        "family": "membership",
        "settings": {"alpha": 0.25},
        "kinds": {"alpha": ["number", "above", 0, "below", 1]},
        "variants": {"mine": {}, "mine_strict": {"settings": {"alpha": 0.01}}},
    }

``settings`` are names with their defaults. ``kinds`` says what each setting may hold (`kinds.read`); a setting that it
leaves out may hold values like its default. A file that declares several things names them in ``variants``. Each
variant says what it changes, either in the file's own declaration or in that of an earlier variant that it is ``like``.
A file without that key declares one thing, which has the file's name.
"""

import ast
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, TypeVar

from dp_leakage.common.errors import UserError, nearest
from dp_leakage.common.identity import canonical
from dp_leakage.common.kinds import Kind, like, read
from dp_leakage.common.yaml_files import check_value

Json = dict[str, Any]
Thing = TypeVar("Thing")
SETTINGS, KINDS, VARIANTS, LIKE = "settings", "kinds", "variants", "like"
SHARED = (SETTINGS, KINDS)  # keys of every declaration of a thing that has settings


def declarations(package: str, folder: Path, word: str) -> Iterator[tuple[str, Json]]:
    """(Dotted name, what it declares) of every module below a folder that has a line ``word = {…}``."""
    for path in sorted(folder.rglob("*.py")):
        given = declared(path.read_text(encoding="utf-8"), word)
        if given is not None:
            yield ".".join((package, *path.relative_to(folder).with_suffix("").parts)), given


def name_of(module: str) -> str:
    """The name of a file that declares one thing: the last part of its dotted name, or of its path."""
    return Path(module).stem if module.endswith(".py") else module.rpartition(".")[2]


def declared(text: str, word: str) -> Json | None:
    """The literal after ``word`` in a file's text, or None.

    Only the literal is parsed: parsing the whole file takes thirty times as long.
    """
    found = re.search(rf"^{word} = (?={{)", text, re.MULTILINE)
    if found is None:
        return None
    below = text[found.end() :]
    line = below[: below.index("\n")]
    return ast.literal_eval(line if line.endswith("}") else below[: below.index("\n}") + 2])


def check_plain(where: str, word: str, given: object) -> None:
    """Refuses a declaration that is no mapping of names to plain data, such as a study file could hold.

    Args:
        where: the file, for the complaint.
        word: such as ``ATTACK``.
        given: what the file declares.

    Raises:
        UserError: it is none.
    """
    if not isinstance(given, dict) or not all(isinstance(key, str) for key in given):
        raise UserError(f"{where}: {word} must be a mapping of names to values, such as {{}}")
    check_value(given, where, word)


def things_of(
    word: str, made: Callable[[str, str, Json], Thing], where: str, module: str, given: Json
) -> dict[str, Thing]:
    """Everything that a file declares, by name.

    Args:
        word: such as ``ATTACK``.
        made: makes one thing of ``where``, ``module`` and its own declaration.
        where: the file, for the complaint.
        module: its dotted name or path. The last part is the thing's name if the file declares only one.
        given: what the file declares.

    Raises:
        UserError: the declaration is not valid.
    """
    return {name: made(where, module, own) for name, own in each_of(where, word, name_of(module), given).items()}


def each_of(where: str, word: str, name: str, given: Json) -> dict[str, Json]:
    """Name → declaration: one for each variant, or a single one called ``name``.

    Args:
        where: file, for the complaint.
        word: such as ``ATTACK``.
        name: of the file.
        given: what the file declares.

    Raises:
        UserError: the variants are no mapping of names to mappings, or one is like a variant that does not stand above
            it.
    """
    variants = given.get(VARIANTS, {name: {}})
    if not _mappings(variants) or not variants or not _mappings(*variants.values()):
        raise UserError(f"{where}: {word} has {VARIANTS} {variants!r}; valid is a mapping of names to mappings")
    shared = {key: value for key, value in given.items() if key != VARIANTS}
    found: dict[str, Json] = {}
    for variant, own in variants.items():
        other = own.get(LIKE)
        if other is not None and (not isinstance(other, str) or other not in found):
            raise UserError(f"{where}: '{variant}' is {LIKE} {other!r}; {nearest(other, found)}")
        found[variant] = _changed(
            shared if other is None else found[other], {key: value for key, value in own.items() if key != LIKE}
        )
    return found


def _changed(base: Json, own: Json) -> Json:
    """A declaration with another one over it, setting by setting."""
    both = (key for key in own if key in base and _mappings(base[key], own[key]))
    return base | own | {key: base[key] | own[key] for key in both}


def _mappings(*values: object) -> bool:
    return all(isinstance(value, dict) for value in values)


def check_keys(
    where: str, word: str, given: Mapping[str, Any], keys: Mapping[str, Kind], needed: Iterable[str]
) -> None:
    """Refuses keys that are unknown or missing, or whose values are of the wrong kind.

    Args:
        where: file, for the complaint.
        word: such as ``ATTACK``.
        given: the declaration.
        keys: what it may say, and what each may hold.
        needed: what it must say.

    Raises:
        UserError: there is such a key.
    """
    for key in given:
        if key not in keys:
            raise UserError(f"{where}: {word} has the unknown key '{key}'; {nearest(key, keys)}")
    for key in needed:
        if key not in given:
            raise UserError(f"{where}: {word} lacks the key '{key}'; it is required")
    for key, value in given.items():
        if not keys[key].holds(value):
            raise UserError(f"{where}: {key} is {value!r}; {keys[key].valid(value)}")


def settings_of(where: str, given: Mapping[str, Any]) -> tuple[Json, dict[str, Kind]]:
    """The settings that a declaration names, with their defaults, and what each may hold.

    Settings are plain data, since they go through JSON into the names of results.

    Raises:
        UserError: they are no plain data, a kind does not exist or belongs to no setting, or a default is not of its
            kind.
    """
    settings, kinds = given.get(SETTINGS, {}), given.get(KINDS, {})
    try:
        if not isinstance(settings, dict):
            raise TypeError(f"{type(settings).__name__} is no mapping")
        check_value(settings, where, SETTINGS)
        canonical(settings)
    except (TypeError, ValueError, RecursionError) as error:
        if isinstance(error, UserError):
            raise
        valid = f"valid are names with numbers, texts and lists ({error})"
        raise UserError(f"{where}: {SETTINGS} is {settings!r}; {valid}") from None
    found = {name: like(default) for name, default in settings.items()} | kinds_of(where, kinds)
    for name, kind in found.items():
        if name not in settings:
            raise UserError(f"{where}: {KINDS} has '{name}', which is no setting; {nearest(name, settings)}")
        if not kind.holds(settings[name]):
            raise UserError(f"{where}: the default of '{name}' is {settings[name]!r}; {kind.valid(settings[name])}")
    return settings, found


def kinds_of(where: str, said: object, key: str = KINDS) -> dict[str, Kind]:
    """Name → kind, read from the names and kinds under a key of a declaration. Raises UserError for an unknown kind."""
    if not isinstance(said, dict):
        raise UserError(f"{where}: {key} is {said!r}; valid is a mapping of names to kinds")
    found = {}
    for name, kind in said.items():
        try:
            found[name] = read(kind)
        except (UserError, RecursionError) as error:
            raise UserError(f"{where}: {key}, '{name}': {error}") from None
    return found
