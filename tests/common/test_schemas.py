"""A schema's check, its sentence and its words agree with one another, for every form that a declaration may write."""

import jsonschema
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dp_leakage.attacks import ATTACKS
from dp_leakage.common.errors import UserError
from dp_leakage.common.schemas import SETTING, check, holds, table, words
from dp_leakage.data import SOURCES
from dp_leakage.figures import FIGURES
from dp_leakage.privacy.mechanisms import MECHANISMS

RATE = {"type": "number", "exclusiveMinimum": 0, "exclusiveMaximum": 1}
COUNT = {"type": "integer", "minimum": 1}
TEXT = {"type": "string", "minLength": 1}
PAIR = {"type": "array", "minItems": 2, "maxItems": 2, "prefixItems": [TEXT, {"type": "number"}]}
ROW = {"type": "object", "additionalProperties": False, "required": ["label"], "properties": {"label": TEXT}}
CASES = {
    "a whole number of at least 1": (COUNT, [1, 7], [0, 1.0, True, None, 2**63]),
    "a whole number from 1 to 18": (COUNT | {"maximum": 18}, [1, 18], [0, 19]),
    "a number": ({"type": "number"}, [-1.5, 3, 10**400], [True, "3", float("inf"), float("nan"), None]),
    "a number above 0 and below 1": (RATE, [0.5], [0, 1]),
    "a number of at least 0 and up to 1": ({"type": "number", "minimum": 0, "maximum": 1}, [0, 1], [-0.1, 1.1]),
    "low or null": ({"enum": ["low", None]}, ["low", None], ["lo", 3]),
    "true or false": ({"type": "boolean"}, [True], [1, "yes"]),
    "a text": (TEXT, ["a"], ["", 1]),
    "a list of items, each a whole number of at least 1": ({"type": "array", "items": COUNT}, [[], [1, 2]], [[0], 1]),
    "a list of one or more items, each a text": ({"type": "array", "minItems": 1, "items": TEXT}, [["a"]], [[], [""]]),
    "a list of 2 items, each a text": (
        {"type": "array", "minItems": 2, "maxItems": 2, "items": TEXT}, [["a", "b"], ("a", "b")], [["a"], "ab"],
    ),
    "a list of up to 2 items": ({"type": "array", "maxItems": 2}, [[], [1, "a"]], [[1, 2, 3]]),
    "a list of items, each once, each a text": (
        {"type": "array", "uniqueItems": True, "items": TEXT}, [["a", "b"], []], [["a", "a"], [1]],
    ),
    "[a text, a number]": (PAIR, [["l1", 0.5]], [["l1"], [0.5, "l1"], "l1", ["l1", 0.5, 1]]),
    "a mapping with label (a text)": (ROW, [{"label": "a"}], [{}, {"label": 1}, {"label": "a", "b": 1}]),
    "a mapping of names, each to a text": ({"type": "object", "additionalProperties": TEXT}, [{}], [{"a": 1}, []]),
    "null, or a number above 0 and below 1": (RATE | {"type": ["null", "number"]}, [None, 0.5], [1, "null"]),
    "auto, or a number above 0 and below 1": ({"anyOf": [{"const": "auto"}, RATE]}, ["auto", 0.1], ["aut", 1]),
    "anything": ({}, [None, object()], []),
}  # fmt: skip


@pytest.mark.parametrize("said", CASES)
def test_a_schema_holds_what_its_words_say(said):
    schema, valid, invalid = CASES[said]
    assert words(schema) == said
    assert all(holds(value, schema) for value in valid)
    assert not any(holds(value, schema) for value in invalid)
    for value in invalid:
        with pytest.raises(UserError, match=r"^x: (unknown )?key 'a"):
            check(value, schema, "x", "a")


@given(
    st.sampled_from([schema for schema, *_ in CASES.values()]),
    st.recursive(
        st.none() | st.booleans() | st.integers(-3, 30) | st.floats(-2, 2) | st.text(max_size=2),
        lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(["label", "b"]), inner),
        max_leaves=5,
    ),
)
def test_it_holds_what_json_schema_holds_but_for_whole_floats(schema, value):
    def has_whole_float(part):
        if isinstance(part, list | dict):
            return any(map(has_whole_float, part.values() if isinstance(part, dict) else part))
        return isinstance(part, float) and part.is_integer()

    expected = jsonschema.Draft202012Validator(schema).is_valid(value)
    if not has_whole_float(value):  # 3.0 is an integer of JSON Schema
        assert holds(value, schema) == expected


SCHEMA = table(
    {"rate": RATE, "how": {"anyOf": [{"enum": ["auto", "fixed"]}, COUNT]}, "rows": {"type": "array", "items": ROW}}
)


@pytest.mark.parametrize(
    ("value", "sentence"),
    [
        ({"rat": 1}, "f.yaml: unknown key 'top.rat'; did you mean 'rate'? Valid: how, rate, rows"),
        ({"rate": 1}, "f.yaml: key 'top.rate' is 1; expected a number above 0 and below 1"),
        (
            {"rate": "1e-3"},
            "f.yaml: key 'top.rate' is '1e-3'; expected a number above 0 and below 1 (YAML reads 1e-3 as text; write "
            "it 1.0e-3, without quotes)",
        ),
        (
            {"how": "atuo"},
            "f.yaml: key 'top.how' is 'atuo'; did you mean 'auto'? Valid: auto or fixed, or a whole number of at least "
            "1",
        ),
        ({"rows": [{"lable": "a"}]}, "f.yaml: unknown key 'top.rows.0.lable'; did you mean 'label'? Valid: label"),
        ({"rows": [{}]}, "f.yaml: key 'top.rows.0' lacks the key 'label'; it is required"),
        ([], "f.yaml: key 'top' is []; expected a mapping"),
    ],
)
def test_a_complaint_names_the_whole_key_the_value_and_what_is_valid(value, sentence):
    with pytest.raises(UserError) as error:
        check(value, SCHEMA, "f.yaml", "top")
    assert str(error.value) == sentence


def test_words_follow_references():
    definitions = {"rate": RATE, "row": {"properties": {"rate": {"$ref": "#/$defs/rate"}}}}
    assert words({"$ref": "#/$defs/row/properties/rate"}, definitions) == "a number above 0 and below 1"
    with pytest.raises(UserError, match=r"^x: key 'settings\.a\.anyOf' is empty; expected a list of one or more items"):
        check({"anyOf": []}, SETTING, "x", "settings.a")


def test_every_setting_of_the_package_is_described_by_a_schema():
    declared = {
        **{f"{name}.{key}": schema for name, entry in ATTACKS.items() for key, schema in entry.schemas.items()},
        **{f"{name}.{key}": schema for name, kind in FIGURES.items() for key, schema in kind.schemas.items()},
        **{f"{name}.{key}": schema for name, source in SOURCES.items() for key, schema in source.keys.items()},
        **{f"{name}.{key}": schema for name, entry in MECHANISMS.items() for key, schema in entry.schemas.items()},
    }
    assert len(declared) > 200
    for name, schema in declared.items():
        jsonschema.Draft202012Validator.check_schema(schema)
        check(schema, SETTING, name)
        assert schema["description"].endswith("."), name
        assert words(schema) != "anything", name
