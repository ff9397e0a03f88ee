"""Lower bounds from canary gradients, on draws of Gaussian noise and in a script. Fixed seeds; 95 % confidence."""

from types import SimpleNamespace

import numpy as np
import pytest
import torch
from watched import watched

from dp_leakage.opacus.canaries import Canaries
from dp_leakage.opacus.spent import Steps, epsilon_of

RATE, STEPS = 0.2, 20


def bounds(sigma, counted):
    """Of 600 canaries among Poisson batches of 600 records, whose noise is ``sigma`` and counted as ``counted``."""
    rng = np.random.default_rng(2)
    parameter = torch.zeros(2000)
    optimizer = SimpleNamespace(params=[parameter])
    canaries = Canaries(600, optimizer, 600, RATE, np.random.default_rng(3))
    for _ in range(STEPS):
        parameter.summed_grad = torch.zeros(2000)
        canaries.plant(optimizer, 1.0, np.flatnonzero(rng.random(600) < RATE))
        canaries.observe(torch.tensor(rng.normal(0, sigma, 2000)), counted, 1.0)
    step = SimpleNamespace(noise_multiplier=counted)
    return canaries.bounds(SimpleNamespace(steps=[step] * STEPS), 1e-5)


def test_bounds_stay_below_epsilon_and_assumptions_pay():
    found = bounds(0.8, 0.8)
    epsilon = epsilon_of([Steps(0.8, RATE, STEPS)], 1e-5, "add_remove")
    assert 0 < found["any"].epsilon <= found["own"].epsilon <= found["independent"].epsilon <= epsilon
    assert found["independent"].epsilon > 0.5 * epsilon
    assert found["any"].guesses < found["independent"].guesses == 600


def test_a_fifth_of_the_noise_is_refuted():
    epsilon = epsilon_of([Steps(0.8, RATE, STEPS)], 1e-5, "add_remove")
    assert bounds(0.16, 0.8)["independent"].epsilon > epsilon


def test_a_script_with_canaries_holds_and_states_the_three(tmp_path):
    seen, status = watched(tmp_path, "image", (), ["--epochs", 1], canaries=500)
    assert (status, seen.verdict) == (0, "holds"), seen.findings
    (training,) = seen.trainings
    assert set(training.canaries) == {"any", "own", "independent"}
    assert all(bound.epsilon <= seen.epsilon["zero_out"] for bound in training.canaries.values())
    assert {bound.canaries for bound in training.canaries.values()} == {500}
    assert training.noise.ratio == pytest.approx(1, abs=0.02)
