"""Releasing the best of a random number of trainings: its ε by the paper's theorem, and the numbers that are drawn."""

from math import inf, log

import numpy as np
import pytest
from asked import epsilon_spent, selection_epsilon
from dp_accounting import GaussianDpEvent, PoissonSampledDpEvent, SelfComposedDpEvent
from dp_accounting.dp_event import RepeatAndSelectDpEvent
from dp_accounting.rdp import RdpAccountant

from dp_leakage.common.errors import UserError
from dp_leakage.privacy.accounting.renyi import epsilon_from_renyi, poisson_gaussian
from dp_leakage.privacy.accounting.selection import SHAPES, drawn_runs

RUN = {"delta": 1e-5, "epochs": 100, "batch_size": 200, "dataset_size": 10_000}


@pytest.mark.parametrize("mean", [2, 10, 100])
def test_geometric_selection_costs_what_theorem_2_of_papernot_and_steinke_says(mean):
    orders = np.concatenate([np.arange(2.0, 200), np.arange(200.0, 1000, 10)])
    once = 5000 * poisson_gaussian(0.02, 7.0, orders)
    # With η = 1 and γ = 1/E[K]: D'(λ) ≤ D(λ) + 2 (1 − 1/λ̂) D(λ̂) + 2 ln(1/γ)/λ̂ + ln E[K]/(λ − 1), for every λ̂.
    other = np.min(2 * (1 - 1 / orders) * once + 2 * log(mean) / orders)
    selected = once + other + log(mean) / (orders - 1)
    theirs = selection_epsilon(7.0, mean=mean, runs="geometric", **RUN)
    assert theirs == pytest.approx(epsilon_from_renyi(orders, selected, 1e-5, "tight"), rel=0.02)


@pytest.mark.parametrize("runs", SHAPES)
def test_choosing_costs_more_than_one_run_and_far_less_than_all(runs):
    once = epsilon_spent("rdp", noise_multiplier=7.0, **RUN)
    best_of_twenty = selection_epsilon(7.0, mean=20, runs=runs, **RUN)
    all_twenty = epsilon_spent("rdp", noise_multiplier=7.0, **RUN | {"epochs": 2000})
    assert once < best_of_twenty < 0.8 * all_twenty


def library_epsilon(mean, shape):
    """ε of the best of a random number of runs by dp-accounting alone."""
    once = SelfComposedDpEvent(PoissonSampledDpEvent(0.02, GaussianDpEvent(7.0)), 5000)
    accountant = RdpAccountant()
    accountant.compose(RepeatAndSelectDpEvent(once, mean, shape))
    return accountant.get_epsilon(1e-5)


@pytest.mark.parametrize(("runs", "shape"), [("logarithmic", 0.0), ("geometric", 1.0), ("poisson", inf)])
def test_choosing_among_ten_times_as_many_runs_adds_little_unless_their_number_is_poisson(runs, shape):
    of = {mean: selection_epsilon(7.0, mean=mean, runs=runs, **RUN) for mean in (10, 100, 1000)}
    assert of == pytest.approx({mean: library_epsilon(mean, shape) for mean in of}, rel=1e-6)
    once = epsilon_spent("rdp", noise_multiplier=7.0, **RUN)
    if runs == "poisson":
        assert of[100] > 5 * once
        assert of[1000] > 10 * once
    else:
        assert of[100] - of[10] < once
        assert of[1000] - of[100] < once


@pytest.mark.parametrize("runs", SHAPES)
def test_the_runs_drawn_are_as_many_as_promised_on_average_and_even_over_the_grid(runs):
    drawn = [drawn_runs(8, runs, 5, seed) for seed in range(4000)]
    number = np.array([len(one) for one in drawn])
    reach = 5 * number.std() / np.sqrt(len(number))  # a false alarm in 2 million
    assert abs(number.mean() - 8) < reach
    assert number.min() >= (0 if runs == "poisson" else 1)
    counts = np.bincount(np.concatenate(drawn).astype(int), minlength=5)
    assert np.ptp(counts) < 10 * np.sqrt(counts.mean())


@pytest.mark.parametrize(
    ("change", "sentence"), [({"mean": 0.5}, "expected 1 or more"), ({"runs": "ten"}, "runs: 'ten' is unknown")]
)
def test_numbers_of_runs_without_sense_are_refused(change, sentence):
    with pytest.raises(UserError, match=sentence):
        selection_epsilon(7.0, **{"mean": 10, "runs": "geometric"} | change, **RUN)
