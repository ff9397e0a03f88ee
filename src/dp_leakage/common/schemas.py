"""JSON Schemas: validation of a value, error messages, and descriptions of valid values.

A setting's rule is written once, in a declaration or a section (`sections`). The check, the sentence and
the line of ``docs/reference.md`` follow from it. Beyond the standard, numbers are finite, whole numbers fit into 64
bits, 3.0 is not an integer, and a tuple is a list.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from functools import cache, reduce
from math import inf
from operator import getitem
from typing import Any

from dp_leakage.common.errors import UserError, close, nearest

Schema = Mapping[str, Any]
MOST = 2**63 - 1  # the largest whole number, whatever it counts
PATTERNS = {  # of texts, in words
    "^[a-z][a-z0-9_]*$": "a name of lowercase letters, digits and _, a letter first",
    r"^\S+$": "a text without spaces",
}
REFERENCE = "#/$defs/"  # what a reference to a shared definition begins with

NONE: Mapping[str, Schema] = {}  # no shared definitions

# Shorthands for Python code; declarations are literals and write these out.
ANY: Schema = {}
TEXT: Schema = {"type": "string", "minLength": 1}
TEXTS: Schema = {"type": "array", "items": TEXT}
FLAG: Schema = {"type": "boolean"}
COUNT: Schema = {"type": "integer", "minimum": 1}


def enum(*values: object) -> Schema:
    """Return the schema of one of these values."""
    return {"enum": list(values)}


def table(properties: Mapping[str, Schema], required: Sequence[str] = ()) -> Schema:
    """Return the schema of a mapping with exactly these optional or required keys."""
    return {"type": "object", "additionalProperties": False, "properties": properties, "required": list(required)}


def holds(value: object, schema: Schema) -> bool:
    """Return whether a value is valid."""
    return bool(_validator()(schema).is_valid(value))


def check(value: object, schema: Schema, where: str = "", key: str = "") -> None:
    """Refuse a value that a schema does not allow.

    Args:
        value: plain data.
        schema: of the value.
        where: the file, for the error message.
        key: of the value in that file; the keys below it are added.

    Raises:
        UserError: the error message about the value nearest to the top.
    """
    errors = list(_validator()(schema).iter_errors(value))
    if errors:
        first = min(errors, key=lambda e: (len(e.absolute_path), str(e.absolute_path)))
        raise UserError(_sentence(first, where, key, schema.get("$defs", {})))


def words(schema: Schema, definitions: Mapping[str, Schema] = NONE) -> str:
    """Describe the valid values, as the end of a sentence.

    >>> words({"type": "number", "exclusiveMinimum": 0, "maximum": 1})
    'a number above 0 and up to 1'
    >>> words({"anyOf": [{"const": "auto"}, {"type": "array", "items": {"type": "integer", "minimum": 1}}]})
    'auto, or a list of items, each a whole number of at least 1'
    """
    if "$ref" in schema:
        return words(_referred(schema["$ref"], definitions), definitions)
    if "const" in schema or "enum" in schema:
        return " or ".join(map(_plain, schema.get("enum", [schema.get("const")])))
    if "anyOf" in schema:
        return ", or ".join(words(choice, definitions) for choice in schema["anyOf"])
    return ", or ".join(_WORDS[name](schema, definitions) for name in _types(schema.get("type", ()))) or "anything"


def like(default: object) -> Schema:
    """Return the schema of a setting known only by its default: values of the same type."""
    kinds: list[tuple[type | tuple[type, ...], str]] = [
        (bool, "boolean"), ((int, float), "number"), (str, "string"), ((list, tuple), "array"), (dict, "object")
    ]  # fmt: skip
    name = next((word for kind, word in kinds if isinstance(default, kind)), None)
    return {} if name is None else {"type": name}


@cache
def _validator() -> Any:
    import jsonschema

    standard = jsonschema.Draft202012Validator
    types = standard.TYPE_CHECKER.redefine_many(
        {
            "integer": lambda _, value: type(value) is int and abs(value) <= MOST,
            "number": lambda _, value: type(value) in (int, float) and abs(value) < inf,
            "array": lambda _, value: isinstance(value, list | tuple),
        }
    )
    return jsonschema.validators.extend(standard, type_checker=types)


def _sentence(error: Any, where: str, top: str, definitions: Mapping[str, Schema]) -> str:
    while error.context and (deeper := [inner for inner in error.context if _says_more(inner, error)]):
        error = max(deeper, key=lambda inner: len(inner.absolute_path))
    path = ".".join(map(str, ([top] if top else []) + list(error.absolute_path)))
    place = ": ".join(part for part in (where, f"key '{path}'" if path else "") if part)
    given, rule = error.instance, error.validator_value
    if "propertyNames" in list(error.absolute_schema_path)[-2:]:
        return f"{place} has the name {given!r}; expected {words(error.schema, definitions)}"
    match error.validator:
        case "additionalProperties":
            known = error.schema.get("properties", {})
            unknown = min(name for name in given if name not in known)
            full = f"{path}.{unknown}" if path else unknown
            return f"{where}{': ' if where else ''}unknown key '{full}'; {nearest(unknown, known)}"
        case "required":
            return f"{place} lacks the key '{next(name for name in rule if name not in given)}'; it is required"
        case "minItems" | "minProperties" | "minLength" if not given:
            return f"{place} is empty; expected {words(error.schema, definitions)}"
        case "uniqueItems":
            return f"{place} is {given!r}, which names something twice; name each once"
        case "not":
            return f"{place} has {' and '.join(rule['required'])}; use one of them"
        case "enum" if isinstance(given, str) and any(isinstance(value, str) for value in rule):
            return f"{place} is {given!r}; {nearest(given, map(_plain, rule))}"
        case "type" if (
            isinstance(given, str) and _is_number(given) and {"number", "integer"}.intersection(_types(rule))
        ):
            like = re.sub(r"^([-+]?\d+)e([-+]?)", lambda part: f"{part[1]}.0e{part[2] or '+'}", given)
            like = "like 1.0e-3" if like == given else like
            quoted = re.fullmatch(r"[-+]?\d+(\.\d*(e[-+]\d+)?)?", given)  # 1e-3 is text to YAML in any case
            hint = (
                "(quotes make it text; leave them out)"
                if quoted
                else f"(YAML reads {given} as text; write it {like}, without quotes)"
            )
            return f"{place} is {given!r}; expected {words(error.schema, definitions)} {hint}"
        case _:
            hint = close(given, _names(error.schema)) if isinstance(given, str) else ""
            return f"{place} is {given!r}; {hint + 'Valid:' if hint else 'expected'} {words(error.schema, definitions)}"


def _referred(reference: str, definitions: Mapping[str, Schema]) -> Schema:
    """Return the part of a schema at a reference: ``#/$defs/NAME``, or deeper."""
    return reduce(getitem, reference.split("/")[2:], definitions) if reference != "#" else {"type": "object"}


