"""A private projection's cost, composed with the training's: against dp-accounting's own composition of events."""

import re
from math import floor, log10

import numpy as np
import pytest
from asked import calibrated, epsilon_after, epsilon_report, epsilon_spent, noise_multiplier
from dp_accounting import (
    GaussianDpEvent,
    NeighboringRelation,
    PoissonSampledDpEvent,
    SelfComposedDpEvent,
    get_sigma_gaussian,
)
from dp_accounting.pld import PLDAccountant
from dp_accounting.rdp import RdpAccountant
from hypothesis import example, given
from hypothesis import strategies as st

from dp_leakage.common.errors import UserError
from dp_leakage.data.projection import SENSITIVITY
from dp_leakage.privacy.accounting.amplified import advanced_epsilon
from dp_leakage.privacy.accounting.case import check_share
from dp_leakage.privacy.accounting.library import gaussian_epsilon
from dp_leakage.privacy.mechanism import Mechanism

MNIST = {"delta": 1e-5, "batch_size": 600, "dataset_size": 60_000}
ORDERS = np.concatenate([np.arange(2, 64), np.geomspace(64, 400, 40).round()])


def library(accountant, sigma, projection, epochs):
    """ε after so many epochs of 100 steps with q = 0.01, and the PCA before them."""
    steps = SelfComposedDpEvent(PoissonSampledDpEvent(0.01, GaussianDpEvent(sigma)), 100 * epochs)
    composed = accountant.compose(steps)
    if projection is not None:
        composed = composed.compose(GaussianDpEvent(projection))
    return composed.get_epsilon(MNIST["delta"])


def curve(accountant, sigma, projection, at):
    """Ours after each of those epochs."""
    noise = {"noise_multiplier": sigma, "projection_noise": projection}
    return np.array([epsilon_spent(accountant, epochs=epochs, **noise, **MNIST) for epochs in at])


@pytest.mark.parametrize("projection", [None, 4.0, 16.0])
@pytest.mark.parametrize("sigma", [1.1, 2.0])
def test_epsilon_by_epoch_is_dp_accountings(sigma, projection):
    ours = curve("rdp", sigma, projection, (1, 10, 60))
    theirs = [library(RdpAccountant(ORDERS), sigma, projection, epochs) for epochs in (1, 10, 60)]
    # Their orders are whole numbers, ours any: never more, and hardly less.
    assert (ours <= np.multiply(theirs, 1 + 1e-4)).all()
    np.testing.assert_allclose(ours, theirs, rtol=0.03)
    ours = curve("pld", sigma, projection, (10, 60))
    theirs = [library(PLDAccountant(), sigma, projection, epochs) for epochs in (10, 60)]
    np.testing.assert_allclose(ours, theirs, rtol=2e-3)


def test_the_curve_of_a_cell_is_dp_accountings():
    mechanism = Mechanism("poisson", noise_multiplier=1.5)
    ours = [
        epsilon_after(mechanism, "rdp", 1e-5, epochs=e, batch_size=600, dataset_size=60_000, projection_noise=4.0)
        for e in (1, 5, 40)
    ]
    theirs = [library(RdpAccountant(ORDERS), 1.5, 4.0, epochs) for epochs in (1, 5, 40)]
    np.testing.assert_allclose(ours, theirs, rtol=0.03)


@given(st.floats(0.01, 300), st.floats(1e-9, 0.1))
@example(0.03125, 0.025390625)  # 10.324, said as 10.4
def test_a_projection_is_refused_if_it_alone_spends_the_budget(epsilon, delta):
    enough = float(get_sigma_gaussian(epsilon, delta))
    check_share(1.01 * enough, epsilon, delta)
    with pytest.raises(UserError, match="alone spends") as refused:
        check_share(0.99 * enough, epsilon, delta)
    said = float(re.search("more than (.*?), so", str(refused.value))[1])
    digit = 10.0 ** (floor(log10(enough)) - 2)  # three are said, rounded up
    assert -1e-9 <= (said - enough) / digit <= 1 + 1e-6
    check_share(1.0001 * said, epsilon, delta)


