"""Correlated noise: its matrices against independent optimization, what a record moves, and how quiet sums are."""

import math

import numpy as np
import pytest
import torch
from asked import calibrated, epsilon_report, epsilon_spent
from dp_accounting import GaussianDpEvent, NeighboringRelation, PoissonSampledDpEvent
from dp_accounting.pld import PLDAccountant
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.linalg import block_diag, solve_triangular, toeplitz
from scipy.optimize import minimize

from dp_leakage.common.errors import UserError
from dp_leakage.models.architectures import build
from dp_leakage.privacy import correlated
from dp_leakage.privacy.accounting.curve import proven_curve
from dp_leakage.privacy.defenses import expanded
from dp_leakage.privacy.mechanism import Mechanism
from dp_leakage.privacy.mechanisms import MECHANISMS
from dp_leakage.privacy.training import Training
from dp_leakage.training.noise import start_noise
from dp_leakage.training.settings import TrainingSettings
from dp_leakage.training.trainer import train

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
@pytest.mark.parametrize("neighbors", ["zero_out", "replace_one"])
def test_epsilon_and_curve_are_those_of_gaussian_noise_of_as_many_epochs(name, sampler, neighbors):
    terms = RUN | {"neighbors": neighbors, "delta": 1e-5, "sampler": sampler, "noise_multiplier": 3.0}
    assert epsilon_spent(f"{name}_gdp", **terms) == epsilon_spent("gdp", **terms)
    mechanism = Mechanism(sampler, noise=name, noise_multiplier=3.0, settings=STRATEGIES[name])
    curve = proven_curve(Training(mechanism, **RUN), neighbors)
    plain = proven_curve(Training(Mechanism(sampler, noise_multiplier=3.0), **RUN), neighbors)
    assert float(curve.tpr(0.01)) == pytest.approx(float(plain.tpr(0.01)), rel=1e-12)


def test_a_horizon_below_the_bands_is_refused():
    mechanism = Mechanism("cyclic", noise="banded", noise_multiplier=1.0, settings={"bands": 4, "horizon": 3})
    with pytest.raises(UserError, match="horizon is 3, but bands is 4; expected 4 or more"):
        start_noise(mechanism, torch.zeros(1, 2), 1.0, [torch.Generator()], 8)


@settings(max_examples=60, deadline=None)
@given(
    bands=st.integers(1, 6),
    steps=st.integers(6, 33),
    part=st.integers(0, 5),
    seed=st.integers(0, 2**32 - 1),
    optimal=st.booleans(),
)
def test_turns_of_cyclic_poisson_batches_move_rows_of_their_own_by_at_most_one(bands, steps, part, seed, optimal):
    """So one turn is one sampled Gaussian mechanism of the claimed sensitivity, whoever else is in the batches."""
    column = correlated.optimal(bands, steps) if optimal else correlated.root(bands)
    turns = lower(column, steps)[:, part % bands :: bands]
    assert turns.shape[1] <= math.ceil(steps / bands)
    assert ((turns != 0).sum(axis=1) <= 1).all()
    assert (np.linalg.norm(turns, axis=0) <= 1 + 1e-9).all()


def amplified(bands, sigma=1.3, **changed):
    return epsilon_spent("banded_pld", noise_multiplier=sigma, turns=bands, delta=1e-5, **RUN | changed)


@pytest.mark.parametrize("bands", [1, 2, 3, 7])
@pytest.mark.parametrize("neighbors", ["add_remove", "replace_one"])
def test_amplified_epsilon_is_that_of_dp_accountings_sampled_gaussian_for_as_many_turns(bands, neighbors):
    relation = {"add_remove": "ADD_OR_REMOVE_ONE", "replace_one": "REPLACE_ONE"}[neighbors]
    oracle = PLDAccountant(NeighboringRelation[relation], value_discretization_interval=1e-4)
    event = PoissonSampledDpEvent(bands * 0.1, GaussianDpEvent(1.3))
    oracle.compose(event, math.ceil(70 / bands))
    assert amplified(bands, neighbors=neighbors) == pytest.approx(oracle.get_epsilon(1e-5), rel=2e-3)


@pytest.mark.parametrize("neighbors", ["add_remove", "replace_one"])
def test_one_band_spends_what_dp_sgd_spends_and_as_many_as_steps_what_a_fixed_order_does(neighbors):
    terms = RUN | {"neighbors": neighbors, "delta": 1e-5, "noise_multiplier": 1.3}
    assert amplified(1, neighbors=neighbors) == epsilon_spent("pld", **terms)
    same = "zero_out" if neighbors == "add_remove" else neighbors
    fixed = epsilon_spent("banded_gdp", **terms | {"neighbors": same})
    assert amplified(10, neighbors=neighbors) == pytest.approx(fixed, rel=1e-9)


@pytest.mark.parametrize("neighbors", ["add_remove", "zero_out", "replace_one"])
def test_the_amplified_curve_is_a_sampled_gaussians_and_agrees_with_epsilon(neighbors):
    def curve(sampler, noise, bands=1):
        mechanism = Mechanism(sampler, noise=noise, noise_multiplier=1.3, settings={"bands": bands})
        return proven_curve(Training(mechanism, **RUN), neighbors)

    one, plain = curve("cyclic_poisson", "banded"), curve("poisson", "gaussian")
    assert float(one.tpr(0.01)) == float(plain.tpr(0.01))
    two = curve("cyclic_poisson", "banded", bands=2)
    relation = "add_remove" if neighbors == "zero_out" else neighbors
    epsilon = amplified(2, neighbors=relation)
    for fpr in (1e-3, 0.01, 0.1):
        assert float(two.tpr(fpr)) <= math.exp(epsilon) * fpr + 1e-5 + 1e-9
    assert float(one.tpr(0.01)) < float(two.tpr(0.01)) < float(curve("cyclic_poisson", "banded", bands=10).tpr(0.01))


@pytest.mark.parametrize("name", ["banded", "banded_optimal"])
def test_noise_for_a_budget_is_found_from_the_settings_of_a_cell(name):
    entry = {"defense": name, "accountant": "banded_pld", "epsilon": 2, **STRATEGIES[name]}
    ((_, protection, _),) = expanded(entry, {"delta": 1e-5})
    assert protection.step.sampler == "cyclic_poisson"
    mechanism = calibrated(protection.settings, **RUN)
    bands = STRATEGIES[name]["bands"]
    assert amplified(bands, mechanism.sigma) == pytest.approx(2, rel=1e-3)
    (row,) = [row for row in epsilon_report(mechanism, delta=1e-5, **RUN) if row.neighbors == "add_remove"]
    assert (row.accountant, row.valid) == ("banded_pld", True)
    assert row.epsilon == amplified(bands, mechanism.sigma)


def test_one_band_trains_as_dp_sgd_to_the_byte():
    x, y = torch.randn(40, 5), torch.arange(40) % 3
    found = []
    for mechanism in (
        Mechanism("poisson", noise_multiplier=0.5),
        Mechanism("cyclic_poisson", noise="banded", noise_multiplier=0.5, settings={"bands": 1}),
    ):
        run = TrainingSettings("sgd", 0.1, epochs=2, batch_size=10)
        models, _ = train(build("softmax_regression", (5,), 3), x, y, torch.arange(40)[None], [1], run, mechanism)
        found.append(models.parameters["0.weight"])
    assert torch.equal(*found)
