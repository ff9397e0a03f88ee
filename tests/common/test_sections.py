"""JSON Schemas of sections: what a class says is what the schema says."""

from typing import Annotated, Literal

import pytest
from pydantic import Field, ValidationError

from dp_leakage.common.schemas import holds
from dp_leakage.common.sections import EACH_ONCE, NULL, Name, Section, schema_of


class Inner(Section):
    """Where it
    stands.
    """

    size: int = Field(ge=1, description="How many.")


class Apart(Section):
    """A part of its own."""

    shared = True
    rate: Annotated[float | None, NULL] = Field(None, gt=0)
    kind: Annotated[Literal["one", "two"] | None, NULL] = None


class Outer(Section):
    """All of it."""

    inner: Inner | None = None
    named: dict[Name, Apart] = Field(min_length=1)
    once: Annotated[list[str], EACH_ONCE] | None = None


SCHEMA = schema_of(Outer)
VALID = {"named": {"a": {"rate": None}}}


def test_a_section_stands_in_its_place_and_a_shared_one_apart():
    assert SCHEMA["properties"]["inner"] == {
        "type": "object",
        "additionalProperties": False,
        "description": "Where it stands.",
        "properties": {"size": {"type": "integer", "minimum": 1, "description": "How many."}},
        "required": ["size"],
    }
    assert SCHEMA["properties"]["named"]["additionalProperties"] == {"$ref": "#/$defs/apart"}
    assert list(SCHEMA["$defs"]) == ["apart"]


@pytest.mark.parametrize(
    ("changes", "valid"),
    [
        ({}, True),
        ({"named": {}}, False),
        ({"named": {"A": {}}}, False),
        ({"named": {"a": {"kind": None}}}, True),
        ({"named": {"a": {"kind": "three"}}}, False),
        ({"named": {"a": {"rate": 0}}}, False),
        ({"inner": {"size": 1}}, True),
        ({"inner": {}}, False),
        ({"inner": None}, False),  # only what is annotated with NULL may be null
        ({"once": ["a", "b"]}, True),
        ({"once": ["a", "a"]}, False),
        ({"other": 1}, False),
    ],
)
def test_the_schema_holds_as_the_class_says(changes, valid):
    assert holds(VALID | changes, SCHEMA) is valid


def test_a_section_converts_nothing_and_does_not_change():
    section = Outer.model_validate({"named": {"a": {}}, "inner": {"size": 2}})
    with pytest.raises(ValidationError):
        section.inner.size = 3
    with pytest.raises(ValidationError):
        Inner.model_validate({"size": "2"})
