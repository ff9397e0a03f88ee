"""Who stands out, of many: p-values that are valid, and a share of false discoveries that is kept."""

import numpy as np
import pytest
from scipy.stats import beta, false_discovery_control

from dp_leakage.metrics.discoveries import after_selection, discoveries, unlike


def test_discoveries_are_those_of_benjamini_and_hochberg():
    p = np.random.default_rng(0).random(200) ** 3
    assert (discoveries(p) == (false_discovery_control(p) <= 0.05)).all()
    assert not discoveries(np.array([0.2, 1.0])).any()
    assert not discoveries(np.array([])).any()


def test_a_value_among_ties_is_not_unlike_the_others():
    assert unlike(np.array([1.0, 2.0]), np.ones(9)).tolist() == [1.0, 0.1]


def test_intervals_of_the_selected_have_the_exact_ends_at_the_stricter_level():
    low, high = after_selection(np.array([0, 3, 9]), np.array([9, 9, 9]), among=60)
    tail = 0.05 * 3 / 60 / 2
    assert low == pytest.approx([0, beta.ppf(tail, 3, 7), beta.ppf(tail, 9, 1)])
    assert high == pytest.approx([beta.ppf(1 - tail, 1, 9), beta.ppf(1 - tail, 4, 6), 1])
