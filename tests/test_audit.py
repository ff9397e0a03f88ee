"""Lower bounds on ε: published values, exact coverage, and bugs that they must find."""

import numpy as np
import pytest
from scipy.special import ndtr
from scipy.stats import binom, binomtest

from dp_leakage.audit import (
    corrected,
    gaussian_bound,
    one_run_bound,
    one_run_p_value,
    rates_bound,
    trials_bound,
)
from dp_leakage.errors import UserError
from dp_leakage.privacy.accounting.library import gaussian_epsilon


def test_rates_bound_is_the_papers_inequality_at_clopper_pearson_ends():
    low = binomtest(60, 100).proportion_ci(method="exact").low
    high = binomtest(5, 100).proportion_ci(method="exact").high
    assert rates_bound(60, 100, 5, 100, 1e-5) == pytest.approx(np.log((low - 1e-5) / high))
    assert rates_bound(95, 100, 40, 100, 1e-5) == pytest.approx(rates_bound(60, 100, 5, 100, 1e-5))


def test_a_useless_test_bounds_nothing():
    assert rates_bound(50, 100, 50, 100, 0.0) == 0
    assert rates_bound(0, 100, 100, 100, 0.0) == 0
    assert gaussian_bound(0, 100, 100, 100, 1e-5) == 0


def test_the_best_that_n_trials_can_show_is_finite():
    """With all of 500 + 500 right, the bound is ln(low/high) of Clopper–Pearson at 0.025: 4.9."""
    assert rates_bound(500, 500, 0, 500, 0.0) == pytest.approx(np.log(0.025 ** (1 / 500) / (1 - 0.025 ** (1 / 500))))


def test_the_gaussian_bound_is_the_tighter_one_and_exact_for_a_sharp_count():
    n, mu, delta = 10**7, 1.0, 1e-5
    hits, alarms = int(n * ndtr(mu - 1.0)), int(n * ndtr(-1.0))
    tight = float(gaussian_bound(hits, n, alarms, n, delta))
    assert tight == pytest.approx(gaussian_epsilon(1 / mu, delta, 1), rel=0.01)
    assert tight > float(rates_bound(hits, n, alarms, n, delta))


@pytest.mark.parametrize("bound", [rates_bound, gaussian_bound])
@pytest.mark.parametrize("mu", [0.0, 0.5, 2.0])
def test_trials_of_a_gaussian_mechanism_stay_below_its_epsilon(mu, bound):
    """Exact claim: the bound exceeds ε in at most 5 % of audits; of 300, more than 26 happen once in 1,000 runs."""
    rng, delta = np.random.default_rng(int(10 * mu)), 1e-3
    claimed = gaussian_epsilon(1 / mu, delta, 1) if mu else 0.0
    found = np.array([
        trials_bound(rng.normal(mu, 1, 200), rng.normal(0, 1, 200), delta, seed, bound=bound).epsilon
        for seed in range(300)
    ])  # fmt: skip
    assert (found > claimed).sum() <= 26
    if mu == 2.0:
        assert np.median(found) > 1  # and they are not empty statements


def test_trials_find_that_the_noise_was_forgotten():
    rng = np.random.default_rng(0)
    found = trials_bound(rng.normal(1, 0.01, 200), rng.normal(0, 0.01, 200), 1e-5, seed=0)
    assert found.epsilon > 3
    assert found.right == found.guesses == 200


def test_the_threshold_is_chosen_on_models_that_are_not_counted():
    """Scores that carry nothing: choosing and counting on the same models would refute ε = 0 much too often."""
    rng = np.random.default_rng(1)
    found = [trials_bound(rng.normal(size=40), rng.normal(size=40), 0.0, s, confidence=0.9).epsilon for s in range(400)]
    assert np.mean(np.array(found) > 0) <= 0.1 + 3 * np.sqrt(0.09 / 400)


def test_trials_need_two_models_on_each_side():
    with pytest.raises(UserError, match="at least 2 models"):
        trials_bound(np.zeros(1), np.zeros(5), 0.0, 0)


def slow_p_value(m, guesses, right, epsilon, delta):
    q = 1 / (1 + np.exp(-epsilon))
    tail = sum(binom.pmf(k, guesses, q) for k in range(right, guesses + 1))
    steepest = max(sum(binom.pmf(right - j, guesses, q) for j in range(1, i + 1)) / i for i in range(1, right + 1))
    return min(1.0, tail + 2 * m * delta * steepest)


@pytest.mark.parametrize(("guesses", "right"), [(100, 75), (40, 40), (10, 1), (100, 50)])
@pytest.mark.parametrize("epsilon", [0.0, 0.5, 4.0])
def test_the_one_run_p_value_equals_the_sum_as_written(guesses, right, epsilon):
    for delta in (0.0, 1e-4):
        expected = slow_p_value(1000, guesses, right, epsilon, delta)
        assert one_run_p_value(1000, guesses, right, epsilon, delta) == pytest.approx(expected, rel=1e-9)


def test_the_one_run_bound_gives_the_value_printed_in_the_paper():
    """Steinke, Nasr & Jagielski 2023, appendix D: m = 1000, 100 guesses, 75 right, δ = 1e-4, 95 %: 0.673."""
    included = np.zeros(1000, dtype=bool)
    included[-50:] = True
    included[-25:] = False  # the top 50 guesses: 25 right; the bottom 50: all right
    found = one_run_bound(np.arange(1000.0), included, 1e-4, guesses=100)
    assert (found.right, found.guesses) == (75, 100)
    assert found.epsilon == pytest.approx(0.673, abs=5e-4)


@pytest.mark.parametrize("epsilon", [0.0, 1.0, 3.0])
def test_one_run_of_randomised_response_stays_below_its_epsilon(epsilon):
    """Each canary's coin is shown rightly with odds e^ε; of 400 audits more than 34 above ε happen once in 1,000."""
    rng, found = np.random.default_rng(4), []
    for _ in range(400):
        included = rng.random(200) < 0.5
        shown = included ^ (rng.random(200) < 1 / (1 + np.exp(epsilon)))
        found.append(one_run_bound(shown + 0.1 * rng.random(200), included, 0.0, guesses=200).epsilon)
    assert (np.array(found) > epsilon).sum() <= 34
    if epsilon == 3.0:
        assert np.median(found) > 2


def test_a_delta_of_one_in_m_lets_the_one_run_audit_say_less():
    included = np.arange(100) >= 50
    bounds = [one_run_bound(np.arange(100.0), included, delta, 100).epsilon for delta in (0.0, 1e-4, 1e-2)]
    assert bounds[0] > bounds[1] > bounds[2]


def test_guesses_must_be_even_and_no_more_than_canaries():
    for guesses in (0, 3, 12):
        with pytest.raises(UserError, match="even number from 2 to 10"):
            one_run_bound(np.zeros(10), np.ones(10, dtype=bool), 0.0, guesses)


def test_bonferroni():
    assert corrected(0.95, 10) == pytest.approx(0.995)
