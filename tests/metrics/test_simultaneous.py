"""Intervals that hold together: against scipy's own at the farther level, and by simulation."""

import numpy as np
import pytest
from scipy.stats import binomtest, norm, t

from dp_leakage.metrics.intervals import Estimate, Z, over_repeats, wilson
from dp_leakage.metrics.simultaneous import simultaneous


@pytest.mark.parametrize("comparisons", [2, 19, 400])
@pytest.mark.parametrize(("right", "n"), [(0, 50), (1, 50), (30, 50), (890, 997), (997, 997)])
def test_a_proportion_gets_wilsons_interval_at_the_farther_level(right: int, n: int, comparisons: int) -> None:
    found = simultaneous(wilson(right / n, n), comparisons, (0.0, 1.0))
    level = 1 - 0.05 / comparisons
    expected = binomtest(right, n).proportion_ci(level, method="wilson")
    assert found[1:] == pytest.approx((expected.low, expected.high), abs=1e-9)


def test_in_another_range_it_is_the_same_scaled() -> None:
    share = wilson(0.6, 200)
    advantage = Estimate(*(2 * end - 1 for end in share))
    held = simultaneous(share, 30, (0.0, 1.0))
    assert simultaneous(advantage, 30, (-1.0, 1.0)) == pytest.approx(tuple(2 * end - 1 for end in held))


def test_one_comparison_an_unknown_number_or_an_exact_one_stay_as_they_are() -> None:
    for estimate, comparisons in (
        (Estimate(0.5, 0.4, 0.6), 1),
        (Estimate(float("nan"), 0.0, 1.0), 9),
        (Estimate(0.5, 0.5, 0.5), 9),
    ):
        assert simultaneous(estimate, comparisons, (0.0, 1.0)) is estimate


def test_few_repeats_that_differ_widen_more_than_a_normal_would() -> None:
    values = np.array([0.5, 0.52, 0.48, 0.51])
    estimate = over_repeats(wilson(0.5, 1e6), values)  # nearly all from the repeats
    held = simultaneous(estimate, 10, (0.0, 1.0), values)
    factor = (held.high - held.low) / (estimate.high - estimate.low)
    student = t.ppf(1 - 0.0025, 3) / t.ppf(0.975, 3)
    assert factor == pytest.approx(student, rel=0.25)
    assert factor > 1.2 * norm.ppf(1 - 0.0025) / Z


def test_all_of_twenty_hold_together_in_at_least_95_percent() -> None:
    """500 studies of 20 cells, 4 repeats on 300 records: false alarm of this test below one in ten thousand."""
    rng = np.random.default_rng(5)
    truth, sd = rng.uniform(0.05, 0.95, 20), 0.02
    held = 0
    studies = 500
    for _ in range(studies):
        models = np.clip(truth + sd * rng.standard_normal((4, 20)), 0.001, 0.999)
        values = rng.binomial(300, models) / 300
        inside = True
        for cell in range(20):
            own = values[:, cell]
            found = simultaneous(over_repeats(wilson(own.mean(), 300), own), 20, (0.0, 1.0), own)
            inside &= found.low <= truth[cell] <= found.high
        held += inside
    assert held >= studies * 0.95 - 3.8 * np.sqrt(studies * 0.95 * 0.05)
