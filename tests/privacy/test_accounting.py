"""The public functions: inversion, monotony, refusals, published numbers."""

import subprocess
import sys

import numpy as np
import pytest
from asked import epsilon_spent, kappa_for, noise_multiplier
from hypothesis import given, settings
from hypothesis import strategies as st

from dp_leakage.common.errors import UserError
from dp_leakage.privacy.accounting import ACCOUNTANTS, check_mechanism, check_sampler, losses, steps_per_epoch
from dp_leakage.privacy.mechanism import Mechanism

JAYARAMAN = {"delta": 1e-5, "epochs": 100, "batch_size": 200, "dataset_size": 10_000}
GAUSSIAN = [
    (name, sampler, neighbors)
    for name, rules in ACCOUNTANTS.items()
    if rules.noise == "gaussian"
    for sampler, relations in rules.relations.items()
    for neighbors in relations
]
QUICK = [terms for terms in GAUSSIAN if terms[0] != "pld"]
DIRECTIONAL = [
    (name, sampler, neighbors, summed)
    for name, rules in ACCOUNTANTS.items()
    if rules.noise == "vmf"
    for sampler, relations in rules.relations.items()
    for neighbors in relations
    for summed in (False, True)
    if summed or neighbors == "replace_one"
]
epsilons = st.floats(-2, 3).map(lambda x: 10**x)
partitions = st.lists(st.integers(2, 10**6), min_size=1, max_size=4)  # into blocks of so many coordinates
trainings = st.fixed_dictionaries(
    {
        "delta": st.floats(-8, -3).map(lambda x: 10**x),
        "epochs": st.integers(1, 200),
        "batch_size": st.integers(1, 1000),
        "dataset_size": st.integers(1000, 60_000),
    }
)


@given(st.sampled_from(QUICK), epsilons, trainings)
@settings(max_examples=120, deadline=None)
def test_gaussian_noise_and_epsilon_invert_each_other(terms, epsilon, training):
    name, sampler, neighbors = terms
    training = training | {"sampler": sampler, "neighbors": neighbors}
    sigma = noise_multiplier(name, epsilon=epsilon, **training)
    spent = epsilon_spent(name, noise_multiplier=sigma, **training)
    assert spent <= epsilon * (1 + 1e-9)
    assert spent >= epsilon * (1 - 2e-6)


@pytest.mark.parametrize("terms", [terms for terms in GAUSSIAN if terms[0] == "pld"])
@pytest.mark.parametrize("epsilon", [0.5, 30.0])
def test_pld_noise_and_epsilon_invert_each_other(terms, epsilon):
    name, sampler, neighbors = terms
    training = JAYARAMAN | {"sampler": sampler, "neighbors": neighbors}
    sigma = noise_multiplier(name, epsilon=epsilon, **training)
    spent = epsilon_spent(name, noise_multiplier=sigma, **training)
    # The grid that pld settles for depends on σ, so its ε has steps of a few 1e-4.
    assert epsilon * (1 - 1e-3) <= spent <= epsilon


def _room(name):
    """Relative error of an ε: grids of loss distributions depend on the noise, so their ε has small steps."""
    return losses.AGREEMENT if name == "vmf_pld" else 2e-6


def invert_each_other(terms, epsilon, training, blocks):
    name, sampler, neighbors, summed = terms
    training = training | {"sampler": sampler, "neighbors": neighbors, "blocks": blocks, "summed": summed}
    kappa = kappa_for(name, epsilon=epsilon, **training)
    spent = epsilon_spent(name, kappa=kappa, **training)
    assert epsilon * (1 - _room(name)) <= spent <= epsilon * (1 + 1e-9)


@given(st.sampled_from([terms for terms in DIRECTIONAL if terms[0] != "vmf_pld"]), epsilons, trainings, partitions)
@settings(max_examples=80, deadline=None)
def test_concentration_and_epsilon_invert_each_other(terms, epsilon, training, blocks):
    invert_each_other(terms, epsilon, training, blocks)


# Each search takes seconds.
@pytest.mark.parametrize("terms", [terms for terms in DIRECTIONAL if terms[0] == "vmf_pld"])
@given(epsilons, trainings, partitions)
@settings(max_examples=2, deadline=None)
def test_concentration_by_losses_and_epsilon_invert_each_other(terms, epsilon, training, blocks):
    invert_each_other(terms, epsilon, training, blocks)


