"""Declarations: a literal at the top of a file that describes the attack, figure or data source in the file.

It is read without running the file. The package's own attacks, kinds of figures and data sources declare themselves in
this way, and so do plugins:

    ATTACK = {
        "family": "membership",
        "settings": {
            "alpha": {"type": "number", "exclusiveMinimum": 0, "default": 0.25, "description": "What it is."},
        },
        "variants": {"mine": {}, "mine_strict": {"settings": {"alpha": 0.01}}},
    }

``settings`` are names with their JSON Schemas (`schemas.SETTING`), each with a default. A plain value in place of a
schema is a default: in a variant it replaces only the default; elsewhere the setting takes values of the same type.
``{"$ref": "#/$defs/alpha"}`` is a schema that several files share, defined next to the registry; further keys override
its own. A file that declares several things names them in ``variants``. Each variant lists its changes to the file's
own declaration, or to an earlier variant named by ``like``. A file without that key declares one thing, which has the
file's name.
"""

import ast
import re
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, TypeVar

from dp_leakage.common.errors import UserError, nearest
from dp_leakage.common.schemas import ANY, NONE, REFERENCE, SETTING, Schema, check, like
from dp_leakage.common.yaml_files import check_value

Json = dict[str, Any]
Thing = TypeVar("Thing")
SETTINGS, VARIANTS, LIKE, DEFAULT = "settings", "variants", "like", "default"
SHARED: dict[str, Schema] = {SETTINGS: ANY}  # keys of every declaration of a thing that has settings


def declarations(package: str, folder: Path, word: str) -> Iterator[tuple[str, Json]]:
    """Return (dotted name, declaration) of every module below a folder with a line ``word = {…}``."""
    for path in sorted(folder.rglob("*.py")):
        given = declared(path.read_text(encoding="utf-8"), word)
        if given is not None:
            yield ".".join((package, *path.relative_to(folder).with_suffix("").parts)), given


def name_of(module: str) -> str:
    """Return the name of a file's only declaration: the last part of its dotted name or path."""
    return Path(module).stem if module.endswith(".py") else module.rpartition(".")[2]


def declared(text: str, word: str) -> Json | None:
    """Return the literal after ``word`` in a file's text, or None.

    Only the literal is parsed: parsing the whole file takes thirty times as long.
    """
    found = re.search(rf"^{word} = (?={{)", text, re.MULTILINE)
    if found is None:
        return None
    below = text[found.end() :]
    line = below[: below.index("\n")]
    return ast.literal_eval(line if line.endswith("}") else below[: below.index("\n}") + 2])


def check_plain(where: str, word: str, given: object) -> None:
    """Refuse a declaration that is not a mapping of names to plain data, as in a study file.

    Args:
        where: the file, for the error message.
        word: such as ``ATTACK``.
        given: the file's declaration.

    Raises:
        UserError: the declaration is not such a mapping.
    """
    if not isinstance(given, dict) or not all(isinstance(key, str) for key in given):
        raise UserError(f"{where}: {word} must be a mapping of names to values, such as {{}}")
    check_value(given, where, word)


def things_of(
    word: str, made: Callable[[str, str, Json], Thing], where: str, module: str, given: Json
) -> dict[str, Thing]:
    """Return everything that a file declares, by name.

    Args:
        word: such as ``ATTACK``.
        made: makes one thing of ``where``, ``module`` and its own declaration.
        where: the file, for the error message.
        module: its dotted name or path. The last part is the thing's name if the file declares only one.
        given: the file's declaration.

    Raises:
        UserError: the declaration is not valid.
    """
    return {name: made(where, module, own) for name, own in each_of(where, word, name_of(module), given).items()}


def each_of(where: str, word: str, name: str, given: Json) -> dict[str, Json]:
    """Name → declaration: one for each variant, or a single one called ``name``.

    Args:
        where: file, for the error message.
        word: such as ``ATTACK``.
        name: of the file.
        given: the file's declaration.

    Raises:
        UserError: the variants are not a mapping of names to mappings, or one is like a variant that does not stand
            above it.
    """
    variants = given.get(VARIANTS, {name: {}})
    if not _mappings(variants) or not variants or not _mappings(*variants.values()):
        raise UserError(f"{where}: {word} has {VARIANTS} {variants!r}; expected a mapping of names to mappings")
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
    """Apply a declaration's changes to another one, setting by setting."""
    changed = base | own
    for key in own:
        if key in base and _mappings(base[key], own[key]):
            changed[key] = base[key] | {name: _over(base[key].get(name), value) for name, value in own[key].items()}
    return changed


def _over(base: object, own: object) -> object:
    """Return a setting's schema with another default, or another schema."""
    return {**base, DEFAULT: own} if isinstance(base, dict) and not isinstance(own, dict) else own


def _mappings(*values: object) -> bool:
    return all(isinstance(value, dict) for value in values)


def schemas_of(
    where: str, given: Mapping[str, Any], definitions: Mapping[str, Schema] = NONE, key: str = SETTINGS
) -> dict[str, Schema]:
    """Return name → schema of one key of a declaration, with references replaced by the shared definitions.

    Defaults are plain data, since they go through JSON into the names of results.

    Raises:
        UserError: it is not a mapping of names to schemas, a definition does not exist, or a default is not valid.
    """
    written = given.get(key, {})
    if not isinstance(written, dict):
        raise UserError(f"{where}: {key} is {written!r}; expected a mapping of names to JSON Schemas")
    return {name: _schema(where, f"{key}.{name}", schema, definitions) for name, schema in written.items()}


def _schema(where: str, key: str, written: object, definitions: Mapping[str, Schema]) -> Schema:
    if not isinstance(written, dict) and not key.startswith(SETTINGS):
        valid = 'expected a JSON Schema, such as {"type": "string"}'
        raise UserError(f"{where}: key '{key}' is {written!r}; {valid}")
    schema = written if isinstance(written, dict) else {DEFAULT: written}
    check_value(schema, where, key)
    check(schema, SETTING, where, key)
    if "$ref" in schema:
        known = {REFERENCE + name: shared for name, shared in definitions.items()}
        if schema["$ref"] not in known:
            raise UserError(f"{where}: key '{key}.$ref' is {schema['$ref']!r}; {nearest(schema['$ref'], known)}")
        schema = {**known[schema["$ref"]], **{word: rule for word, rule in schema.items() if word != "$ref"}}
    if DEFAULT in schema:
        schema = {**(like(schema[DEFAULT]) if schema.keys() <= {DEFAULT, "description"} else {}), **schema}
        check(schema[DEFAULT], schema, where, f"{key}.{DEFAULT}")
    return schema


def settings_of(
    where: str, given: Mapping[str, Any], definitions: Mapping[str, Schema] = NONE
) -> tuple[Json, dict[str, Schema]]:
    """Return the settings that a declaration names, with their defaults, and the schema of each.

    Raises:
        UserError: as `schemas_of`, or a default is missing.
    """
    schemas = schemas_of(where, given, definitions)
    for name, schema in schemas.items():
        if DEFAULT not in schema:
            raise UserError(f"{where}: key '{SETTINGS}.{name}' lacks the key '{DEFAULT}'; it is required")
    return {name: schema[DEFAULT] for name, schema in schemas.items()}, schemas
