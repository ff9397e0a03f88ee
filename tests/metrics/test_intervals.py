"""Intervals against published examples, scipy, and simulated coverage."""

import sys
from pathlib import Path

import numpy as np
import pytest
from scipy import stats

from dp_leakage.metrics.intervals import (
    Estimate,
    Influences,
    Z,
    crossed,
    crossed_difference,
    difference,
    influences_of_mean,
    layout,
    mean_in_unit_range,
    mean_of_fractions,
    over_repeats,
    ratio,
    widen,
    wilson,
)

sys.path.append(str(Path(__file__).parents[2] / "benchmarks"))
from interval_coverage import RECORDS, SHARES, covered_mean

COUNTS = [(0, 1), (1, 1), (0, 50), (3, 50), (25, 50), (50, 50), (9_999, 10_000)]


@pytest.mark.parametrize(("k", "n"), COUNTS)
def test_wilson_equals_scipys(k, n):
    oracle = stats.binomtest(k, n).proportion_ci(method="wilson")
    assert wilson(k / n, n)[1:] == pytest.approx((oracle.low, oracle.high), abs=1e-12)


@pytest.mark.parametrize(
    ("a", "m", "b", "n", "low", "high"),
    [  # Newcombe 1998, table II, method 10
        (56, 70, 48, 80, 0.0524, 0.3339),
        (9, 10, 3, 10, 0.1705, 0.8090),
        (6, 7, 2, 7, 0.0582, 0.8062),
        (5, 56, 0, 29, -0.0381, 0.1926),
        (0, 10, 0, 20, -0.1611, 0.2775),
        (10, 10, 0, 20, 0.6791, 1.0),
    ],
)
def test_difference_of_wilson_intervals_is_newcombes(a, m, b, n, low, high):
    estimate = difference(wilson(a / m, m), wilson(b / n, n))
    assert estimate.value == pytest.approx(a / m - b / n)
    assert estimate[1:] == pytest.approx((low, high), abs=6e-5)


def test_difference_of_fully_correlated_equal_estimates_is_certain():
    a = wilson(0.5, 30)
    assert difference(a, a, correlation=1.0) == pytest.approx((0.0, 0.0, 0.0), abs=1e-12)


def test_mean_of_fractions_is_wilson_for_booleans_and_narrower_for_fractions():
    flags = np.arange(40) < 12
    assert mean_of_fractions(flags) == pytest.approx(wilson(0.3, 40))
    fractions = np.full(40, 0.3) + np.tile([-0.1, 0.1], 20)
    assert mean_of_fractions(fractions).low > wilson(0.3, 40).low


def test_values_without_spread_count_as_many_records_as_there_are():
    assert mean_of_fractions(np.full(10, 0.4)) == pytest.approx(wilson(0.4, 10))
    assert mean_in_unit_range(1.0, 0.0, 7) == wilson(1.0, 7)


def test_no_records_know_nothing():
    assert mean_of_fractions(np.array([]))[1:] == (0.0, 1.0)


@pytest.mark.parametrize("a", [0.3, 0.01, -0.2])
@pytest.mark.parametrize("correlation", [0.0, 0.6, -0.9])
def test_ratio_equals_fieller_for_symmetric_intervals(a, correlation):
    sa, b, sb = 0.02, 0.5, 0.03
    estimate = ratio(Estimate(a, a - Z * sa, a + Z * sa), Estimate(b, b - Z * sb, b + Z * sb), correlation)
    # Fieller: the ratios r with (a − r b)² = z² (sa² + r² sb² − 2 r · correlation · sa sb)
    linear = -2 * (a * b - Z**2 * correlation * sa * sb)
    roots = np.sort(np.roots([b**2 - Z**2 * sb**2, linear, a**2 - Z**2 * sa**2]))
    assert estimate[1:] == pytest.approx(tuple(roots), rel=1e-12)


def test_ratio_to_something_that_may_be_nothing_has_no_upper_end():
    assert ratio(Estimate(0.2, 0.1, 0.3), Estimate(0.01, 0.0, 0.05)).high == np.inf
    assert np.isnan(ratio(Estimate(0.2, 0.1, 0.3), Estimate(0.0, 0.0, 0.05)).value)


def test_widen_adds_in_quadrature_and_stays_in_limits():
    wide = widen(Estimate(0.5, 0.47, 0.53), (0.04, 0.04), limits=(0.0, 1.0))
    assert wide == pytest.approx((0.5, 0.45, 0.55))
    assert widen(Estimate(0.99, 0.9, 1.0), (0.0, 0.5), limits=(0.0, 1.0)).high == 1.0


def test_one_repeat_adds_nothing():
    estimate = wilson(0.2, 10)
    assert over_repeats(estimate, np.array([0.2])) == estimate


def test_over_repeats_covers_the_mean_over_records_and_trainings():
    """Crossed effects of records and repeats; 1,000 draws, 0.93 is undercut once in 500 runs at 0.95."""
    rng = np.random.default_rng(20)
    draws, repeats, n, truth = 1000, 5, 200, 0.4
    hits = 0
    for _ in range(draws):
        record, repeat = rng.normal(0, 0.08, n), rng.normal(0, 0.02, repeats)
        values = np.clip(truth + record + repeat[:, None] + rng.normal(0, 0.05, (repeats, n)), 0, 1)
        estimate = over_repeats(mean_of_fractions(values.mean(axis=0)), values.mean(axis=1))
        hits += estimate.low <= truth <= estimate.high
    assert hits / draws >= 0.93


