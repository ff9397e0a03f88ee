"""References that are unlike the model under attack are found; those that are like it seldom raise an alarm."""

import numpy as np
import pytest

from dp_leakage.metrics.resemblance import resemblance


def models(rng, count, inside, outside, n=600, half=True):
    """Whether models are right, with these accuracies on the records that they were trained on and on the others."""
    trained_on = rng.random((count, n)) < 0.5 if half else np.zeros((count, n), dtype=bool)
    return rng.random((count, n)) < np.where(trained_on, inside, outside), trained_on


@pytest.mark.parametrize(
    ("inside", "outside", "found"),
    [(0.75, 0.7, {"gap"}), (0.95, 0.5, {"accuracy", "gap"}), (0.8, 0.55, {"accuracy"}), (0.95, 0.7, set())],
)
def test_references_unlike_in_accuracy_or_gap_are_found(inside, outside, found):
    rng = np.random.default_rng(1)
    like = resemblance(*models(rng, 1, 0.95, 0.7), *models(rng, 16, inside, outside))
    assert like.unlike().keys() == found
    assert like.accuracy.reference == pytest.approx(outside, abs=0.02)
    assert like.gap.reference == pytest.approx(inside - outside, abs=0.02)


@pytest.mark.parametrize("count", [2, 4, 16])
def test_references_like_the_model_raise_an_alarm_in_at_most_two_of_a_hundred(count):
    """Each of the two numbers at 99 %; with 300 studies more than 13 alarms have a chance of one in a hundred."""
    rng = np.random.default_rng(2)
    draws = [resemblance(*models(rng, 1, 0.9, 0.7, 200), *models(rng, count, 0.9, 0.7, 200)) for _ in range(300)]
    assert sum(bool(like.unlike()) for like in draws) <= 13


def test_references_that_were_trained_on_none_of_the_records_have_no_gap():
    rng = np.random.default_rng(3)
    like = resemblance(*models(rng, 1, 0.9, 0.7), *models(rng, 4, 0.9, 0.3, half=False))
    assert like.gap is None
    assert like.unlike().keys() == {"accuracy"}


def test_references_that_saw_none_are_compared_on_the_records_that_the_model_did_not_see():
    """The others' labels are noisier than the members', for all models alike."""
    rng = np.random.default_rng(4)
    member = np.arange(600) < 300
    right = rng.random((5, 600)) < np.where(member, 0.9, 0.6)
    like = resemblance(right[:1], member[None], right[1:], np.zeros((4, 600), dtype=bool))
    assert like.unlike() == {}
    assert like.accuracy.reference == pytest.approx(0.6, abs=0.05)
