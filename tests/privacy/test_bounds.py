import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import linprog

from dp_leakage.privacy.bounds import advantage_bound, printed_advantage_bound


@given(st.floats(0, 10), st.floats(0, 0.5))
def test_the_bound_is_the_largest_advantage_that_the_definition_allows(epsilon, delta):
    # Maximise t − f over t ≤ e^ε f + δ and 1 − f ≤ e^ε (1 − t) + δ, 0 ≤ t, f ≤ 1.
    e = np.exp(epsilon)
    best = linprog([-1, 1], A_ub=[[1 / e, -1], [1, -1 / e]], b_ub=[delta / e, 1 - (1 - delta) / e], bounds=[(0, 1)] * 2)
    assert advantage_bound(epsilon, delta) == pytest.approx(-best.fun, abs=1e-7)


def test_pure_bound_is_the_hyperbolic_tangent_and_lies_below_the_printed_one():
    epsilon = np.linspace(0, 5, 20)
    np.testing.assert_allclose(advantage_bound(epsilon), np.tanh(epsilon / 2), rtol=1e-12)
    assert np.all(advantage_bound(epsilon) <= printed_advantage_bound(epsilon))
    assert advantage_bound(1.0) == pytest.approx(0.4621, abs=1e-4)


def test_bounds_at_the_ends():
    assert advantage_bound(np.inf, 1e-5) == 1
    assert advantage_bound(0.0, 1.0) == 1
    assert printed_advantage_bound(1e4) == np.inf
