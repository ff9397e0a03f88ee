"""Reference page of all keys, from sections and declarations: ``python -m dp_leakage.reference >
docs/reference.md``.
"""

import re
import sys
from collections.abc import Iterator, Mapping
from functools import reduce
from operator import getitem
from typing import Any

import yaml

from dp_leakage.attacks import ATTACKS
from dp_leakage.common.run_config import Config
from dp_leakage.common.schemas import Schema, words
from dp_leakage.common.sections import schema_of
from dp_leakage.data import SOURCES
from dp_leakage.figures import COMMON, ENTERED, FIGURES, FigureKind
from dp_leakage.metrics.rows import QUALIFIERS
from dp_leakage.models.architectures import ARCHITECTURES
from dp_leakage.privacy.mechanisms import ACCOUNTANTS, MECHANISMS
from dp_leakage.study.sections import StudyFile

HEAD = """\
# Reference

Every key of `config.yaml` and of a study file, and every valid name. `make reference` generates this page from sections
and declarations; do not edit it by hand.
"""
COLUMNS = """\
A row of `metrics.parquet` is one number: `metric`, `repeat` (`"0"`, `"1"`, … or `"all"`), `value`, and `low` and
`high`, its 95 % interval. Qualifiers have columns of their own, null where they do not apply. A file has only the
columns in use. The csv of a figure has them too, with the columns of the cell.
"""
CHANGES = "_changes"  # ending of definitions that have another one's keys, none of them required
Json = dict[str, Any]


def reference() -> str:
    """Return the page."""
    config, study = schema_of(Config), schema_of(StudyFile)
    study = _resolved(study, study["$defs"])
    parts = [HEAD, "## config.yaml", _table(config["properties"], config.get("required", []))]
    parts += ["## A study file", _table(study["properties"], study["required"])]
    for name, schema in study["$defs"].items():
        if "properties" in schema and not name.endswith(CHANGES):
            table = _table(schema["properties"], schema.get("required", []))
            parts += [f"### {name}", schema.get("description", ""), table]
    parts += ["## Names", "### attacks"]
    parts += [_rows(("name", "finds out", "reads", "needs", "settings and their defaults"), _attacks())]
    parts += ["### settings of attacks", _settings({name: entry.schemas for name, entry in ATTACKS.items()})]
    common = f"All have the settings {_words(COMMON)}. Kinds that one paper alone needs lie with its study."
    kinds = {name: kind for name, kind in FIGURES.items() if name not in ENTERED}
    parts += ["### kinds of figures", common]
    parts += [_rows(("kind", "made from", "form", "own settings and their defaults"), _figures(kinds))]
    parts += ["### settings of figures", _settings({name: kind.schemas for name, kind in kinds.items()})]
    parts += ["### mechanisms", _rows(("defense", "label", "guarantee"), _mechanisms())]
    parts += ["### keys of mechanisms", _settings({name: own.schemas for name, own in MECHANISMS.items()})]
    parts += ["### accountants", _rows(("name", "noise", "samplers", "neighbors", "its number is"), _accountants())]
    parts += ["### sources of data", _rows(("name", "what it is", "keys"), _sources())]
    parts += ["### keys of sources", _settings({name: source.keys for name, source in SOURCES.items()})]
    parts += ["### architectures", _rows(("name", "what it is"), _architectures())]
    parts += ["## Columns of metrics", COLUMNS, _rows(("column", "holds", "what it says"), _qualifiers())]
    return "\n\n".join(part for part in parts if part) + "\n"


def undocumented(schema: Json, where: str = "") -> list[str]:
    """Return the keys of a schema that have no description."""
    found = []
    for key, value in schema.get("properties", {}).items():
        name = f"{where}{key}"
        described = "description" in value or "$ref" in value
        found += [] if described else [name]
        found += undocumented(value, f"{name}.")
    for key, value in schema.get("$defs", {}).items():
        found += undocumented(value, f"{key}.")
    return found


def _resolved(schema: Any, definitions: Mapping[str, Json]) -> Any:
    """Replace references in a schema by short definitions, or by the descriptions of long ones."""
    if isinstance(schema, list):
        return [_resolved(part, definitions) for part in schema]
    if not isinstance(schema, dict):
        return schema
    schema = {key: _resolved(part, definitions) for key, part in schema.items()}
    if not isinstance(schema.get("$ref"), str):
        return schema
    found = reduce(getitem, schema["$ref"].split("/")[2:], definitions)  # "#/$defs/NAME", or further into it
    if "properties" not in found:
        return {**_resolved(found, definitions), **{key: part for key, part in schema.items() if key != "$ref"}}
    return {"description": found.get("description", ""), **schema}


def _table(properties: Mapping[str, Json], required: list[str]) -> str:
    return _rows(("key", "value", "what it is"), _keys(properties, required))


def _keys(properties: Mapping[str, Json], required: list[str], prefix: str = "") -> Iterator[tuple[str, ...]]:
    for key, schema in properties.items():
        mark = " (required)" if key in required else ""
        yield f"`{prefix}{key}`{mark}", _kind(schema), " ".join(schema.get("description", "").split())
        yield from _keys(schema.get("properties", {}), schema.get("required", []), f"{prefix}{key}.")


