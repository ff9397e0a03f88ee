"""The surest guesses, and guesses of numbers, against a plain count and scikit-learn."""

import numpy as np
import pytest
from sklearn.metrics import r2_score

from dp_leakage.metrics.guesses import _beside, explained, right_of_surest
from dp_leakage.metrics.intervals import crossed, wilson

RUNS, N, FEATURES = 3, 200, 4


def world(seed: int):
    rng = np.random.default_rng(seed)
    member = rng.random((RUNS, N)) < 0.5
    confidence = rng.random((RUNS, N, FEATURES))
    right = rng.random((RUNS, N, FEATURES)) < confidence
    return rng, member, confidence, right


def test_the_surest_guesses_about_members_are_counted_by_themselves():
    _, member, confidence, right = world(0)
    shares = []
    for r in range(RUNS):
        guesses = [(confidence[r, i, f], right[r, i, f]) for i in np.flatnonzero(member[r]) for f in range(FEATURES)]
        surest = sorted(guesses, reverse=True)[: round(0.1 * len(guesses))]
        shares.append(np.mean([one for _, one in surest]))
    found = right_of_surest(right, confidence, member)
    assert found.value == pytest.approx(np.mean(shares))
    assert found.value > 0.85
    assert found.blocks[0].mean() == pytest.approx(0, abs=1e-12)
    np.testing.assert_allclose(found.blocks[0].mean(axis=1), shares - np.mean(shares), atol=1e-12)


def test_r2_is_that_of_scikit_learn():
    rng, member, _, _ = world(1)
    true = rng.normal(size=(1, N, FEATURES)) * [1.0, 3.0, 0.1, 5.0] + np.zeros((RUNS, 1, 1))
    guess = true + rng.normal(size=true.shape) * true.std(axis=(0, 1))
    each = [r2_score(true[r][member[r]], guess[r][member[r]]) for r in range(RUNS)]
    found = explained(true, guess, member)
    assert found.value == pytest.approx(np.mean(each))
    np.testing.assert_allclose(found.blocks[0].mean(axis=1), each - np.mean(each), atol=1e-12)
    assert explained(true, true, member).value == 1.0


def test_intervals_hold_the_truth():
    """Of 300 worlds each: 15 intervals are expected to miss, more than 28 have a chance of .0006."""
    missed = np.zeros(2, int)
    for seed in range(300):
        rng = np.random.default_rng(seed)
        member = rng.random((RUNS, N)) < 0.5
        own = np.sqrt(0.5) * rng.normal(size=(1, N, 1))
        confidence = own + np.sqrt(0.5) * rng.normal(size=(RUNS, N, 1))
        right = rng.random((RUNS, N, 1)) < 0.7
        found = crossed(right_of_surest(right, confidence, member), (0.0, 1.0))
        missed[0] += not found.low <= 0.7 <= found.high
        true = rng.normal(size=(1, N, 1)) + np.zeros((RUNS, 1, 1))
        found = crossed(explained(true, true + 0.5 * rng.normal(size=(RUNS, N, 1)), member))
        missed[1] += not found.low <= 0.75 <= found.high
    assert (missed <= 28).all(), missed


def test_surest_guesses_that_are_all_right_are_as_few_as_their_records():
    confidence = np.linspace(0, 1, 100)[None, :, None]
    member = np.ones((1, 100), bool)
    found = crossed(right_of_surest(np.ones((1, 100, 1), bool), confidence, member), (0.0, 1.0))
    assert found == wilson(1.0, 10)


def test_as_few_records_bear_the_difference_from_imputation():
    """Both are right about all that they are surest of: one guess of each of 20 records, or all of 2."""
    member, right = np.ones((1, 20), bool), np.ones((1, 20, 10), bool)
    spread = np.zeros((1, 20, 10))
    spread[0, :, 0] = 1 + np.arange(20)  # the one surest guess of each record
    few = np.where(np.arange(20) < 2, 1.0, 0.0)[None, :, None] + np.zeros((1, 20, 10))
    both = [right_of_surest(right, one, member) for one in (spread, few)]
    assert [one.judged for one in both] == [20, 2]
    added = _beside("attribute_ppv", both, (0.0, 1.0), {})[-1]
    assert (added["low"], added["high"]) == pytest.approx(tuple(2 * end - 1 for end in wilson(0.5, 2)[1:]))


@pytest.mark.parametrize("members", [50, 100, 200])
def test_few_surest_guesses_hold_the_truth(members):
    """Of 1,000 worlds where 95 % of the surest are right; at a coverage of .95 fewer than .93 have a chance of .003."""
    rng = np.random.default_rng(members)
    member, held = np.ones((1, members), bool), 0
    for _ in range(1000):
        right = rng.random((1, members, 1)) < 0.95
        found = crossed(right_of_surest(right, rng.random((1, members, 1)), member), (0.0, 1.0))
        held += found.low <= 0.95 <= found.high
    assert held / 1000 >= 0.93