@pytest.mark.parametrize("records", RECORDS)
@pytest.mark.parametrize("repeats", [4, 16])
def test_crossed_intervals_hold_the_truth_in_94_to_97_of_100(repeats, records):
    """400 draws for each of seven shares; 2,800 in all leave .937 or .973 once in 2,000 runs at true .95 and .96."""
    rng = np.random.default_rng(repeats)
    found = np.mean([covered_mean(rng, repeats, 200, shares, records, 400) for shares in SHARES])
    assert 0.937 <= found <= 0.973


@pytest.mark.slow
@pytest.mark.parametrize("records", RECORDS)
@pytest.mark.parametrize(("repeats", "n"), [(r, n) for r in (4, 16, 64) for n in (200, 2_000, 20_000)])
def test_crossed_intervals_hold_the_truth_in_94_to_97_of_100_at_every_size(repeats, n, records):
    """Each share of effects apart; three standard errors of the draws are allowed beside .94 to .97."""
    rng = np.random.default_rng(repeats * n)
    draws = 600 if n > 2000 else 1000
    noise = 3 * np.sqrt(0.05 * 0.95 / draws)
    found = {shares: covered_mean(rng, repeats, n, shares, records, draws) for shares in SHARES}
    assert 0.94 - noise <= min(found.values()), found
    assert max(found.values()) <= 0.97 + noise, found


def test_the_layouts_that_the_simulation_draws_are_spread_as_those_of_whole_tables_are():
    """Of 4,000 drawn both ways: mean of what is left within 1 %, of the rows' and columns' variances within 3 %."""
    repeats, n, rng = 4, 30, np.random.default_rng(0)
    seen = {"drawn": [], "tables": []}

    def kept(value, blocks):
        (block,) = blocks
        seen["drawn"].append((np.var(block.rows), np.var(block.columns), block.left))
        return Estimate(value, value, value)

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr("interval_coverage.over_layouts", kept)
        covered_mean(rng, repeats, n, (1, 2, 3), "normal", 4000)
    for _ in range(4000):
        values = np.sqrt(3 * repeats * n) * rng.normal(size=(repeats, n))
        values += np.sqrt(repeats) * rng.normal(size=(repeats, 1)) + np.sqrt(2 * n) * rng.normal(size=n)
        block = layout(values)
        seen["tables"].append((np.var(block.rows), np.var(block.columns), block.left))
    ours, whole = (np.mean(found, axis=0) for found in seen.values())
    assert ours == pytest.approx(whole, rel=0.04)
    assert np.std(seen["drawn"], axis=0) == pytest.approx(np.std(seen["tables"], axis=0), rel=0.08)


@pytest.mark.parametrize("repeats", [2, 3])
def test_crossed_intervals_over_two_or_three_repeats_hold_the_truth_of_these_models(repeats):
    """At least .93 for each of seven shares; 1,000 draws, false alarm below 1 in 100."""
    rng = np.random.default_rng(repeats)
    found = [covered_mean(rng, repeats, 100, shares, "normal", 1000) for shares in SHARES]
    assert min(found) >= 0.93


@pytest.mark.parametrize("repeats", [2, 3])
def test_intervals_over_two_or_three_repeats_are_no_wider_than_what_their_records_can_show(repeats):
    """Student's t from so few repeats is of no use: an interval for any training was 4 to 14 times as wide."""
    rng = np.random.default_rng(0)
    for _ in range(20):
        values = (rng.random((repeats, 200)) < rng.uniform(0.5, 0.9, (repeats, 1))).astype(float)
        found = crossed(influences_of_mean(values), (0.0, 1.0))
        assert found.high - found.low < 2.2 * Z * np.sqrt(0.25 / 200 / repeats)
        of_records = mean_of_fractions(values.mean(axis=0))
        assert over_repeats(of_records, values.mean(axis=1)) == of_records


@pytest.mark.parametrize("repeats", [1, 4, 16])
def test_crossed_rates_of_rare_events_hold_the_truth(repeats):
    """A few records are named often, most hardly ever; 1,500 draws, .93 is undercut once in 3,000 runs at .95."""
    rng, hits, draws = np.random.default_rng(repeats), 0, 1500
    for _ in range(draws):
        often = np.where(rng.random(500) < 0.05, 0.9, 0.01)
        named = rng.random((repeats, 500)) < often
        found = crossed(influences_of_mean(named.astype(float)), limits=(0.0, 1.0))
        hits += found.low <= 0.05 * 0.9 + 0.95 * 0.01 <= found.high
        assert 0 <= found.low <= found.value <= found.high <= 1
    assert hits / draws >= 0.93


def test_one_repeat_of_many_alike_records_has_students_interval():
    values = np.random.default_rng(0).normal(size=400)
    found = crossed(influences_of_mean(values[None]))
    oracle = stats.t.interval(0.95, 399, values.mean(), stats.sem(values))
    assert found[1:] == pytest.approx(oracle, rel=0.02)


def test_repeats_that_see_equal_records_have_students_interval_over_the_repeats():
    values = np.random.default_rng(1).normal(size=6)
    found = crossed(influences_of_mean(np.repeat(values[:, None], 50, axis=1)))
    assert found[1:] == pytest.approx(stats.t.interval(0.95, 5, values.mean(), stats.sem(values)))


def test_missing_values_leave_the_others_mean():
    values = np.random.default_rng(2).normal(size=(3, 40))
    values[1, :10] = np.nan
    found = crossed(influences_of_mean(values))
    assert found.value == pytest.approx(np.nanmean(values))
    assert found.low < found.value < found.high


def test_paired_records_cancel_in_a_difference():
    rng = np.random.default_rng(3)
    record = 10 * rng.normal(size=300)
    a, b = (influences_of_mean(record + rng.normal(size=(3, 300))) for _ in range(2))
    found = crossed_difference(a, b)
    assert found.high - found.low < 0.2 * (crossed(a).high - crossed(a).low)
    assert crossed_difference(a, Influences(a.value, a.blocks)).value == 0
