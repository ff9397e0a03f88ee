"""No ε lies below what an attacker shows, over random trainings (benchmarks/proven_epsilon.py)."""

import sys
from pathlib import Path

import pytest
from dp_accounting import get_epsilon_gaussian

sys.path.append(str(Path(__file__).parents[2] / "benchmarks"))
from proven_epsilon import normals, of_gaussian, of_steps, searched, table


@pytest.mark.parametrize(("mu", "delta"), [(0.3, 1e-3), (3.0, 1e-12), (12.0, 1e-9)])
def test_the_attackers_are_right_about_a_gaussian(mu, delta):
    epsilon = get_epsilon_gaussian(1 / mu, delta)
    assert of_gaussian(mu, epsilon) == pytest.approx(delta, rel=1e-6)
    for steps in (1, 30, 20_000):
        for one in normals((0.0, mu / steps**0.5), (1.0, 0.0)):
            assert of_steps(one, steps, epsilon) == pytest.approx(delta, rel=1e-3)


def test_no_epsilon_is_too_small_and_most_are_tight():
    found = table(searched(50, seed=0))
    assert found.too_small.sum() == 0
    assert found.median_share[["poisson", "poisson replace", "vmf", "vmf sampled"]].min() > 0.95


@pytest.mark.slow
def test_no_epsilon_is_too_small_in_two_thousand_settings():
    assert table(searched(2000, seed=1)).too_small.sum() == 0
