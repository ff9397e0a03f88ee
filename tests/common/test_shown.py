"""Durations in words."""

from dp_leakage.common.shown import duration


def test_a_duration_is_rounded_in_its_own_unit():
    assert [duration(s) for s in (0.04, 9.96, 59.4, 59.8, 60, 3599.7, 7500)] == [
        "0.0 s", "10 s", "59 s", "1 min 0 s", "1 min 0 s", "1 h 0 min", "2 h 5 min"
    ]  # fmt: skip
