"""Lengths against NumPy's in double precision."""

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from dp_leakage.models.norms import LEAST_NORM, ROUNDING, WIDE, norm

EPS = torch.finfo(torch.float32).eps


@given(st.integers(1, 5 * WIDE), st.integers(0, 2**16))
def test_a_length_is_right_to_what_the_bound_allows_for(count, seed):
    x = np.random.default_rng(seed).standard_normal((2, count)).astype(np.float32)
    found, exact = norm(torch.from_numpy(x)).double().numpy(), np.linalg.norm(x.astype(np.float64), axis=1)
    assert (np.abs(found - exact) <= ROUNDING * EPS * exact).all()


@pytest.mark.parametrize("count", [1, WIDE, WIDE + 1, 1 << 20])
def test_equal_numbers_whose_float32_sum_would_stop_growing(count):
    x = torch.full((1, count), 0.1)
    assert norm(x).item() == pytest.approx(float(np.float32(0.1)) * count**0.5, rel=ROUNDING * EPS)


@pytest.mark.parametrize("count", [3, 3 * WIDE])
def test_nothing_is_shorter_than_the_least_and_what_is_not_finite_stays_so(count):
    assert norm(torch.zeros(1, count)).item() == np.float32(LEAST_NORM)
    x = torch.zeros(2, count)
    x[0, -1], x[1, -1] = torch.inf, torch.nan
    assert not norm(x).isfinite().any()