def _kind(schema: Json) -> str:
    """Describe a value's type in a few words."""
    if "$ref" in schema:
        name = schema["$ref"].rsplit("/", 1)[1]
        whole = name.removesuffix(CHANGES)
        return f"[{name}](#{name})" if name == whole else f"some keys of [{whole}](#{whole})"
    if "enum" in schema:
        return " · ".join(f"`{value}`" for value in schema["enum"])
    if "anyOf" in schema:
        return " or ".join(dict.fromkeys(_kind(choice) for choice in schema["anyOf"]))
    if "const" in schema:
        return f"`{schema['const']}`"
    kind = schema.get("type", "any")
    words = " or ".join(kind) if isinstance(kind, list) else kind
    inner = schema.get("additionalProperties")
    if isinstance(inner, dict) and "$ref" in inner:
        words = f"name → {_kind(inner)}"
    if isinstance(schema.get("items"), dict):
        words = f"list of {_kind(schema['items'])}"
    limits = {"minimum": "≥", "exclusiveMinimum": ">", "maximum": "≤", "exclusiveMaximum": "<"}
    said = [f"{sign} {schema[key]:g}" for key, sign in limits.items() if key in schema]
    return " ".join([words, *([f"({', '.join(said)})"] if said else [])])


def _attacks() -> Iterator[tuple[str, ...]]:
    for name, entry in ATTACKS.items():
        needs = f"{entry.needs} models" if entry.needs else "–"
        base = _base(name)
        changes = {key: value for key, value in entry.settings.items() if value != ATTACKS[base].settings.get(key)}
        told = (
            _words(entry.settings) if base == name else f"as `{base}`" + (f", but {_words(changes)}" if changes else "")
        )
        yield f"`{name}`", entry.family, entry.reads, needs, told


def _base(name: str) -> str:
    """Return the first attack of the file that declares an attack: its variants are described as changes to it."""
    return next(other for other, entry in ATTACKS.items() if entry.module == ATTACKS[name].module)


def _group(names: list[str]) -> str:
    """List names, with all attacks of one file by the first."""
    if not set(names) <= set(ATTACKS):
        return ", ".join(f"`{name}`" for name in names)
    files = {base: [other for other in ATTACKS if _base(other) == base] for base in dict.fromkeys(map(_base, names))}
    whole = {base: len(own) > 2 and set(own) <= set(names) for base, own in files.items()}
    told = [f"`{base}` and its variants" if whole[base] else "" for base in files]
    rest = [f"`{name}`" for name in names if not whole[_base(name)]]
    return ", ".join([*filter(None, told), *rest])


def _figures(kinds: Mapping[str, FigureKind]) -> Iterator[tuple[str, ...]]:
    for name, kind in kinds.items():
        yield f"`{name}`", kind.needs, "table" if kind.table else "picture", _words(kind.settings)


def _mechanisms() -> Iterator[tuple[str, ...]]:
    for name, declared in MECHANISMS.items():
        yield f"`{name}`", declared.label, declared.guarantee


def _accountants() -> Iterator[tuple[str, ...]]:
    for name, rules in ACCOUNTANTS.items():
        relations = dict.fromkeys(relation for known in rules.relations.values() for relation in known)
        claims: dict[str, list[str]] = {}
        for sampler in rules.samplers:
            claims.setdefault(rules.claim_under(sampler), []).append(sampler)
        worth = [claim if len(claims) == 1 else f"{claim} ({', '.join(own)})" for claim, own in claims.items()]
        yield f"`{name}`", str(rules.noise), ", ".join(rules.samplers), ", ".join(relations), ", ".join(worth)


def _sources() -> Iterator[tuple[str, ...]]:
    for name, source in SOURCES.items():
        keys = ", ".join(f"`{key}`{' (required)' if key in source.required else ''}" for key in source.keys)
        yield f"`{name}`", source.summary, keys or "–"


def _architectures() -> Iterator[tuple[str, ...]]:
    for name, builder in ARCHITECTURES.items():
        yield f"`{name}`", (builder.__doc__ or "").split("\n")[0]


def _settings(declared: Mapping[str, Mapping[str, Schema]]) -> str:
    """Return a row for every setting; one row for all settings with the same rule, whatever their defaults."""
    found: dict[tuple[str, str, str], list[str]] = {}
    for name, schemas in declared.items():
        for key, schema in schemas.items():
            row = (f"`{key}`", _short(words(schema)), schema.get("description", ""))
            found.setdefault(row, []).append(name)
    rows = (
        (key, valid, "all" if len(names) == len(declared) else _group(names), description)
        for (key, valid, description), names in found.items()
    )
    return _rows(("key", "value", "of", "what it is"), rows)


def _short(valid: str) -> str:
    """Shorten the words for valid values to fit a table's cell."""
    valid = re.sub(r"^an? ", "", valid.replace("a list of items, each ", "a list, each "))
    return re.sub(r"\b(null|true or false), or an? ", r"\1 or ", valid)


def _qualifiers() -> Iterator[tuple[str, ...]]:
    kinds = {str: "text", float: "number", bool: "true or false"}
    for name, qualifier in QUALIFIERS.items():
        yield f"`{name}`", kinds[qualifier.kind], qualifier.words


def _words(settings: Mapping[str, Any]) -> str:
    return ", ".join(f"`{key}: {_value(value)}`" for key, value in settings.items()) or "–"


def _value(value: object) -> str:
    text = yaml.safe_dump(list(value) if isinstance(value, tuple) else value, default_flow_style=True, width=1000)
    return text.removesuffix("...\n").strip()


def _rows(head: tuple[str, ...], rows: Iterator[tuple[str, ...]]) -> str:
    lines = [head, ("---",) * len(head), *rows]
    return "\n".join("| " + " | ".join(cell.replace("|", "\\|") for cell in line) + " |" for line in lines)


if __name__ == "__main__":
    sys.stdout.write(reference())
