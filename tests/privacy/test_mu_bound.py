"""The one Gaussian that bounds a whole trade-off curve, and what it gives away."""

import numpy as np
import pytest
from scipy.optimize import minimize_scalar

from dp_leakage.privacy.accounting.curve import proven_curve
from dp_leakage.privacy.accounting.tradeoff import SMALLEST, epsilon_delta, gaussian
from dp_leakage.privacy.mechanism import Mechanism
from dp_leakage.privacy.training import Training

FPR = np.concatenate([np.geomspace(SMALLEST, 0.5, 5000), 1 - np.geomspace(0.5, 1e-6, 500)])
SUBSAMPLED = Training(Mechanism(sampler="poisson", noise_multiplier=1.1), 10, 50, 800)
CURVES = {
    "subsampled": lambda: proven_curve(SUBSAMPLED, "add_remove"),
    "pure": lambda: epsilon_delta(1.0, 0.0),
}


@pytest.mark.parametrize("name", ["subsampled", "pure"])
def test_the_gaussian_of_mu_bound_lies_on_or_above_the_whole_curve_and_a_little_less_does_not(name):
    curve = CURVES[name]()
    mu = curve.mu_bound
    assert np.isfinite(mu)
    assert mu >= curve.mu - 1e-12
    assert (gaussian(mu).tpr(FPR) >= curve.tpr(FPR) - 1e-12).all()
    assert (gaussian(0.99 * mu).tpr(FPR) < curve.tpr(FPR)).any()


def test_of_gaussian_noise_it_is_its_own_mu_and_gives_nothing_away():
    for mu in (0.1, 1.0, 4.0):
        curve = gaussian(mu)
        assert curve.mu_bound == pytest.approx(mu, rel=1e-9)
        assert curve.regret == 0.0


@pytest.mark.parametrize("curve", [epsilon_delta(100.0, 0.0), epsilon_delta(22.0, 0.0), gaussian(60.0), gaussian(14.0)])
def test_a_curve_that_proves_next_to_nothing_has_a_large_mu(curve):
    assert curve.mu_bound > 10
    assert np.isnan(curve.regret) or 0 <= curve.regret < 1e-6


def test_mu_by_the_advantage_alone_would_be_too_small():
    curve = CURVES["subsampled"]()
    assert (gaussian(curve.mu).tpr(FPR) < curve.tpr(FPR)).any()


def test_no_gaussian_bounds_a_curve_that_identifies_some_at_a_rate_of_0():
    curve = epsilon_delta(1.0, 1e-5)
    assert curve.mu_bound == np.inf
    assert np.isnan(curve.regret)


@pytest.mark.parametrize("name", ["subsampled", "pure"])
def test_the_regret_is_the_largest_difference_of_bayes_errors(name):
    curve = CURVES[name]()
    bound = gaussian(curve.mu_bound)

    def error(of, prior):
        found = [
            minimize_scalar(
                lambda fpr: prior * fpr + (1 - prior) * (1 - float(of.tpr(fpr))), bounds=ends, method="bounded",
                options={"xatol": 1e-9},
            ).fun
            for ends in ((1e-9, 0.1), (0.1, 0.5), (0.5, 1 - 1e-9))
        ]  # fmt: skip
        return min(*found, prior, 1 - prior)

    gap = max(error(curve, prior) - error(bound, prior) for prior in np.linspace(0.01, 0.99, 99))
    assert curve.regret == pytest.approx(gap, abs=2e-4)
    assert 0 < curve.regret < 0.2
