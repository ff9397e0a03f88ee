"""From a cell's settings to its noise and back to ε, for every accountant under every sampler that it supports."""

import pytest
from asked import calibrated, epsilon_after, epsilon_spent

from dp_leakage.privacy.accounting import ACCOUNTANTS

SCHEDULE = {"epochs": 5, "batch_size": 50, "dataset_size": 500}
PAIRS = [(name, sampler) for name, accountant in ACCOUNTANTS.items() for sampler in accountant.samplers]


def settings(accountant: str, sampler: str, **changes: object) -> dict:
    noise = ACCOUNTANTS[accountant].noise
    return {
        "sampler": sampler,
        "unit": "class" if sampler == "class_poisson" else "example",
        "bound": "normalize" if noise == "vmf" else "clip",
        "clip_norm": 1.0,
        "noise": noise,
        "block": "whole",
        "accountant": accountant,
        "epsilon": 3.0,
        "noise_multiplier": None,
        "kappa": None,
        "settings": {"bands": 4} if noise == "banded" else {},
        "delta": 1e-5,
        "rdp_sigma": "calibrated_tight" if accountant == "rdp" else None,
    } | changes


@pytest.mark.parametrize(("accountant", "sampler"), PAIRS)
def test_the_noise_of_a_budget_spends_that_budget(accountant, sampler):
    blocks = [100] if ACCOUNTANTS[accountant].noise == "vmf" else None
    mechanism = calibrated(settings(accountant, sampler), blocks=blocks, **SCHEDULE)
    spent = epsilon_after(mechanism, accountant, 1e-5, blocks=blocks, **SCHEDULE)
    assert spent == pytest.approx(3.0, rel=2e-3)


def test_the_samplers_of_one_accountant_differ_in_noise():
    poisson, fixed = (calibrated(settings("rdp", s), **SCHEDULE).noise_multiplier for s in ("poisson", "wor"))
    # Replace-one neighbors of fixed-size batches: about twice the noise of add-or-remove-one.
    assert fixed > 1.5 * poisson


def test_a_batch_bounded_as_a_whole_moves_twice_as_far():
    mechanism = calibrated(settings("zcdp", "shuffle", unit="batch"), **SCHEDULE)
    spent = epsilon_after(mechanism, "zcdp", 1e-5, **SCHEDULE)
    half = mechanism.noise_multiplier / 2
    assert spent == epsilon_spent("zcdp", noise_multiplier=half, delta=1e-5, sampler="shuffle", **SCHEDULE)
    assert epsilon_after(mechanism, "naive", 1e-5, **SCHEDULE) == epsilon_spent(
        "naive", noise_multiplier=mechanism.noise_multiplier, delta=1e-5, **SCHEDULE
    )


def test_a_sampler_that_the_accountant_cannot_account_for_is_passed_over():
    mechanism = calibrated(settings("rdp", "shuffle"), **SCHEDULE)
    assert mechanism.sampler == "shuffle"
    assert mechanism.noise_multiplier == calibrated(settings("rdp", "poisson"), **SCHEDULE).noise_multiplier
    assert epsilon_after(mechanism, "rdp", 1e-5, **SCHEDULE) == pytest.approx(3.0, rel=2e-3)
