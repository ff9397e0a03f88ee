"""The interval of an accuracy holds over people with several records each, and is no wider than it must be."""

import numpy as np
import pytest

from dp_leakage.metrics.intervals import wilson
from dp_leakage.metrics.people import RightAnswers, as_independent, over_people
from dp_leakage.release.accuracy import accuracy_of


def answers(rng, people, share, alike):
    """Right answers of people with 1, 2, … records, and whose they are.

    A person's chance of a right answer is drawn around ``share``; two answers of one person correlate by ``alike``.
    """
    person = np.repeat(np.arange(people), 1 + rng.poisson(5, people))
    scale = (1 - alike) / alike
    chance = rng.beta(share * scale, (1 - share) * scale, people)
    return rng.random(len(person)) < chance[person], person


def test_it_is_as_wide_as_a_bootstrap_over_people_finds_and_wider_than_over_records():
    rng = np.random.default_rng(4)
    right, person = answers(rng, 80, 0.86, 0.5)
    rows = [np.flatnonzero(person == one) for one in range(80)]
    again = [right[np.concatenate([rows[one] for one in rng.integers(0, 80, 80)])].mean() for _ in range(4000)]
    low, high = np.quantile(again, [0.025, 0.975])
    found = over_people(right, person)
    assert found.value == right.mean()
    assert found.high - found.low == pytest.approx(high - low, rel=0.1)
    independent = wilson(found.value, len(right))
    assert found.high - found.low > 1.7 * (independent.high - independent.low)


# 1,000 studies each: if 93 % of the intervals hold, more than 9.5 % of 1,000 fail with a chance of .002.
@pytest.mark.parametrize(
    ("people", "share", "alike"), [(5, 0.6, 0.5), (10, 0.7, 0.2), (20, 0.86, 0.1), (80, 0.86, 0.5)]
)
def test_it_holds_the_truth_with_few_people_too(people, share, alike):
    rng = np.random.default_rng(people)
    found = [over_people(*answers(rng, people, share, alike)) for _ in range(1000)]
    assert np.mean([one.low <= share <= one.high for one in found]) > 0.905


def test_a_hundred_records_of_each_person_say_no_more_than_one_if_they_are_alike():
    one = np.arange(30) % 5 > 0
    found = over_people(np.repeat(one, 100), np.repeat(np.arange(30), 100))
    alone = wilson(0.8, 30)
    assert alone.high - alone.low < found.high - found.low < 1.1 * (alone.high - alone.low)


def test_equal_answers_of_all_count_one_for_each_person():
    assert over_people(np.ones(60, bool), np.repeat(np.arange(6), 10)) == wilson(1.0, 6)
    assert over_people(np.ones(60, bool), np.zeros(60, int)) == wilson(1.0, 1)


def test_who_has_one_record_each_has_the_interval_of_independent_records():
    right = np.arange(50) % 4 > 0
    assert over_people(right, np.arange(50)) == wilson(right.mean(), 50)
    told = accuracy_of(right, np.arange(50) % 3, None)
    assert told["accuracy_interval"] == list(wilson(right.mean(), 50)[1:])
    assert told["largest_class"] == 17 / 50
    assert "accuracy_persons" not in told


def test_several_models_on_the_same_records_share_one_number():
    rng = np.random.default_rng(6)
    right, person = answers(rng, 80, 0.86, 0.5)

    def number(*models):
        return as_independent(RightAnswers.of(np.stack(models), person))

    one = number(right)
    assert number(right, right) == pytest.approx(one)
    other, _ = answers(np.random.default_rng(7), 80, 0.86, 0.5)
    other = np.resize(other, len(right))
    both = number(right, other)
    assert min(one, number(other)) <= both <= max(one, number(other))
