"""Correlated noise: its matrices against independent optimization, what a record moves, and how quiet sums are."""

import math

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.linalg import block_diag, solve_triangular, toeplitz
from scipy.optimize import minimize

from dp_leakage.common.errors import UserError
from dp_leakage.privacy import correlated
from dp_leakage.privacy.accounting import epsilon_spent
from dp_leakage.privacy.accounting.curve import Training, proven_curve
from dp_leakage.privacy.mechanism import Mechanism
from dp_leakage.privacy.mechanisms import MECHANISMS
from dp_leakage.training.noise import start_noise

RUN = {"epochs": 7, "batch_size": 50, "dataset_size": 500}
STRATEGIES = {
    "banded": {"bands": 3},
    "banded_optimal": {"bands": 4, "horizon": 20},
    "blt": {"buffers": 2},
    "tree": {},
}
FIXED_ORDER = ("banded", "banded_optimal")


def lower(column, steps):
    padded = np.zeros(steps)
    padded[: len(column)] = column[:steps]
    return toeplitz(padded, np.zeros(steps))


def strategy(name, steps, epochs):
    """The matrix whose product with the sums of gradients gets independent noise, as the files describe it."""
    if name == "banded":
        return lower(correlated.root(3), steps * epochs)
    if name == "banded_optimal":
        return lower(correlated.optimal(4, 20), steps * epochs)
    if name == "blt":
        column = correlated.buffered(2, steps)[2]
        return block_diag(*[lower(column / np.linalg.norm(column), steps)] * epochs)
    nodes = np.zeros((steps, steps))
    for step in range(1, steps + 1):
        width = max(2**z for z in range(steps.bit_length()) if step % 2**z == 0)
        nodes[step - 1, step - width : step] = 1 / math.sqrt(math.floor(math.log2(steps)) + 1)
    return block_diag(*[nodes] * epochs)


def started(name, steps, *seeds, width=16):
    mechanism = Mechanism("cyclic", noise=MECHANISMS[name].noise, noise_multiplier=1.0, settings=STRATEGIES[name])
    generators = [torch.Generator().manual_seed(seed) for seed in seeds]
    return start_noise(mechanism, torch.zeros(len(seeds), width), 1.0, generators, steps)


@pytest.mark.parametrize("name", STRATEGIES)
@pytest.mark.parametrize("steps", [4, 5, 8])
def test_the_noise_is_the_inverse_strategy_times_independent_noise(name, steps):
    noise, drawn = started(name, steps, 3, 4), []
    for step in range(3 * steps):
        noise.add(step)
        drawn.append(noise.gradient.clone())
    matrix = strategy(name, steps, 3)
    for model, seed in enumerate((3, 4)):
        generator = torch.Generator().manual_seed(seed)
        plain = torch.stack([torch.empty(16).normal_(generator=generator) for _ in range(3 * steps)])
        expected = solve_triangular(matrix, plain.double().numpy(), lower=True)
        np.testing.assert_allclose(torch.stack(drawn)[:, model].numpy(), expected, rtol=1e-3, atol=1e-5)


@settings(max_examples=60, deadline=None)
@given(
    name=st.sampled_from(list(STRATEGIES)),
    steps=st.integers(4, 33),
    epochs=st.integers(1, 5),
    seed=st.integers(0, 2**32 - 1),
    aligned=st.booleans(),
)
def test_a_record_moves_the_weighted_sums_by_at_most_the_root_of_its_epochs(name, steps, epochs, seed, aligned):
    """The sensitivity that the accountants take: one step an epoch, the same one where the order is fixed."""
    rng = np.random.default_rng(seed)
    places = np.full(epochs, rng.integers(steps)) if name in FIXED_ORDER else rng.integers(steps, size=epochs)
    moved = rng.normal(size=(1 if aligned else epochs, 6)) * np.ones((epochs, 1))
    moved /= np.linalg.norm(moved, axis=1, keepdims=True)
    used = strategy(name, steps, epochs)[:, np.arange(epochs) * steps + places]
    assert np.linalg.norm(used @ moved) <= math.sqrt(epochs) * (1 + 1e-9)


@pytest.mark.parametrize("name", STRATEGIES)
def test_the_first_step_of_an_epoch_moves_them_by_that_much(name):
    assert np.linalg.norm(strategy(name, 12, 1)[:, 0]) == pytest.approx(1)