@given(st.sampled_from(QUICK), st.floats(-1, 5).map(lambda x: 10**x), trainings)
@settings(max_examples=80, deadline=None)
def test_epsilon_falls_with_noise_and_delta_and_rises_with_epochs(terms, sigma, training):
    name, sampler, neighbors = terms
    training = training | {"sampler": sampler, "neighbors": neighbors}
    spent = epsilon_spent(name, noise_multiplier=sigma, **training)
    room = 1 + 1e-4  # of the search over orders
    assert np.isfinite(spent)
    assert epsilon_spent(name, noise_multiplier=1.1 * sigma, **training) <= spent * room
    assert epsilon_spent(name, noise_multiplier=sigma, **training | {"delta": 2 * training["delta"]}) <= spent * room
    more = epsilon_spent(name, noise_multiplier=sigma, **training | {"epochs": 2 * training["epochs"]})
    assert more >= spent / room


@given(st.sampled_from(DIRECTIONAL), st.floats(-4, 6).map(lambda x: 10**x), trainings, st.integers(2, 10**6))
@settings(max_examples=80, deadline=None)
def test_directional_epsilon_rises_with_concentration_and_epochs(terms, kappa, training, dimension):
    name, sampler, neighbors, summed = terms
    training = training | {"sampler": sampler, "neighbors": neighbors, "blocks": [dimension], "summed": summed}
    spent = epsilon_spent(name, kappa=kappa, **training)
    assert np.isfinite(spent)
    least = spent * (1 - _room(name))
    assert epsilon_spent(name, kappa=1.1 * kappa, **training) >= least
    assert epsilon_spent(name, kappa=kappa, **training | {"epochs": 2 * training["epochs"]}) >= least


@pytest.mark.parametrize(
    ("epsilon", "naive", "advanced", "zcdp"),
    [
        (0.01, 57169, 28851, 4800),
        (0.1, 5717, 2896, 481),
        (1, 571.7, 299.8, 49.0),
        (10, 57.2, 37.8, 5.68),
        (50, 11.43, 11.63, 1.59),
        (100, 5.72, 7.45, 0.99),
        (1000, 0.57, 2.00, 0.25),
    ],
)
def test_noise_of_the_composition_formulas_is_that_of_the_released_code(epsilon, naive, advanced, zcdp):
    published = {"naive": naive, "advanced": advanced, "zcdp": zcdp}
    for name, sigma in published.items():
        ours = noise_multiplier(name, epsilon=epsilon, **JAYARAMAN)
        assert ours == pytest.approx(sigma, rel=1e-2 if sigma < 10 else 2e-3)


@pytest.mark.parametrize(("epsilon", "sigma"), [(0.01, 525.0), (1, 7.0), (1000, 0.219)])
def test_the_authors_table_is_at_hand(epsilon, sigma):
    assert noise_multiplier("rdp", epsilon=epsilon, sigma_table="authors", **JAYARAMAN) == sigma


@pytest.mark.parametrize(
    ("name", "unamplified", "poisson"), [("naive", 227, 42.7), ("advanced", 33, 3.5), ("zcdp", 978, 682)]
)
def test_what_the_noise_at_nominal_1000_really_spends(name, unamplified, poisson):
    sigma = noise_multiplier(name, epsilon=1000, **JAYARAMAN)
    assert epsilon_spent("gdp", noise_multiplier=sigma, **JAYARAMAN) == pytest.approx(unamplified, rel=1e-2)
    assert epsilon_spent("rdp", noise_multiplier=sigma, **JAYARAMAN) == pytest.approx(poisson, rel=1e-2)


@pytest.mark.parametrize("name", ACCOUNTANTS)
@pytest.mark.parametrize("sampler", ["shuffle", "poisson", "wor", "class_poisson"])
def test_a_sampler_is_refused_exactly_where_the_accountant_does_not_support_it(name, sampler):
    if sampler in ACCOUNTANTS[name].samplers:
        check_sampler(name, sampler)
    else:
        with pytest.raises(UserError, match=f"sampler: '{sampler}' violates what accountant '{name}'"):
            check_sampler(name, sampler)


