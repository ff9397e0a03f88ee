"""The ceiling on reconstruction: closed forms, likelihood ratios drawn at random, and an attacker who does his best."""

import re
from math import sqrt

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import logsumexp
from scipy.stats import beta, norm

from dp_leakage.privacy.accounting import tradeoff
from dp_leakage.privacy.accounting.curve import proven_curve
from dp_leakage.privacy.command import main
from dp_leakage.privacy.mechanism import Mechanism
from dp_leakage.privacy.training import Training

DRAWS = 200_000
FALSE_ALARM = 1e-5  # of each comparison with draws
RUN = ["--noise-multiplier", "1.1", "--epochs", "3", "--batch-size", "20", "--dataset-size", "100"]


def curve_of(rate: float, sigma: float, epochs: int) -> tradeoff.TradeOff:
    """Poisson batches of ``rate``, so 1/rate steps in an epoch."""
    curve = proven_curve(
        Training(Mechanism(sampler="poisson", noise_multiplier=sigma), epochs, 1000 * rate, 1000), "add_remove"
    )
    assert curve is not None
    return curve


@pytest.mark.parametrize("guess", [1e-6, 1e-3, 0.01, 0.1, 0.5, 1.0])
@pytest.mark.parametrize("mu", [0.1, 1.0, 3.0])
def test_ceiling_under_full_batches_is_the_closed_form_of_hayes_2023(mu, guess):
    assert tradeoff.gaussian(mu).reconstruction(guess) == pytest.approx(norm.cdf(norm.ppf(guess) + mu), rel=1e-9)


def log_ratios(noise: np.ndarray, rate: float, sigma: float) -> np.ndarray:
    """ln of density with the record over that without it, of steps' sums (draws, steps)."""
    return np.log1p(rate * np.expm1((2 * noise - 1) / (2 * sigma**2))).sum(axis=1)


@pytest.mark.parametrize("guess", [0.01, 0.1])
@pytest.mark.parametrize(("rate", "sigma", "epochs"), [(0.5, 1.0, 1), (0.2, 0.8, 1), (0.1, 0.7, 2)])
def test_ceiling_under_poisson_batches_is_that_of_drawn_likelihood_ratios(rate, sigma, epochs, guess):
    """Algorithm 1 of Hayes, Mahloujifar & Balle (2023), which draws what the curve computes."""
    random, steps = np.random.default_rng(7), round(epochs / rate)
    without = sigma * random.standard_normal((DRAWS, steps))
    present = sigma * random.standard_normal((DRAWS, steps)) + (random.random((DRAWS, steps)) < rate)
    without, present = log_ratios(without, rate, sigma), log_ratios(present, rate, sigma)
    spread = -norm.ppf(FALSE_ALARM / 2) * sqrt(guess * (1 - guess) / DRAWS)
    strict, lenient = np.quantile(without, [1 - (guess - spread), 1 - (guess + spread)])
    least = beta.ppf(FALSE_ALARM / 2, (present > strict).sum(), (present <= strict).sum() + 1)
    most = beta.isf(FALSE_ALARM / 2, (present > lenient).sum() + 1, (present <= lenient).sum())
    found = curve_of(rate, sigma, epochs).reconstruction(guess)
    assert found >= least
    assert found <= 1.1 * most  # the curve holds for both directions, and the other one may be a little above this one


@pytest.mark.parametrize(("candidates", "sigma"), [(2, 1.0), (10, 1.0), (100, 0.5), (100, 2.0)])
def test_no_attacker_picks_the_record_among_candidates_more_often_than_the_ceiling_allows(candidates, sigma):
    """Gradients of the candidates are orthogonal and of length C; the best guess is the largest inner product."""
    random = np.random.default_rng(3)
    sums = sigma * random.standard_normal((20_000, candidates))
    sums[:, 0] += 1
    right = int((sums.argmax(axis=1) == 0).sum())
    ceiling = tradeoff.gaussian(1 / sigma).reconstruction(1 / candidates)
    assert beta.ppf(FALSE_ALARM, right, 20_000 - right + 1) <= ceiling
    assert right / 20_000 > 0.5 * ceiling  # the comparison says something


def test_the_same_attacker_over_steps_with_poisson_batches_stays_below_the_ceiling():
    random, candidates, rate, sigma, steps = np.random.default_rng(4), 10, 0.25, 0.7, 4
    sums = sigma * random.standard_normal((20_000, steps, candidates))
    sums[:, :, 0] += random.random((20_000, steps)) < rate
    ratios = logsumexp([np.log(1 - rate) + 0 * sums, np.log(rate) + (2 * sums - 1) / (2 * sigma**2)], axis=0)
    right = int((ratios.sum(axis=1).argmax(axis=1) == 0).sum())
    ceiling = curve_of(rate, sigma, 1).reconstruction(1 / candidates)
    assert beta.ppf(FALSE_ALARM, right, 20_000 - right + 1) <= ceiling
    assert right / 20_000 > 0.5 * ceiling


@settings(max_examples=30, deadline=None)
@given(guess=st.floats(1e-6, 1), more=st.floats(1e-6, 1), mu=st.floats(0.01, 6), larger=st.floats(1, 3))
def test_ceiling_rises_with_the_guess_and_with_less_noise_and_never_lies_below_the_guess(guess, more, mu, larger):
    low, high = sorted((guess, more))
    ceiling = tradeoff.gaussian(mu).reconstruction
    assert low <= ceiling(low) <= ceiling(high) <= 1
    assert ceiling(low) <= tradeoff.gaussian(larger * mu).reconstruction(low) + 1e-12


def test_a_budget_of_nothing_leaves_the_guess_as_it_is():
    assert tradeoff.epsilon_delta(0.0, 0.0).reconstruction(0.01) == pytest.approx(0.01)


def test_the_command_says_it_beside_the_risk_and_is_silent_unasked(capsys):
    assert main(["risk", "--guess", "0.001", "--sampler", "poisson", *RUN]) == 0
    header, _, present = (re.split(r"\s{2,}", line) for line in capsys.readouterr().out.splitlines())
    said = dict(zip(header, present, strict=True))
    assert said["reconstruction from 0.001"] == said["at 0.1 %"]  # the same rate of the same curve
    assert main(["risk", "--sampler", "poisson", *RUN]) == 0
    assert "reconstruction" not in capsys.readouterr().out


def test_a_guess_beyond_one_is_refused(capsys):
    with pytest.raises(SystemExit):
        main(["risk", "--guess", "1.5", *RUN])
    assert "--guess: '1.5' is not valid; it must be a number from 0 to 1" in capsys.readouterr().err