@pytest.mark.parametrize(("bands", "steps"), [(2, 2), (3, 12), (5, 40), (8, 25)])
def test_optimal_bands_have_the_error_of_an_independent_optimization(bands, steps):
    """The mean variance of running sums by dense matrices, minimized without a gradient from independent noise."""
    sums = np.tril(np.ones((steps, steps)))

    def error(column):
        inverse = solve_triangular(lower(column, steps), np.eye(steps), lower=True)
        return np.linalg.norm(sums @ inverse) / math.sqrt(steps) * np.linalg.norm(column)

    best = minimize(lambda rest: error(np.append(1.0, rest)), np.zeros(bands - 1), method="BFGS")
    ours = correlated.optimal(bands, steps)
    assert correlated.running_error(ours, steps) == pytest.approx(error(ours), rel=1e-9)
    assert error(ours) <= 1.01 * best.fun
    assert error(ours) == pytest.approx(best.fun, rel=1e-4)
    assert np.linalg.norm(ours) == pytest.approx(1)


@pytest.mark.parametrize("steps", [1, 2, 16, 100])
def test_the_errors_stand_in_their_known_order(steps):
    """All bands: no strategy of one participation is better; three buffers come within 1 % of it."""
    best = correlated.running_error(correlated.optimal(steps, steps), steps)
    assert best <= correlated.running_error(correlated.root(steps), steps) * (1 + 1e-9)
    few = [correlated.running_error(correlated.buffered(d, steps)[2], steps) for d in (1, 2, 3)]
    assert best * (1 - 1e-6) <= few[2] <= 1.01 * best
    tree = solve_triangular(strategy("tree", steps, 1), np.eye(steps), lower=True)
    assert np.linalg.norm(np.tril(np.ones((steps, steps))) @ tree) / math.sqrt(steps) >= few[2] * (1 - 1e-6)


@pytest.mark.parametrize("buffers", [1, 3, 8])
def test_buffered_coefficients_are_positive_and_fall(buffers):
    omega, decay, column = correlated.buffered(buffers, 50)
    expected = [1.0, *(float(omega @ decay ** (k - 1)) for k in range(1, 50))]
    np.testing.assert_allclose(column, expected, rtol=1e-9)
    assert np.all(column > 0)
    assert np.all(np.diff(column) <= 0)


@pytest.mark.parametrize("name", STRATEGIES)
def test_restored_noise_goes_on_as_if_it_had_not_been_interrupted(name):
    whole, first, second = (started(name, 6, 5, 6) for _ in range(3))
    expected = []
    for step in range(18):
        whole.add(step)
        expected.append(whole.gradient.clone())
    for step in range(8):
        first.add(step)
    second.restore({key: tensor.clone() for key, tensor in first.tensors().items()})
    for step in range(8, 18):
        second.add(step)
        assert torch.equal(second.gradient, expected[step])


@pytest.mark.parametrize("sampler", ["shuffle", "cyclic"])
@pytest.mark.parametrize("name", ["blt", "tree"])
@pytest.mark.parametrize("neighbours", ["zero_out", "replace_one"])
def test_epsilon_and_curve_are_those_of_gaussian_noise_of_as_many_epochs(name, sampler, neighbours):
    terms = RUN | {"neighbours": neighbours, "delta": 1e-5, "sampler": sampler, "noise_multiplier": 3.0}
    assert epsilon_spent(f"{name}_gdp", **terms) == epsilon_spent("gdp", **terms)
    mechanism = Mechanism(sampler, noise=name, noise_multiplier=3.0, settings=STRATEGIES[name])
    curve = proven_curve(Training(mechanism, 1e-5, **RUN), neighbours)
    plain = proven_curve(Training(Mechanism(sampler, noise_multiplier=3.0), 1e-5, **RUN), neighbours)
    assert float(curve.tpr(0.01)) == pytest.approx(float(plain.tpr(0.01)), rel=1e-12)


def test_a_horizon_below_the_bands_is_refused():
    mechanism = Mechanism("cyclic", noise="banded", noise_multiplier=1.0, settings={"bands": 4, "horizon": 3})
    with pytest.raises(UserError, match="horizon is 3, but bands is 4; valid is 4 or more"):
        start_noise(mechanism, torch.zeros(1, 2), 1.0, [torch.Generator()], 8)
