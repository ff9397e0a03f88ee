"""Lower bounds on ε: published values, independent sums, stated false positive rates, and how much they find."""

from functools import cache

import numpy as np
import pytest
from dp_accounting import get_epsilon_gaussian
from scipy.special import ndtr
from scipy.stats import binom, binomtest

from dp_leakage.audits import (
    approximate_dp,
    corrected,
    gaussian_dp,
    many_runs_bound,
    many_runs_reach,
    one_run_bound,
    one_run_reach,
    own_curves,
    trials_bound,
    trials_reach,
)
from dp_leakage.audits.claims import gaussian_epsilon, gaussian_mu
from dp_leakage.audits.found import guesses_of, right_guesses
from dp_leakage.audits.many_runs import many_runs_p_value
from dp_leakage.audits.one_run import curve_refuted, one_run_p_value
from dp_leakage.audits.trials import rates_bound
from dp_leakage.common.errors import UserError
from dp_leakage.privacy.accounting.curve import proven_curve
from dp_leakage.privacy.mechanism import Mechanism
from dp_leakage.privacy.training import Training

ANYTHING, GAUSSIAN = approximate_dp(1e-5), gaussian_dp(1e-5)
AUDITS = 2000
# Of 2,000 audits at 95 %, more than 131 above the truth happen once in 1,000 runs.
MOST_ALARMS = int(binom.isf(1e-3, AUDITS, 0.05))
# jax_privacy on 1,000 Gaussian canary scores: μ → (one run by f-DP with a split, many runs by GDP).
JAX_PRIVACY = {1: (1.73, 3.08), 2: (4.40, 8.16), 4: (7.53, 20.2)}
CHOSEN_BY_RATES = {1: 1.82, 2: 6.30, 4: 17.7}  # trials with a threshold chosen for another bound than is counted


def planted(mu, seed, n=1000):
    """Scores of independent canaries: N(μ, 1) where the coin says so, else N(0, 1)."""
    rng = np.random.default_rng(seed)
    included = rng.random(n) < 0.5
    return rng.normal(mu * included, 1.0), included


def entangled(mu, seed, n=1000):
    """Scores of one training that stays μ-GDP for each canary but shows all of them well or all of them badly."""
    rng = np.random.default_rng(seed)
    included = rng.random(n) < 0.5
    sureness = abs(rng.normal(mu / 2, 1)) * mu  # the privacy loss of one outcome of N(±μ/2, 1), for all alike
    truly = rng.random(n) < 1 / (1 + np.exp(-sureness))
    return np.where(included == truly, 1.0, -1.0) + 0.1 * rng.random(n), included


def test_rates_bound_is_the_papers_inequality_at_clopper_pearson_ends():
    low = binomtest(60, 100).proportion_ci(method="exact").low
    high = binomtest(5, 100).proportion_ci(method="exact").high
    assert rates_bound(60, 100, 5, 100, ANYTHING) == pytest.approx(np.log((low - 1e-5) / high))
    assert rates_bound(95, 100, 40, 100, ANYTHING) == pytest.approx(rates_bound(60, 100, 5, 100, ANYTHING))


def test_a_useless_test_bounds_nothing():
    assert rates_bound(50, 100, 50, 100, approximate_dp(0.0)) == 0
    assert rates_bound(0, 100, 100, 100, approximate_dp(0.0)) == 0
    assert rates_bound(0, 100, 100, 100, GAUSSIAN) == 0


def test_the_best_that_n_trials_can_show_is_finite():
    """With all of 500 + 500 right, the bound is ln(low/high) of Clopper–Pearson at 0.025: 4.9."""
    best = np.log(0.025 ** (1 / 500) / (1 - 0.025 ** (1 / 500)))
    assert rates_bound(500, 500, 0, 500, approximate_dp(0.0)) == pytest.approx(best)
    assert trials_reach(1000, 1000, approximate_dp(0.0)) == pytest.approx(best)


def test_the_gaussian_bound_is_the_tighter_one_and_exact_for_a_sharp_count():
    n, mu = 10**7, 1.0
    hits, alarms = int(n * ndtr(mu - 1.0)), int(n * ndtr(-1.0))
    tight = float(rates_bound(hits, n, alarms, n, GAUSSIAN))
    assert tight == pytest.approx(get_epsilon_gaussian(1 / mu, 1e-5), rel=0.01)
    assert tight > float(rates_bound(hits, n, alarms, n, ANYTHING))


@pytest.mark.parametrize("mu", [0.05, 0.3, 1.0, 4.0, 12.0])
def test_epsilon_of_a_gaussian_claim_is_dp_accountings(mu):
    assert gaussian_epsilon(mu, 1e-5) == pytest.approx(get_epsilon_gaussian(1 / mu, 1e-5), rel=1e-6)
    assert gaussian_mu(gaussian_epsilon(mu, 1e-5), 1e-5) == pytest.approx(mu)