@pytest.mark.parametrize("accountant", ["rdp", "pld"])
def test_a_budget_holds_the_projection_too(accountant):
    run = {**MNIST, "epochs": 20}
    plain = noise_multiplier(accountant, epsilon=2.0, **run)
    composed = noise_multiplier(accountant, epsilon=2.0, projection_noise=4.0, **run)
    assert composed > plain * 1.02
    spent = epsilon_spent(accountant, noise_multiplier=composed, projection_noise=4.0, **run)
    assert 2.0 * (1 - 1e-3) <= spent <= 2.0
    settings = {
        "sampler": "poisson", "unit": "example", "bound": "clip", "clip_norm": 1.0, "noise": "gaussian", "settings": {},
        "block": "whole", "accountant": accountant, "epsilon": 2.0, "noise_multiplier": None, "delta": 1e-5,
        "rdp_sigma": "calibrated_tight" if accountant == "rdp" else None, "projection_noise": 4.0,
    }  # fmt: skip
    schedule = {"epochs": 20, "batch_size": 600, "dataset_size": 60_000}
    assert calibrated(settings, **schedule).noise_multiplier == pytest.approx(composed, rel=1e-6)


def test_replacing_a_record_moves_the_second_moments_by_root_two():
    run = {**MNIST, "epochs": 5, "neighbors": "replace_one"}
    assert SENSITIVITY["replace_one"] ** 2 == pytest.approx(2)
    theirs = PLDAccountant(NeighboringRelation.REPLACE_ONE)
    theirs = theirs.compose(PoissonSampledDpEvent(0.01, GaussianDpEvent(2.0)), 500)
    theirs = theirs.compose(GaussianDpEvent(4.0 / np.sqrt(2) * 2))  # the library takes a sum's terms to move by 2
    ours = epsilon_spent("pld", noise_multiplier=2.0, projection_noise=4.0, **run)
    assert ours == pytest.approx(theirs.get_epsilon(1e-5), rel=5e-3)
    assert ours <= epsilon_spent("rdp", noise_multiplier=2.0, projection_noise=4.0, **run)


def test_every_row_of_a_cells_report_holds_the_projection():
    run = {**MNIST, "epochs": 5}
    mechanism = Mechanism("poisson", noise_multiplier=2.0)
    plain, composed = (epsilon_report(mechanism, projection_noise=p, **run) for p in (None, 4.0))
    assert len(plain) == len(composed) == 4
    for without, with_it in zip(plain, composed, strict=True):
        assert with_it.epsilon > without.epsilon


@pytest.mark.parametrize(
    ("accountant", "noise", "words"),
    [("zcdp", 4.0, "'zcdp' cannot add"), ("naive", 4.0, "valid: rdp or pld"), ("rdp", 0.0, "above 0")],
)
def test_what_cannot_be_composed_is_refused(accountant, noise, words):
    with pytest.raises(UserError, match=words):
        epsilon_spent(accountant, noise_multiplier=1.0, epochs=2, projection_noise=noise, **MNIST)


@pytest.mark.parametrize("projection", [None, 4.0])
@pytest.mark.parametrize(("rate", "sigma", "steps"), [(0.01, 2.0, 2000), (0.04, 6.0, 500), (0.2, 8.0, 50)])
def test_advanced_composition_is_a_bound_and_a_loose_one(rate, sigma, steps, projection):
    events = PLDAccountant().compose(PoissonSampledDpEvent(rate, GaussianDpEvent(sigma)), steps)
    if projection is not None:
        events = events.compose(GaussianDpEvent(projection))
    assert advanced_epsilon(rate, sigma, 1e-5, steps, projection) > 1.2 * events.get_epsilon(1e-5)


def test_advanced_composition_of_one_whole_step_is_that_step():
    assert advanced_epsilon(1.0, 3.0, 1e-5, 1) == pytest.approx(gaussian_epsilon(3.0, 0.5e-5, 1))
    alone = gaussian_epsilon(3.0, 1e-5 / 3, 1) + gaussian_epsilon(5.0, 1e-5 / 3, 1)
    assert advanced_epsilon(1.0, 3.0, 1e-5, 1, 5.0) == pytest.approx(alone)


def test_advanced_composition_is_the_formula_of_kairouz_oh_and_viswanath():
    rate, sigma, steps, delta = 0.01, 4.0, 10_000, 1e-5
    each = np.log(1 + rate * (np.exp(gaussian_epsilon(sigma, delta / 2 / (steps * rate), 1)) - 1))
    mean_loss = steps * each * (np.exp(each) - 1) / (np.exp(each) + 1)
    expected = mean_loss + each * np.sqrt(2 * steps * np.log(2 / delta))
    assert expected < steps * each
    assert advanced_epsilon(rate, sigma, delta, steps) == pytest.approx(expected, rel=1e-9)
