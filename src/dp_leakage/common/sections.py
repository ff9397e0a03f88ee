"""Sections: typed parts of config.yaml and of a study file, each key written once, and the JSON Schema of a section.

A section's class states keys, types, ranges and descriptions. `schemas.check` refuses what its schema does not allow,
and ``docs/reference.md`` lists it.
"""

from typing import Annotated, Any, ClassVar

from pydantic import BaseModel, ConfigDict, Field, GetJsonSchemaHandler

from dp_leakage.common.schemas import REFERENCE, Schema

Json = dict[str, Any]


class Words:
    """Rules of JSON Schema that a Python type cannot say, for use in ``Annotated``."""

    def __init__(self, **rules: object) -> None:
        self.rules = rules

    def __get_pydantic_json_schema__(self, core: Any, handler: GetJsonSchemaHandler) -> Json:
        return {**handler(core), **self.rules}


EACH_ONCE = Words(uniqueItems=True)  # a list that names nothing twice
NULL = Words(nullable=True)  # a key whose value may be null: what a key above it says is then removed
Name = Annotated[str, Field(pattern="^[a-z][a-z0-9_]*$")]
Above0 = Annotated[float, Field(gt=0)]


class Section(BaseModel):
    """A part of a file: unknown keys are refused, values are not converted, and nothing changes later.

    Attributes:
        shared: whether the section has a part of the reference page of its own.
    """

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)
    shared: ClassVar[bool] = False


def schema_of(section: type[Section]) -> Schema:
    """Return the JSON Schema of a section: `shared` sections by reference, every other one in its place.

    A key that may be left out has no null in its schema, unless it is annotated with `NULL`.
    """
    raw = section.model_json_schema(ref_template=REFERENCE + "{model}")
    found = raw.pop("$defs", {})
    shared = [one.__name__ for one in _below(Section) if one.shared and one.__name__ in found]
    plain = {_snake(name): _plain(found[name], found, shared) for name in shared}
    return {**_plain(raw, found, shared), **({"$defs": plain} if plain else {})}


def _below(section: type[Section]) -> list[type[Section]]:
    return [each for one in section.__subclasses__() for each in (one, *_below(one))]


def _snake(name: str) -> str:
    """Spell the name of a class as keys are spelled: ``ModelChanges`` is ``model_changes``."""
    return "".join(f"_{letter.lower()}" if letter.isupper() else letter for letter in name).lstrip("_")


def _plain(schema: Json, definitions: Json, shared: list[str]) -> Json:
    """Return pydantic's schema in the words that `schemas` knows, without titles and with sections in their places."""
    own = {key: value for key, value in schema.items() if key not in ("title", "default", "nullable")}
    if "description" in own:  # of a class it is the docstring, on several lines
        own["description"] = " ".join(own["description"].split())
    if "$ref" in own:
        name = own["$ref"].removeprefix(REFERENCE)
        if name in shared:
            return {**own, "$ref": REFERENCE + _snake(name)}
        own = {**_plain(definitions[name], definitions, shared), **{k: v for k, v in own.items() if k != "$ref"}}
        return own | _nullable(own, schema)
    if "anyOf" in own:
        choices = [choice for choice in own.pop("anyOf") if choice != {"type": "null"}]
        if len(choices) == 1:
            inner = _plain({**choices[0], **own}, definitions, shared)
            return inner | _nullable(inner, schema)
        own["anyOf"] = [_plain(choice, definitions, shared) for choice in choices]
    if "patternProperties" in own:
        ((pattern, inner),) = own.pop("patternProperties").items()
        own |= {"propertyNames": {"type": "string", "pattern": pattern}, "additionalProperties": inner}
    if "const" in own:
        own.pop("type", None)
    if "enum" in own:
        own.pop("type", None)
    if "properties" in own:
        own["properties"] = {key: _plain(value, definitions, shared) for key, value in own["properties"].items()}
    for key in ("items", "additionalProperties"):
        if own.get(key) in (True, {}):  # which is what it would be without that key
            own.pop(key)
        elif isinstance(own.get(key), dict):
            own[key] = _plain(own[key], definitions, shared)
    return own | _nullable(own, schema)


def _nullable(own: Json, schema: Json) -> Json:
    if not schema.get("nullable"):
        return {}
    return {"enum": [None, *own["enum"]]} if "enum" in own else {"type": [own["type"], "null"]}
