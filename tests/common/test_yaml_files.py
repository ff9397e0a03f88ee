"""What a YAML text may not do, whatever it says."""

import pytest

from dp_leakage.common.errors import UserError
from dp_leakage.common.yaml_files import parse


@pytest.mark.parametrize(
    ("merge", "value"),
    [
        ("*b", {"x": 1, "y": 2, "z": 3}),
        ("[*b, *a]", {"x": 1, "y": 2, "z": 3}),
        ("[*a, *b]", {"x": 1, "y": 1, "z": 3}),
        ("[{z: 4}, *b]", {"x": 1, "y": 2, "z": 4}),
        ("*b, y: 5", {"x": 1, "y": 5, "z": 3}),
    ],
)
def test_merged_keys_are_those_that_yaml_defines_under_every_pyyaml(merge, value):
    """PyYAML 6.0.4 reads the first three as y = 1, 1 and 2: its own merge is not used."""
    text = f"a: &a {{x: 1, y: 1, z: 3}}\nb: &b {{<<: *a, y: 2}}\nc: {{<<: {merge}}}\n"
    assert parse(text, "study.yaml")["c"] == value


def test_merges_of_merges_are_read_soon_and_one_of_itself_is_refused():
    lines = ["a0: &a0 {x: 1}"] + [f"a{i}: &a{i} {{<<: [{', '.join([f'*a{i - 1}'] * 10)}]}}" for i in range(1, 30)]
    assert parse("\n".join(lines), "study.yaml")["a29"] == {"x": 1}
    with pytest.raises(UserError, match=r"^study\.yaml, line 1 is not valid YAML: << merges a mapping into itself"):
        parse("a: &a {x: 1, <<: *a}", "study.yaml")


@pytest.mark.parametrize("merge", ["1", "[1]", "[[{a: 1}]]"])
def test_only_mappings_are_merged(merge):
    with pytest.raises(UserError, match=r"^study\.yaml, line 2 is not valid YAML: << must name mappings"):
        parse(f"a: 1\nb: {{<<: {merge}}}\n", "study.yaml")


@pytest.mark.parametrize("number", ["!!int '010'", "!!float 1:30.5", "!!timestamp 2020-01-01", "!!str 1", "! 1"])
def test_a_tag_is_refused_whatever_it_tags(number):
    with pytest.raises(UserError, match=r"study.yaml, line 2: tag '!.*' is not read; leave it out"):
        parse(f"study: a\nrepeats: {number}\n", "study.yaml")


@pytest.mark.parametrize(
    ("text", "value"), [("010", "010"), ("1:30", "1:30"), ("2020-01-01", "2020-01-01"), ("1_0", 10)]
)
def test_numbers_are_decimal_and_a_date_is_text(text, value):
    assert parse(f"a: {text}", "study.yaml") == {"a": value}


@pytest.mark.parametrize(
    ("text", "line"),
    [("\na: 1\nb: 2\na: 3\n", 4), ('\nb: 1\n"b": 1\n', 3), ("\nc: {d: 1, d: 2}\n", 2), ("\n[{e: 1, e: 1}]", 2)],
)
def test_a_key_stands_once(text, line):
    with pytest.raises(UserError, match=rf"line {line}: key '[abde]' stands in line 2 too; keep one"):
        parse(text, "study.yaml")


@pytest.mark.parametrize("text", ["&a [*a]\n", "&a {b: *a}\n"])
def test_what_holds_itself_is_refused(text):
    with pytest.raises(UserError, match=r"^study\.yaml: key .* is nested deeper than 50 levels"):
        parse(text, "study.yaml")


def test_values_of_aliases_are_counted_each_time_without_being_made():
    lines = ["a0: &a0 [1, 1, 1, 1, 1, 1, 1, 1, 1, 1]"] + [
        f"a{i}: &a{i} [{', '.join([f'*a{i - 1}'] * 10)}]" for i in range(1, 30)
    ]
    with pytest.raises(UserError, match="holds more than 100,000 values; write less"):
        parse("\n".join(lines), "study.yaml")


def test_a_quoted_merge_is_a_key_like_any_other():
    with pytest.raises(UserError, match="line 2: key '<<' stands in line 1 too"):
        parse('"<<": 1\n"<<": 2\n', "study.yaml")
