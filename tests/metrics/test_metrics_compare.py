"""Paired differences."""

import numpy as np
import pytest

from dp_leakage.metrics import roc
from dp_leakage.metrics.intervals import crossed_difference


def runs(rng, repeats, n, member_shift, record):
    """Scores of members and non-members that share each record's own part between defenses."""
    noise = rng.normal(size=(2, repeats, n))
    training = 0.1 * rng.normal(size=(repeats, 1))
    return member_shift + training + record[0] + noise[0], record[1] + noise[1]


def test_a_defense_compared_with_itself_differs_by_nothing():
    rng = np.random.default_rng(0)
    scores = runs(rng, 1, 200, 0.5, np.zeros((2, 200)))
    assert crossed_difference(roc.area(*scores), roc.area(*scores)) == (0.0, 0.0, 0.0)


def test_pairing_by_record_narrows_the_interval():
    rng = np.random.default_rng(0)
    record = 3 * rng.normal(size=(2, 300))
    a, b = (tuple(r + 0.1 * x for r, x in zip(record, runs(rng, 1, 300, s, 0 * record), strict=True)) for s in (5, 0))
    paired = crossed_difference(roc.area(*a), roc.area(*b))
    separate = np.hypot(*(roc.auc(*s).high - roc.auc(*s).low for s in (a, b)))
    assert paired.high - paired.low < separate / 2
    assert paired.low > 0


def test_the_differences_are_those_of_the_metrics_values():
    rng = np.random.default_rng(4)
    a, b = (runs(rng, 3, 150, shift, rng.normal(size=(2, 150))) for shift in (0.9, 0.1))
    assert crossed_difference(roc.area(*a), roc.area(*b)).value == pytest.approx(roc.auc(*a).value - roc.auc(*b).value)
    found = crossed_difference(roc.share_above(*a, fpr=0.05), roc.share_above(*b, fpr=0.05))
    assert found.value == pytest.approx(roc.tpr_at_fpr(*a, 0.05).value - roc.tpr_at_fpr(*b, 0.05).value)
