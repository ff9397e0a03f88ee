"""Paired differences."""

import numpy as np

from dp_leakage.metrics import roc
from dp_leakage.metrics.compare import paired_difference


def runs(rng, repeats, n, member_shift, record):
    """Scores of members and non-members that share each record's own part between defenses."""
    noise = rng.normal(size=(2, repeats, n))
    training = 0.1 * rng.normal(size=(repeats, 1))
    return member_shift + training + record[0] + noise[0], record[1] + noise[1]


def test_a_defense_compared_with_itself_differs_by_nothing():
    rng = np.random.default_rng(0)
    scores = runs(rng, 1, 200, 0.5, np.zeros((2, 200)))
    assert paired_difference(roc.area, scores, scores, draws=50) == (0.0, 0.0, 0.0)


def test_pairing_by_record_narrows_the_interval():
    rng = np.random.default_rng(0)
    record = 3 * rng.normal(size=(2, 300))
    a, b = (tuple(r + 0.1 * x for r, x in zip(record, runs(rng, 1, 300, s, 0 * record), strict=True)) for s in (5, 0))
    paired = paired_difference(roc.area, a, b, draws=100)
    separate = np.hypot(*(roc.auc(*s).high - roc.auc(*s).low for s in (a, b)))
    assert paired.high - paired.low < separate / 2
    assert paired.low > 0


def test_the_interval_covers_the_true_difference():
    """Advantage of a fixed threshold over 5 and 5 trainings; 150 draws, 0.88 is undercut once in 5,000 runs at 0.95."""
    rng, draws, hits = np.random.default_rng(1), 150, 0
    flags = [rng.normal(size=10**6) * np.sqrt(2 + 0.01) + s > 0 for s in (0.5, 0.2)]
    truth = flags[0].mean() - flags[1].mean()
    for draw in range(draws):
        record = rng.normal(size=(2, 200))
        a, b = (tuple(s > 0 for s in runs(rng, 5, 200, shift, record)) for shift in (0.5, 0.2))
        found = paired_difference(lambda *s: roc.rate_difference(*s).value, a, b, seed=draw, draws=100)
        hits += found.low <= truth <= found.high
    assert hits / draws >= 0.88