@pytest.mark.parametrize(
    ("call", "sentence"),
    [
        (lambda: check_sampler("rpd", "poisson"), "accountant: 'rpd' is unknown; did you mean 'rdp'"),
        (lambda: check_sampler("rdp", "poison"), "sampler: 'poison' is unknown; did you mean 'poisson'"),
        (
            lambda: check_mechanism("zcdp", Mechanism(unit="batch")),
            "change the gradient by twice the clipping norm",
        ),
        (
            lambda: check_mechanism("banded_gdp", Mechanism("cyclic", "batch", noise="banded")),
            "change the gradient by twice the clipping norm",
        ),
        (lambda: check_mechanism("rdp", Mechanism(noise="vmf")), "'rdp' accounts for gaussian noise, not for 'vmf'"),
        (lambda: noise_multiplier("rdp", epsilon=0, **JAYARAMAN), "epsilon must be positive and finite; got 0"),
        (lambda: noise_multiplier("rdp", epsilon=np.inf, **JAYARAMAN), "epsilon must be positive and finite; got inf"),
        (lambda: noise_multiplier("rdp", epsilon=1, **JAYARAMAN | {"delta": 0}), "delta: 0 is out of range"),
        (lambda: noise_multiplier("rdp", epsilon=1, **JAYARAMAN | {"delta": 1}), "delta: 1 is out of range"),
        (lambda: noise_multiplier("rdp", epsilon=1, **JAYARAMAN | {"epochs": 0}), "epochs: 0 is not a positive"),
        (lambda: noise_multiplier("rdp", epsilon=1, **JAYARAMAN | {"batch_size": 10_001}), "batch_size: 10001"),
        (lambda: noise_multiplier("rdp", epsilon=1, sampler="shuffle", **JAYARAMAN), "sampler: 'shuffle'"),
        (lambda: noise_multiplier("naive", epsilon=1, neighbors="replace_one", **JAYARAMAN), "neighbors: the acc"),
        (lambda: noise_multiplier("rdp", epsilon=1, conversion="loose", **JAYARAMAN), "conversion: 'loose'"),
        (lambda: noise_multiplier("rdp", epsilon=0.001, conversion="classic", **JAYARAMAN), "no noise up to"),
        (lambda: noise_multiplier("rdp", epsilon=2, sigma_table="authors", **JAYARAMAN), "epsilon: 2 is not in"),
        (lambda: noise_multiplier("pld", epsilon=1, sigma_table="authors", **JAYARAMAN), "belongs to the accountant"),
        (
            lambda: noise_multiplier("rdp", epsilon=1, sigma_table="authors", **JAYARAMAN | {"epochs": 50}),
            "sigma_table: 'authors' holds for",
        ),
        (lambda: noise_multiplier("vmf_rdp", epsilon=1, **JAYARAMAN), "'vmf_rdp' does not account for gaussian"),
        (lambda: kappa_for("rdp", epsilon=1, **JAYARAMAN), "'rdp' does not account for vmf"),
        (lambda: kappa_for("vmf_rdp", epsilon=1, **JAYARAMAN), r"blocks: \[\] does not give the dimension"),
        (lambda: kappa_for("vmf_rdp", epsilon=1, blocks=[1], **JAYARAMAN), r"blocks: \[1\] does not give"),
        (
            lambda: kappa_for("vmf_rdp", epsilon=1, blocks=[9], neighbors="add_remove", **JAYARAMAN),
            "'add_remove' does not hold for noise around each example's gradient",
        ),
        (lambda: epsilon_spent("rdp", noise_multiplier=0, **JAYARAMAN), "noise_multiplier: 0 is out of range"),
        (lambda: epsilon_spent("rdp", kappa=1, **JAYARAMAN), "noise_multiplier: None is out of range"),
        (lambda: epsilon_spent("vmf_pure", kappa=-1, blocks=[9], **JAYARAMAN), "kappa: -1 is out of range"),
    ],
)
def test_impossible_requests_are_refused_in_one_sentence(call, sentence):
    with pytest.raises(UserError, match=sentence) as refusal:
        call()
    assert "\n" not in str(refusal.value)


def test_pure_accounting_needs_no_delta():
    assert epsilon_spent("vmf_pure", kappa=0.5, blocks=[10], **JAYARAMAN | {"delta": 0}) == 5000


def test_an_epochs_last_short_batch_is_a_step():
    assert [steps_per_epoch(b, 10) for b in (1, 3, 5, 10)] == [10, 4, 2, 1]


def test_a_refusal_needs_no_numerical_library():
    code = (
        "import sys; from dp_leakage.privacy.accounting import check_sampler; check_sampler('rdp', 'poisson'); "
        "print(sorted({'torch', 'scipy', 'dp_accounting', 'opacus'} & set(sys.modules)))"
    )
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert result.stdout.strip() == "[]"
