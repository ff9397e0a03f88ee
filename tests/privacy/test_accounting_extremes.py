"""Little noise, vast budgets, many steps: bounded work, and never below the truth."""

import tracemalloc
from math import exp, expm1, log1p, sqrt

import numpy as np
import pytest
from asked import epsilon_spent, noise_multiplier
from dp_accounting import get_epsilon_gaussian
from hypothesis import given, settings
from hypothesis import strategies as st

from dp_leakage.privacy.accounting import amplified, library, renyi
from dp_leakage.privacy.command import main

TRAINING = {"delta": 1e-5, "epochs": 100, "batch_size": 200, "dataset_size": 10_000}
RATES = (1e-9, 1e-5, 0.02, 0.5, 0.999)


@pytest.fixture
def memory():
    """Peak of what was allocated since, in MB."""
    tracemalloc.start()
    yield lambda: tracemalloc.get_traced_memory()[1] / 1e6
    tracemalloc.stop()


@pytest.mark.parametrize("rate", RATES)
@pytest.mark.parametrize("replace", [False, True])
def test_where_quadrature_serves_the_closed_bound_is_the_same_and_never_below(rate, replace):
    orders = 1 + np.geomspace(5e-4, 1, 60)
    for sigma in (0.05, 0.06):
        exact = (renyi.replaced_gaussian if replace else renyi.poisson_gaussian)(rate, sigma, orders)
        bound = renyi._apart(rate, sigma, replace, orders)
        assert np.all(bound >= exact * (1 - 1e-12))
        assert bound == pytest.approx(exact, rel=1e-9)


@given(st.floats(-6, -1.31), st.floats(-9, -1e-3))
@settings(deadline=None)
def test_the_divergence_of_order_two_has_a_closed_form(log_sigma, log_rate):
    """E[w²] = 1 + q²(e^{1/σ²} − 1)."""
    sigma, rate = 10**log_sigma, 10**log_rate
    (found,) = renyi._divergence(rate, sigma, False, np.array([2.0]))
    power = 1 / sigma**2 + 2 * np.log(rate)
    exact = log1p(rate**2 * expm1(1 / sigma**2)) if 1 / sigma**2 < 500 else max(power, 0) + log1p(exp(-abs(power)))
    assert found == pytest.approx(exact, rel=1e-9)
    assert found >= exact * (1 - 1e-12)


def test_the_least_noise_costs_no_more_memory_than_any_other(memory):
    """A grid fine enough for quadrature took 3.7 GiB at 1e-4."""
    spent = [epsilon_spent("rdp", noise_multiplier=sigma, **TRAINING) for sigma in (1e-8, 1e-4, 1e-3, 0.04)]
    assert memory() < 20
    assert spent == sorted(spent, reverse=True)
    # T steps without sampling are one with σ/√T: sampling cannot make them worse.
    for sigma, epsilon in zip((1e-8, 1e-4, 1e-3, 0.04), spent, strict=True):
        assert epsilon <= 1.02 * get_epsilon_gaussian(sigma / sqrt(5000), 1e-5)


def test_budgets_beyond_ten_thousand_are_met_without_a_large_grid(memory):
    found = [noise_multiplier("rdp", epsilon=epsilon, **TRAINING) for epsilon in (1e4, 1e5, 1e7)]
    assert memory() < 60
    for sigma, epsilon in zip(found, (1e4, 1e5, 1e7), strict=True):
        assert epsilon * (1 - 2e-6) <= epsilon_spent("rdp", noise_multiplier=sigma, **TRAINING) <= epsilon


def test_every_accountant_answers_for_a_vast_budget(capsys):
    asked = ["--epochs", "100", "--batch-size", "200", "--dataset-size", "10000", "--all"]
    assert main(["sigma", "--epsilon", "1e5", *asked]) == 0
    assert main(["epsilon", "--noise-multiplier", "1e-4", *asked]) == 0
    assert "pld" in capsys.readouterr().out


def test_a_delta_that_needs_no_noise_is_said_in_a_sentence(capsys):
    """A record is in no batch with a chance of e⁻¹, so δ = 0.9 holds without any noise."""
    asked = ["--delta", "0.9", "--epochs", "1", "--batch-size", "10", "--dataset-size", "60000"]
    assert main(["sigma", "--epsilon", "1", "--sampler", "wor", "--neighbors", "replace_one", *asked, "--all"]) == 0
    assert "epsilon: even noise of 1e-100 stays below 1, so there is no least noise" in capsys.readouterr().out


def test_epsilon_is_continuous_where_the_closed_bound_takes_over():
    for accountant in ("rdp", "pld"):
        below, above = (
            epsilon_spent(accountant, noise_multiplier=renyi.SMALL * factor, **TRAINING)
            for factor in (1 - 1e-9, 1 + 1e-9)
        )
        assert below == pytest.approx(above, rel=2e-4)


def test_composing_in_turns_is_composing_at_once(monkeypatch):
    asked = {"rate": 1e-3, "sigma": 1.0, "delta": 1e-5, "steps": 50_000, "neighbors": "add_remove"}
    at_once = library.pld_epsilon(**asked)
    monkeypatch.setattr(library, "AT_ONCE", 300)
    assert library.pld_epsilon(**asked) == pytest.approx(at_once, rel=1e-5)


def test_twenty_million_steps_lie_between_their_limit_and_the_renyi_bound(memory):
    """The limit of many steps is Gaussian with μ = q √(T(e^{1/σ²} − 1)) (Bu et al. 2020), a little too small."""
    training = {"delta": 1e-5, "epochs": 100, "batch_size": 5, "dataset_size": 1_000_000}
    found = epsilon_spent("pld", noise_multiplier=1.0, **training)
    assert memory() < 500
    limit = get_epsilon_gaussian(1 / (5e-6 * sqrt(2e7 * expm1(1))), 1e-5)
    assert limit < found < epsilon_spent("rdp", noise_multiplier=1.0, **training)
    assert found < 1.2 * limit


def test_more_steps_than_can_be_composed_have_the_renyi_bound():
    training = {"delta": 1e-5, "epochs": 1_000_000_000, "batch_size": 10, "dataset_size": 10_000}
    of_pld, of_rdp = (epsilon_spent(name, noise_multiplier=100.0, **training) for name in ("pld", "rdp"))
    assert of_pld == of_rdp


@pytest.mark.parametrize(("neighbors", "apart"), [("add_remove", 1), ("replace_one", 2)])
def test_a_loss_distribution_without_sampling_is_exact(neighbors, apart):
    training = {"delta": 1e-5, "epochs": 400, "batch_size": 50, "dataset_size": 50}
    found = epsilon_spent("pld", noise_multiplier=30.0, sampler="poisson", neighbors=neighbors, **training)
    assert found == pytest.approx(get_epsilon_gaussian(30 / apart / sqrt(400), 1e-5), rel=1e-9)


@pytest.mark.parametrize("epsilon", [1e6, 1e9, 1e12, 1e100])
@pytest.mark.parametrize("delta", [1e-300, 1e-5, 0.5])
def test_the_exact_gaussian_noise_of_a_vast_budget_spends_it(epsilon, delta):
    sigma = library.gaussian_sigma(epsilon, delta, 100)
    assert library.gaussian_epsilon(sigma, delta, 100) == pytest.approx(epsilon, rel=1e-6)


def test_advanced_composition_answers_for_little_noise():
    found = [amplified.advanced_epsilon(0.02, sigma, 1e-5, 5000) for sigma in (1e-4, 0.01, 0.1, 1.0)]
    assert np.all(np.isfinite(found))
    assert found == sorted(found, reverse=True)