@pytest.mark.parametrize("mu", JAX_PRIVACY)
def test_both_designs_find_more_of_planted_gaussian_scores_than_jax_privacy(mu):
    found = {"one": [], "many": [], "trials": []}
    for seed in range(20):
        scores, included = planted(mu, seed)
        found["one"].append(one_run_bound(scores, included, GAUSSIAN).epsilon)
        found["many"].append(many_runs_bound(scores, included, GAUSSIAN).epsilon)
        found["trials"].append(trials_bound(scores[included], scores[~included], GAUSSIAN, seed).epsilon)
    one, many = JAX_PRIVACY[mu]
    assert np.mean(found["one"]) > one
    assert np.mean(found["many"]) > many
    assert np.mean(found["trials"]) > CHOSEN_BY_RATES[mu]


DESIGNS = {
    "one run": lambda scores, included, seed: one_run_bound(scores, included, ANYTHING),
    "one run by f-DP": lambda scores, included, seed: one_run_bound(scores, included, GAUSSIAN),
    "many runs": lambda scores, included, seed: many_runs_bound(scores, included, ANYTHING, share=0.25),
    "many runs by f-DP": lambda scores, included, seed: many_runs_bound(scores, included, GAUSSIAN),
    "many runs by f-DP, half": lambda scores, included, seed: many_runs_bound(scores, included, GAUSSIAN, share=0.5),
    "trials": lambda scores, included, seed: trials_bound(scores[included], scores[~included], ANYTHING, seed),
    "trials by f-DP": lambda scores, included, seed: trials_bound(scores[included], scores[~included], GAUSSIAN, seed),
}


@pytest.mark.parametrize("design", DESIGNS)
@pytest.mark.parametrize("mu", [0.0, 1.0])
def test_a_true_gaussian_claim_is_exceeded_at_the_stated_rate_at_most(design, mu):
    truth = gaussian_epsilon(mu, 1e-5)
    alarms = sum(DESIGNS[design](*planted(mu, seed, n=200), seed).epsilon > truth for seed in range(AUDITS))
    assert alarms <= MOST_ALARMS


def sampled(rate, sigma, steps, seed, n=200):
    """Log-likelihood ratios of n trainings on Poisson batches that release a canary's place with noise, and coins."""
    rng = np.random.default_rng(seed)
    included = rng.random(n) < 0.5
    seen = (rng.random((n, steps)) < rate) * included[:, None] + sigma * rng.normal(size=(n, steps))
    ratio = np.logaddexp((seen - 0.5) / sigma**2 + np.log(rate), np.log1p(-rate))
    return ratio.sum(1), included


@pytest.mark.parametrize("share", [1.0, 0.3])
def test_an_own_curve_that_is_true_is_refuted_at_the_stated_rate_at_most(share):
    """Two Poisson batches of half of the records, against the curve that the accountant draws of them."""
    claim = sampled_claim()
    guesses, alarms = guesses_of(200, share), {"many": 0, "one": 0}
    for seed in range(AUDITS):
        right = right_guesses(*sampled(0.5, 0.8, 2, seed), guesses)
        alarms["many"] += many_runs_p_value(200, guesses, right, claim, 1.0) <= 0.05
        alarms["one"] += curve_refuted(claim.curve(1.0), 200, guesses, right, 0.05)
    assert max(alarms.values()) <= MOST_ALARMS


@cache
def sampled_claim():
    mechanism = Mechanism("poisson", noise_multiplier=0.8)
    proven = proven_curve(Training(mechanism, epochs=1, batch_size=1, dataset_size=2), "add_remove")
    return own_curves("this training", 1e-5, lambda strength: proven.tpr)  # of its own strength alone


@pytest.mark.parametrize("mu", [0.5, 1.0, 2.0])
def test_one_run_holds_where_all_canaries_show_together(mu):
    truth = gaussian_epsilon(mu, 1e-5)
    found = np.array([one_run_bound(*entangled(mu, seed), GAUSSIAN).epsilon for seed in range(AUDITS)])
    assert (found > truth).sum() <= MOST_ALARMS


def test_the_many_runs_test_is_no_more_careful_than_it_must_be():
    """Where a μ-GDP training shows all that it may, the truth is refuted in 5 % of audits: 72 to 131 of 2,000."""
    n, share = 200, 0.5
    error = np.array([
        many_runs_p_value(n, 100, many_runs_bound(*planted(1.0, seed, n), GAUSSIAN, share=share).right, GAUSSIAN,
                          gaussian_epsilon(1.0, 1e-5)) for seed in range(AUDITS)
    ])  # fmt: skip
    assert binom.ppf(1e-3, AUDITS, 0.035) <= (error <= 0.05).sum() <= MOST_ALARMS  # 0.035: counts are whole


@pytest.mark.parametrize("epsilon", [0.0, 1.0, 3.0])
@pytest.mark.parametrize("design", ["one run", "many runs", "trials"])
def test_randomized_response_stays_below_its_epsilon(epsilon, design):
    """Each coin is shown rightly with odds e^ε."""
    rng, found = np.random.default_rng(4), []
    for seed in range(AUDITS):
        included = rng.random(200) < 0.5
        shown = included ^ (rng.random(200) < 1 / (1 + np.exp(epsilon)))
        found.append(DESIGNS[design](shown + 0.1 * rng.random(200), included, seed).epsilon)
    assert (np.array(found) > epsilon).sum() <= MOST_ALARMS
    if epsilon == 3.0:
        assert np.median(found) > 1.5