def _types(rule: str | Sequence[str]) -> Sequence[str]:
    return [rule] if isinstance(rule, str) else rule


def _names(schema: Schema) -> list[str]:
    """Return the strings that a schema lists as allowed values (``enum`` or ``const``)."""
    parts = [schema, *schema.get("anyOf", [])]
    values = [value for part in parts for value in part.get("enum", [part.get("const")])]
    return [value for value in values if isinstance(value, str)]


def _says_more(inner: Any, outer: Any) -> bool:
    """Return whether an alternative's error names a key, where "none of the alternatives" would not."""
    deeper = len(inner.absolute_path) > len(outer.absolute_path)
    return deeper or inner.validator in ("additionalProperties", "required")


def _plain(value: object) -> str:
    """Return a value in YAML's notation."""
    if isinstance(value, bool):  # which equals 1 or 0
        return "true" if value else "false"
    return "null" if value is None else str(value)


def _text(schema: Schema, _: Mapping[str, Schema]) -> str:
    return PATTERNS[schema["pattern"]] if "pattern" in schema else "a text"


def _whole(schema: Schema, _: Mapping[str, Schema]) -> str:
    least, most = schema.get("minimum"), schema.get("maximum")
    if least is None and most is None:
        return "a whole number"
    if most is None:
        return f"a whole number of at least {least}"
    return f"a whole number {'' if least is None else f'from {least} '}to {most}"


def _number(schema: Schema, _: Mapping[str, Schema]) -> str:
    limits = {"of at least": "minimum", "above": "exclusiveMinimum", "up to": "maximum", "below": "exclusiveMaximum"}
    return " ".join(
        ["a number", " and ".join(f"{word} {schema[key]:g}" for word, key in limits.items() if key in schema)]
    ).strip()


def _array(schema: Schema, definitions: Mapping[str, Schema]) -> str:
    if "prefixItems" in schema:
        return f"[{', '.join(words(item, definitions) for item in schema['prefixItems'])}]"
    least, most = schema.get("minItems", 0), schema.get("maxItems")
    count = f" {least}" if least == most else " one or more" if least else f" up to {most}" if most else ""
    once, items = ", each once" if schema.get("uniqueItems") else "", schema.get("items", {})
    each = words(items, definitions)
    return f"a list of{count} items{once}" + ("" if each == "anything" else f", each {each}")


def _object(schema: Schema, definitions: Mapping[str, Schema]) -> str:
    inner, properties = schema.get("additionalProperties"), schema.get("properties", {})
    if inner is False and properties and set(schema.get("required", ())) == set(properties):
        return "a mapping with " + ", ".join(
            f"{key} ({words(value, definitions)})" for key, value in properties.items()
        )
    return f"a mapping of names, each to {words(inner, definitions)}" if isinstance(inner, Mapping) else "a mapping"


_WORDS: dict[str, Callable[[Schema, Mapping[str, Schema]], str]] = {
    "null": lambda *_: "null",
    "boolean": lambda *_: "true or false",
    "string": _text,
    "integer": _whole,
    "number": _number,
    "array": _array,
    "object": _object,
}

# What a declaration may write of a setting: the part of JSON Schema that `words` can say.
_NESTED: Schema = {"$ref": "#"}
SETTING: Schema = table(
    {
        "description": TEXT,
        "default": ANY,
        "$ref": TEXT,
        "type": {"anyOf": [enum(*_WORDS), {"type": "array", "minItems": 1, "items": enum(*_WORDS)}]},
        "enum": {"type": "array", "minItems": 1},
        "const": ANY,
        **{key: {"type": "number"} for key in ("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum")},
        **{key: {"type": "integer", "minimum": 0} for key in ("minLength", "minItems", "maxItems")},
        "items": _NESTED,
        "prefixItems": {"type": "array", "minItems": 1, "items": _NESTED},
        "uniqueItems": FLAG,
        "anyOf": {"type": "array", "minItems": 1, "items": _NESTED},
        "properties": {"type": "object", "additionalProperties": _NESTED},
        "required": TEXTS,
        "additionalProperties": {"anyOf": [FLAG, _NESTED]},
    }
)


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True
