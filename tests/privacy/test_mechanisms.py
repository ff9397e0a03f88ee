"""Each mechanism's file says what it is; noise that remembers earlier steps is as its accountant takes it to be."""

import math

import numpy as np
import pytest
import torch
from asked import epsilon_report, epsilon_spent, noise_multiplier
from scipy.linalg import solve_triangular, toeplitz
from scipy.stats import norm

from dp_leakage.common.errors import UserError
from dp_leakage.privacy import correlated
from dp_leakage.privacy.accounting import ACCOUNTANTS
from dp_leakage.privacy.accounting.curve import proven_curve
from dp_leakage.privacy.mechanism import SAMPLERS, Mechanism
from dp_leakage.privacy.mechanisms import MECHANISMS, noise_module
from dp_leakage.privacy.training import Training
from dp_leakage.training.noise import start_noise

RUN = {"delta": 1e-5, "epochs": 7, "batch_size": 50, "dataset_size": 500}


def banded_noise(bands, steps, generators, width=16, sigma=1.0):
    mechanism = Mechanism("cyclic", noise="banded", noise_multiplier=sigma, settings={"bands": bands})
    return start_noise(mechanism, torch.zeros(len(generators), width), 1.0, generators, steps)


def streams(*seeds):
    return [torch.Generator().manual_seed(seed) for seed in seeds]


@pytest.mark.parametrize("name", MECHANISMS)
def test_a_declaration_names_known_samplers_and_a_module_with_its_noise(name):
    declared = MECHANISMS[name]
    assert declared.label
    assert declared.guarantee.endswith(".")
    if declared.private:
        assert any(rules.noise == declared.noise for rules in ACCOUNTANTS.values())
        assert noise_module(declared.noise) == declared.module
    for rules in ACCOUNTANTS.values():
        assert set(rules.samplers) <= set(SAMPLERS)


@pytest.mark.parametrize("bands", [1, 2, 5, 9])
def test_banded_noise_is_the_inverse_matrix_times_independent_noise(bands):
    steps = 12
    noise = banded_noise(bands, steps, streams(3, 4))
    drawn = []
    for step in range(steps):
        noise.add(step)
        drawn.append(noise.gradient.clone())
    plain = []
    for generator in streams(3, 4):
        plain.append(torch.stack([torch.empty(16).normal_(generator=generator) for _ in range(steps)]))
    column = np.zeros(steps)
    column[:bands] = correlated.root(bands)
    matrix = toeplitz(column, np.zeros(steps))
    for model in range(2):
        expected = solve_triangular(matrix, plain[model].double().numpy(), lower=True)
        np.testing.assert_allclose(torch.stack(drawn)[:, model].numpy(), expected, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("bands", [1, 3, 8])
def test_a_record_moves_the_released_sums_by_at_most_the_root_of_its_epochs(bands):
    """The sensitivity that the accountant takes: of the matrix's columns for one place in every epoch."""
    steps, epochs = 8, 5
    column = np.zeros(steps * epochs)
    column[:bands] = correlated.root(bands)
    matrix = toeplitz(column, np.zeros(steps * epochs))
    rng = np.random.default_rng(0)
    for place in range(steps):
        used = matrix[:, place::steps]
        contributions = rng.normal(size=(epochs, 20))
        contributions /= np.linalg.norm(contributions, axis=1, keepdims=True)
        assert np.linalg.norm(used @ contributions) <= np.sqrt(epochs) * (1 + 1e-12)
    assert np.linalg.norm(matrix[:, 0]) == pytest.approx(1)


def test_more_bands_than_an_epoch_has_steps_are_refused():
    with pytest.raises(UserError, match="bands is 9, but an epoch has 8 steps; expected 1 to 8"):
        banded_noise(9, 8, streams(1))


def test_sums_of_banded_noise_are_quieter_than_those_of_independent_noise():
    """What it is for: at one σ, and so one ε, the prefix sums that the optimizer follows hold less noise."""
    steps, deviations = 50, {}
    for bands in (1, 10):
        noise = banded_noise(bands, steps, streams(1), width=4000)
        total, squares = torch.zeros(4000), 0.0
        for step in range(steps):
            noise.add(step)
            total += noise.gradient[0]
            squares += total.square().mean().item()
        deviations[bands] = (squares / steps) ** 0.5
    assert deviations[10] < 0.6 * deviations[1]


def test_restored_noise_goes_on_as_if_it_had_not_been_interrupted():
    whole, first, second = (banded_noise(4, 6, streams(5, 6)) for _ in range(3))
    expected = []
    for step in range(12):
        whole.add(step)
        expected.append(whole.gradient.clone())
    for step in range(5):
        first.add(step)
    second.restore({name: tensor.clone() for name, tensor in first.tensors().items()})
    for step in range(5, 12):
        second.add(step)
        assert torch.equal(second.gradient, expected[step])


@pytest.mark.parametrize("neighbors", ["zero_out", "replace_one"])
def test_banded_noise_spends_what_unsampled_gaussian_noise_of_as_many_epochs_spends(neighbors):
    terms = RUN | {"neighbors": neighbors}
    ours = epsilon_spent("banded_gdp", noise_multiplier=3.0, sampler="cyclic", **terms)
    assert ours == epsilon_spent("gdp", noise_multiplier=3.0, sampler="shuffle", **terms)
    sigma = noise_multiplier("banded_gdp", epsilon=2.0, **terms)
    assert epsilon_spent("banded_gdp", noise_multiplier=sigma, **terms) == pytest.approx(2.0, rel=1e-4)


def test_noise_whose_accounting_knows_no_private_projection_proves_nothing_beside_one():
    """The projection's cost was left out: an advantage of at most .14 beside a PCA that alone allows .68."""
    mechanism = Mechanism("cyclic", noise="banded", noise_multiplier=5.0, settings={"bands": 2})
    run = {"epochs": 3, "batch_size": 10, "dataset_size": 100}
    assert proven_curve(Training(mechanism, **run), "zero_out") is not None
    assert proven_curve(Training(mechanism, **run, projection_noise=0.5), "zero_out") is None
    assert epsilon_report(mechanism, delta=1e-5, **run)
    assert epsilon_report(mechanism, delta=1e-5, **run, projection_noise=0.5) == []


@pytest.mark.parametrize(("sampler", "noise"), [("cyclic", "banded"), ("cyclic", "gaussian")])
def test_what_is_proven_where_each_record_comes_once_an_epoch_is_not_amplified_by_sampling(sampler, noise):
    settings = {"bands": 4} if noise == "banded" else {}
    mechanism = Mechanism(sampler, noise=noise, noise_multiplier=3.0, settings=settings)
    training = Training(mechanism, epochs=7, batch_size=50, dataset_size=500)
    for neighbors, apart in (("zero_out", 1), ("replace_one", 2)):
        mu = apart * math.sqrt(7) / 3.0
        curve = proven_curve(training, neighbors)
        assert float(curve.tpr(0.01)) == pytest.approx(norm.cdf(norm.ppf(0.01) + mu), rel=1e-6)
    assert proven_curve(training, "add_remove") is None