def test_trials_find_that_the_noise_was_forgotten():
    rng = np.random.default_rng(0)
    found = trials_bound(rng.normal(1, 0.01, 200), rng.normal(0, 0.01, 200), ANYTHING, seed=0)
    assert found.epsilon > 3
    assert found.right == found.guesses == 200


def test_trials_need_two_models_on_each_side():
    with pytest.raises(UserError, match="at least 2 models"):
        trials_bound(np.zeros(1), np.zeros(5), ANYTHING, 0)


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
    found = one_run_bound(np.arange(1000.0), included, approximate_dp(1e-4), share=0.1)
    assert (found.right, found.guesses) == (75, 100)
    assert found.epsilon == pytest.approx(0.673, abs=5e-4)


def slow_refuted(mu, m, guesses, right, error):
    """The recursion of theorem 9 in the closed form of the Gaussian curve, with p_j themselves."""
    from scipy.stats import norm

    p = np.zeros(guesses + 1)
    p[right] = error
    for j in range(right, 0, -1):
        at = np.arange(j, guesses + 1)
        truth, wrong = (at * p[j:]).sum() / m, ((guesses - at) * p[j:]).sum() / m
        least = norm.cdf(norm.ppf(truth) - mu)
        p[j - 1] = max(0.0, (least - wrong) * m / (guesses - j + 1))
    return p.sum() > 1


@pytest.mark.parametrize(("guesses", "right"), [(100, 90), (60, 45), (20, 20), (100, 51)])
def test_the_one_run_curve_bound_is_the_recursion_as_written(guesses, right):
    for mu in np.linspace(0.05, 3, 30):
        expected = slow_refuted(mu, 100, guesses, right, 0.05)
        nearby = {
            curve_refuted(GAUSSIAN.curve(gaussian_epsilon(near, 1e-5)), 100, guesses, right, 0.05)
            for near in (mu * 0.999, mu * 1.001)
        }
        assert expected in nearby


def test_many_runs_that_guess_about_all_test_the_accuracy_of_the_curve():
    """Among all n coins the right guesses of μ-GDP are at best Binomial(n, Φ(μ/2))."""
    truth = binom.sf(139, 200, ndtr(0.5))
    assert many_runs_p_value(200, 200, 140, GAUSSIAN, gaussian_epsilon(1.0, 1e-5)) == pytest.approx(truth, rel=2e-3)


def test_many_runs_that_guess_about_some_agree_with_simulation():
    rng, n, guesses, mu = np.random.default_rng(0), 100, 40, 1.0
    outcomes = rng.normal(mu / 2, 1, (20_000, n))  # the likelier coin is right where this is positive
    sure = np.take_along_axis(outcomes, np.argsort(-abs(outcomes), axis=1)[:, :guesses], 1)
    simulated = ((sure > 0).sum(1) >= 34).mean()
    found = many_runs_p_value(n, guesses, 34, GAUSSIAN, gaussian_epsilon(mu, 1e-5))
    assert found == pytest.approx(simulated, abs=4 * np.sqrt(simulated / 20_000))


def test_a_delta_of_one_in_m_lets_the_one_run_audit_say_less():
    included = np.arange(100) >= 50
    bounds = [
        one_run_bound(np.arange(100.0), included, approximate_dp(delta), share=1.0).epsilon
        for delta in (0.0, 1e-4, 1e-2)
    ]
    assert bounds[0] > bounds[1] > bounds[2]


@pytest.mark.parametrize("claim", [ANYTHING, GAUSSIAN])
def test_what_a_design_can_reach_is_what_perfect_scores_show(claim):
    included = np.arange(300) % 2 == 1
    perfect = included + 0.1 * np.random.default_rng(0).random(300)
    assert one_run_reach(300, claim) == one_run_bound(perfect, included, claim).epsilon
    assert many_runs_reach(300, claim) == many_runs_bound(perfect, included, claim).epsilon
    assert trials_reach(150, 150, claim) == trials_bound(perfect[included], perfect[~included], claim, 0).epsilon


def test_a_bound_that_holds_with_others_can_reach_less():
    assert many_runs_reach(100, GAUSSIAN, corrected(0.95, 100)) < many_runs_reach(100, GAUSSIAN)


def test_the_share_and_the_scores_must_make_sense():
    scores, included = planted(1.0, 0, n=10)
    with pytest.raises(UserError, match="key 'share' is 0; expected a number above 0 and up to 1"):
        one_run_bound(scores, included, ANYTHING, share=0.0)
    with pytest.raises(UserError, match="at least 2 canaries, not 1"):
        many_runs_bound(scores[:1], included[:1], ANYTHING)
    with pytest.raises(UserError, match="one score for every coin"):
        many_runs_bound(scores, included[:9], ANYTHING)
    with pytest.raises(UserError, match="score 3 is NaN"):
        many_runs_bound(np.where(np.arange(10) == 3, np.nan, scores), included, ANYTHING)


def test_bonferroni():
    assert corrected(0.95, 10) == pytest.approx(0.995)
