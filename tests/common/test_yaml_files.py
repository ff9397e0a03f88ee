"""What a YAML text may not do, whatever it says."""

import tracemalloc

import pytest

from dp_leakage.common.errors import UserError
from dp_leakage.common.yaml_files import parse


def test_merged_keys_are_counted_before_they_fill_the_memory():
    keys, times = ", ".join(f"k{key}: 1" for key in range(1000)), 20_000
    text = f"a: &a {{{keys}}}\nb:\n  <<: [{', '.join(['*a'] * times)}]\n"
    tracemalloc.start()
    try:
        with pytest.raises(UserError, match="line 3: merged keys expand to more than 100,000 values"):
            parse(text, "study.yaml")
        most = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert most < 8 * 1000 * times / 2  # the references alone to all keys would be twice as much


def test_keys_merged_through_others_are_those_of_both():
    text = "a: &a {x: 1, y: 1}\nb: &b {<<: *a, y: 2}\nc: {<<: [*b, {z: 3}], x: 4}\n"
    assert parse(text, "study.yaml")["c"] == {"x": 4, "y": 2, "z": 3}


@pytest.mark.parametrize("number", ["!!int '010'", "!!int 0x1f", "!!int 1:30", "!!float 1:30.5", "!!int abc"])
def test_a_tag_makes_no_number_of_what_is_none(number):
    with pytest.raises(UserError, match=r"line 1: '.*' is no decimal number"):
        parse(f"repeats: {number}\n", "study.yaml")


def test_a_quoted_merge_is_a_key_like_any_other():
    with pytest.raises(UserError, match="line 1: key '<<' is a duplicate"):
        parse('"<<": 1\n"<<": 2\n', "study.yaml")
