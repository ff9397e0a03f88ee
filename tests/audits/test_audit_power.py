"""The computed power of an audit against simulated audits with planted scores."""

import numpy as np
import pytest

from dp_leakage.audits import approximate_dp, gaussian_dp
from dp_leakage.audits.claims import gaussian_mu
from dp_leakage.audits.designs import bound
from dp_leakage.audits.power import FAULTS, LEAST, MOST, chances, faulty, fewest_right, models_for, power

DELTA, AUDITS = 1e-5, 400
CASES = [  # design, coins, claim, share, ε
    ("many_runs", 170, gaussian_dp(DELTA), 1.0, 4.0),
    ("many_runs", 80, gaussian_dp(DELTA), 1.0, 4.0),
    ("many_runs", 500, gaussian_dp(DELTA), 0.5, 2.0),
    ("one_run", 400, gaussian_dp(DELTA), 0.25, 1.0),
    ("many_runs", 600, approximate_dp(0.0), 0.25, 1.0),
]


def refuted(design, coins, claim, share, epsilon, mu, rng):
    """How many of the simulated audits refute, whose scores are N(±μ/2, 1)."""
    found = 0
    for _ in range(AUDITS):
        held = rng.random(coins) < 0.5
        scores = rng.normal(size=coins) + np.where(held, mu / 2, -mu / 2)
        found += bound(design, scores, held, claim, 0.95, share, 0).epsilon > epsilon
    return found / AUDITS


@pytest.mark.parametrize(("design", "coins", "claim", "share", "epsilon"), CASES)
def test_the_power_is_that_of_simulated_audits(design, coins, claim, share, epsilon):
    # 4 standard errors of 400 audits are at most .10; the seed is fixed.
    rng = np.random.default_rng(1)
    for times in (1.8, 2.5):
        mu = times * gaussian_mu(epsilon, DELTA)
        expected = power(design, coins, claim, epsilon, 0.95, share, faulty(epsilon, DELTA, times))
        assert refuted(design, coins, claim, share, epsilon, mu, rng) == pytest.approx(expected, abs=0.1)


def test_a_correct_training_is_refuted_with_a_chance_of_at_most_5_percent():
    for design, coins, claim, share, epsilon in CASES:
        assert power(design, coins, claim, epsilon, 0.95, share, claim.curve(epsilon)) <= 0.05


@pytest.mark.parametrize(("design", "coins", "claim", "share", "epsilon"), CASES)
def test_one_guess_less_does_not_refute(design, coins, claim, share, epsilon):
    right = fewest_right(design, coins, claim, epsilon, 0.95, share)
    guesses = 2 * max(int(share * coins / 2), 1)
    for count, more in ((right, True), (right - 1, False)):
        held = np.arange(coins) % 2 == 0
        scores = np.where(held, 1.0, -1.0) * np.arange(1, coins + 1)
        order = np.argsort(scores)
        surest = np.concatenate([order[: guesses // 2], order[len(order) - guesses // 2 :]])
        coins_said = held.copy()
        coins_said[surest[: guesses - count]] ^= True
        assert (bound(design, scores, coins_said, claim, 0.95, share, 0).epsilon > epsilon) == more


def test_the_chosen_number_of_models_finds_every_fault_and_a_tenth_less_misses_one():
    for epsilon in (1.0, 2.0, 4.0):
        models = models_for(gaussian_dp(DELTA), epsilon, 0.95, 1.0)
        found = chances("many_runs", models, gaussian_dp(DELTA), epsilon, 0.95, 1.0)
        assert set(found) == set(FAULTS)
        assert min(found.values()) >= 0.95
        fewer = chances("many_runs", int(0.85 * models), gaussian_dp(DELTA), epsilon, 0.95, 1.0)
        assert min(fewer.values()) < 0.95


def test_a_fault_out_of_reach_asks_for_no_more_models():
    # Nothing but (ε, δ)-DP: half of the noise never shows, a batch that is clipped as one does.
    claim = approximate_dp(DELTA)
    models = models_for(claim, 1.0, 0.95, 0.25)
    assert LEAST < models < MOST
    assert max(chances("many_runs", models, claim, 1.0, 0.95, 0.25).values()) >= 0.95
