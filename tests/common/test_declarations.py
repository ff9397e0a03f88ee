"""What a file says of itself is read without running it, in the package and of a plugin alike."""

import ast
from pathlib import Path

import pytest

import dp_leakage
from dp_leakage.common import declarations
from dp_leakage.common.declarations import each_of, settings_of
from dp_leakage.common.errors import UserError
from dp_leakage.provenance.fingerprint import DECLARED, _code

PACKAGE = Path(dp_leakage.__file__).parent


def test_cutting_a_declaration_out_reads_what_parsing_the_file_reads():
    found = 0
    for path in sorted(PACKAGE.rglob("*.py")):
        text = path.read_text()
        parsed = {
            target.id: ast.literal_eval(node.value)
            for node in ast.parse(text).body
            if isinstance(node, ast.Assign) and isinstance(node.value, ast.Dict)
            for target in node.targets
            if isinstance(target, ast.Name) and target.id in DECLARED
        }
        cut = {word: declarations.declared(text, word) for word in DECLARED}
        assert {word: given for word, given in cut.items() if given is not None} == parsed, path
        found += len(parsed)
    assert found > 10


def test_another_declaration_is_no_other_code(tmp_path):
    text = (PACKAGE / "attacks" / "membership" / "yeom.py").read_text()
    (tmp_path / "a.py").write_text(text)
    (tmp_path / "b.py").write_text(text.replace('"default": 0.0', '"default": 0.5'))
    (tmp_path / "c.py").write_text(text.replace("import numpy", "import numpy.linalg"))
    a, b, c = (_code(tmp_path / f"{name}.py") for name in "abc")
    assert '"default": 0.0' in text
    assert (a == b, a == c) == (True, False)


def test_what_is_only_called_like_a_declaration_is_code(tmp_path):
    for name, value in (("a", "fig"), ("b", "figures")):
        (tmp_path / f"{name}.py").write_text(f'FIGURE = "{value}"\n')
    a, b = (_code(tmp_path / f"{name}.py") for name in "ab")
    assert a != b
    assert declarations.declared('FIGURE = "fig"\n', "FIGURE") is None


def test_variants_change_what_the_file_says_setting_by_setting():
    given = {
        "family": "membership",
        "settings": {"a": 1, "b": 2},
        "variants": {
            "plain": {},
            "strong": {"settings": {"a": 5}, "aware": False},
            "both": {"like": "strong", "settings": {"b": 6}},
        },
    }
    assert each_of("x.py", "ATTACK", "x", given) == {
        "plain": {"family": "membership", "settings": {"a": 1, "b": 2}},
        "strong": {"family": "membership", "settings": {"a": 5, "b": 2}, "aware": False},
        "both": {"family": "membership", "settings": {"a": 5, "b": 6}, "aware": False},
    }
    assert list(each_of("x.py", "ATTACK", "x", {"family": "membership"})) == ["x"]


@pytest.mark.parametrize(
    "variants", [[], {}, {"a": 1}, {"a": {"like": "b"}}, {"a": {"like": "a"}}, {"a": {"like": ["b"]}}]
)
def test_variants_that_are_none_are_refused(variants):
    with pytest.raises(UserError, match=r"^x\.py: (ATTACK has variants|'a' is like)"):
        each_of("x.py", "ATTACK", "x", {"variants": variants})


ALPHA = {"type": "number", "exclusiveMinimum": 0, "default": 0.25, "description": "A level."}


def test_a_plain_value_in_a_variant_is_another_default_of_the_same_setting():
    given = {
        "settings": {"alpha": ALPHA, "size": 3},
        "variants": {"plain": {}, "strict": {"settings": {"alpha": 0.01, "size": {"type": "integer", "default": 4}}}},
    }
    found = {name: settings_of("x.py", own) for name, own in each_of("x.py", "ATTACK", "x", given).items()}
    assert {name: settings for name, (settings, _) in found.items()} == {
        "plain": {"alpha": 0.25, "size": 3},
        "strict": {"alpha": 0.01, "size": 4},
    }
    assert found["strict"][1]["alpha"] == ALPHA | {"default": 0.01}
    assert [schemas["size"]["type"] for _, schemas in found.values()] == ["number", "integer"]


def test_a_reference_is_a_shared_definition_and_keys_beside_it_go_before_its_own():
    own = {"settings": {"alpha": {"$ref": "#/$defs/alpha", "default": 0.5}}}
    settings, schemas = settings_of("x.py", own, {"alpha": ALPHA})
    assert (settings, schemas) == ({"alpha": 0.5}, {"alpha": ALPHA | {"default": 0.5}})


def nested(depth):
    return {"type": "array", "items": nested(depth - 1)} if depth else {"type": "string"}


@pytest.mark.parametrize(
    ("schema", "sentence"),
    [
        ({"type": "integr"}, "key 'settings.a.type' is 'integr'; did you mean 'integer'"),
        ({"minimun": 0}, "unknown key 'settings.a.minimun'; did you mean 'minimum'"),
        ({"minimum": "a"}, "key 'settings.a.minimum' is 'a'; expected a number"),
        ({"minimum": 1e999}, "settings.a.minimum"),
        ({"enum": []}, "key 'settings.a.enum' is empty"),
        ({"items": {"typ": "text"}}, "unknown key 'settings.a.items.typ'; did you mean 'type'"),
        ({"$ref": "#/$defs/alpa"}, "key 'settings.a.$ref' is '#/$defs/alpa'; did you mean '#/$defs/alpha'"),
        ({"type": "number"}, "key 'settings.a' lacks the key 'default'; it is required"),
        ({"type": "integer", "minimum": 1, "default": 0}, "is 0; expected a whole number of at least 1"),
        ({"minimum": 2, "maximum": 1, "type": "number", "default": 1.5}, "key 'settings.a.default' is 1.5"),
        (nested(200) | {"default": []}, "levels"),
        (object(), "settings.a"),
    ],
)
def test_a_schema_that_is_none_is_refused_in_a_sentence(schema, sentence):
    with pytest.raises(UserError) as error:
        settings_of("x.py", {"settings": {"a": schema}}, {"alpha": ALPHA})
    assert str(error.value).startswith("x.py: ")
    assert sentence in str(error.value)


def test_settings_are_a_mapping():
    with pytest.raises(UserError, match=r"^x\.py: settings is \[1\]; expected a mapping of names to JSON Schemas$"):
        settings_of("x.py", {"settings": [1]})


def test_of_a_setting_without_a_schema_the_default_says_what_it_may_hold():
    _, found = settings_of("x.py", {"settings": {"threshold": 0.9, "names": [], "any": None, "on": True, "of": "a"}})
    assert {name: schema.get("type") for name, schema in found.items()} == {
        "threshold": "number", "names": "array", "any": None, "on": "boolean", "of": "string",
    }  # fmt: skip
