"""Numbers in bold sentences: two digits, and never on the other side of a limit."""

from math import nan

import pytest

from dp_leakage.table.looks import LOOKS, Series, defense_label
from dp_leakage.table.numbers import at_most_beside, rounded


@pytest.mark.parametrize(
    ("value", "limit", "decimals", "text"),
    [
        (0.1234, 1.0, 3, "0.12"),
        (0.0983, 0.1, 3, "0.098"),
        (0.1002, 0.1, 3, "0.1002"),
        (0.09996, 0.1, 3, "0.09996"),
        (0.1, 0.1, 3, "0.1"),
        (9.96, 10, 1, "9.96"),
        (12.8, 10, 1, "13"),
        (50.0, 10, 1, "50"),
        (0.34, 10, 1, "0.3"),
        (0.0, 0.1, 3, "0"),
        (-0.02, 0.1, 3, "−0.02"),
        (nan, 0.1, 3, "–"),
    ],
)
def test_a_number_has_two_digits_and_stays_on_its_side_of_a_limit(value, limit, decimals, text):
    assert rounded(value, limit, decimals) == text


@pytest.mark.parametrize(
    ("value", "limit", "text"),
    [(0.0975, 0.1, "0.098"), (0.142, 0.2, "0.15"), (0.142, 0.145, "0.142"), (0.615, 0.1, "0.62"), (0.1, 0.1, "0.1")],
)
def test_an_upper_bound_is_rounded_up_but_not_above_a_limit_that_it_keeps(value, limit, text):
    assert at_most_beside(value, limit) == text


def test_a_defense_is_called_without_its_accountant():
    assert defense_label(Series("gaussian", "rdp")) == defense_label(Series("gaussian", "zcdp")) == "DP-SGD"
    assert defense_label(Series("vmf", "vmf_pld")) == "VMF"
    assert defense_label(Series("claimed", "claimed")) == "private, as its library claims"
    assert defense_label(Series("none")) == "no defense"
    assert defense_label(Series("gaussian", "rdp", "batch")) == "DP-SGD, batch clipping"
    for mechanism, accountant in LOOKS:
        assert "RDP" not in defense_label(Series(mechanism, accountant))
