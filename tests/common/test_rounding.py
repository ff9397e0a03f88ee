"""Limits are never stated better than they are, but for the noise of a search."""

from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dp_leakage.common.rounding import SLACK, decimals_down, decimals_up, rounded_down, rounded_up

VALUES = st.floats(1e-12, 1e12)
DIGITS = st.integers(1, 17)


@pytest.mark.parametrize(
    ("value", "up", "down"),
    [
        (10.0000001, "10", "10"),
        (9.9999999, "10", "10"),
        (1.0049, "1.01", "1"),
        (2.0049, "2.01", "2"),
        (1.995, "2", "1.99"),
        (0.0012345, "0.00124", "0.00123"),
        (57123, "57200", "57100"),
        (9.991, "10", "9.99"),
        (1234567, "1.24e+06", "1.23e+06"),
        (0.0, "0", "0"),
        (float("inf"), "inf", "inf"),
        (float("nan"), "nan", "nan"),
    ],
)
def test_three_digits_of_a_limit(value, up, down):
    assert (rounded_up(value, 3), rounded_down(value, 3)) == (up, down)


@pytest.mark.parametrize(
    ("value", "places", "up", "down"),
    [
        (2.049, 1, "2.1", "2.0"),
        (100 * 0.07, 1, "7.0", "7.0"),
        (1e-9, 3, "0.001", "0.000"),
        (0.1 + 1e-9, 3, "0.100", "0.100"),
        (1e22, 1, "10000000000000000000000.0", "10000000000000000000000.0"),
        (float("inf"), 3, "inf", "inf"),
    ],
)
def test_places_behind_the_point(value, places, up, down):
    assert (decimals_up(value, places), decimals_down(value, places)) == (up, down)


@given(VALUES, DIGITS)
def test_a_limit_is_never_stated_better_than_it_is_and_has_no_more_digits_than_asked(value, digits):
    up, down = rounded_up(value, digits), rounded_down(value, digits)
    assert float(up) >= value * (1 - SLACK)
    assert float(down) <= value * (1 + SLACK)
    unit = 10.0 ** (Decimal(value).adjusted() - digits + 1)
    assert float(up) - float(down) <= unit * 1.001 + 1e-15 * value
    for text in (up, down):
        assert len(Decimal(text).normalize().as_tuple().digits) <= digits


@given(VALUES, st.integers(0, 6))
def test_so_does_one_with_places_behind_the_point(value, places):
    up, down = decimals_up(value, places), decimals_down(value, places)
    assert float(up) >= value * (1 - SLACK)
    assert float(down) <= value * (1 + SLACK)
    assert all(len(text.partition(".")[2]) == places for text in (up, down))


@given(VALUES, st.integers(1, 6))
def test_without_slack_no_noise_is_forgiven(value, digits):
    assert float(rounded_up(value, digits, slack=0)) >= value >= float(rounded_down(value, digits, slack=0))
