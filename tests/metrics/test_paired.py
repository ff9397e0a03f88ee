"""A loss of accuracy is judged record by record: against closed forms, a bootstrap, and simulated truth."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from dp_leakage.metrics.intervals import difference, wilson
from dp_leakage.metrics.measure import measure_training
from dp_leakage.metrics.paired import paired_loss, pairs, right_answers, unpaired_loss
from dp_leakage.metrics.people import ASKED, RIGHT, RightAnswers, covariance


def width(estimate):
    return estimate.high - estimate.low


def table(both, only_own, only_base, neither):
    """One training of each model, from the counts of a 2 × 2 table."""
    counts = (both, only_own, only_base, neither)
    own, base = (np.repeat(np.array(kinds, bool), counts)[None] for kinds in ((1, 1, 0, 0), (1, 0, 1, 0)))
    return RightAnswers.of(own), RightAnswers.of(base)


def drawn(rng, n, own, base, repeats=1, shared=0.9, kept=0.05, trained=0.0, person=None, alike=0.0):
    """Right answers of two models with these accuracies, (R, n) each.

    Of the variance of what is right, ``shared`` belongs to the record, ``kept`` to the record under that model,
    ``trained`` to the training, and the rest to all together; of the first two ``alike`` belongs to the person.
    """
    people = np.arange(n) if person is None else person

    def of_record(share):
        mixed = np.sqrt(alike) * rng.normal(size=people.max() + 1)[people] + np.sqrt(1 - alike) * rng.normal(size=n)
        return np.sqrt(share) * mixed

    def answers(accuracy):
        chance = np.sqrt(1 - shared - kept - trained) * rng.normal(size=(repeats, n))
        model = np.sqrt(trained) * rng.normal(size=(repeats, 1))
        return RightAnswers.of(hard + of_record(kept) + model + chance < stats.norm.ppf(accuracy), person)

    hard = of_record(shared)
    return answers(own), answers(base)


# ---------------------------------------------------------------------- one training each
@pytest.mark.parametrize("counts", [(700, 40, 60, 200), (30, 2, 9, 19), (90, 0, 5, 5)])
def test_it_is_the_difference_of_the_discordant_shares_over_the_accuracy(counts):
    own, base = table(*counts)
    n, (both, only_own, only_base, _) = sum(counts), counts
    found = paired_loss(own, base)
    assert found.value == pytest.approx(1 - (both + only_own) / (both + only_base))
    lost, won = only_base / n, only_own / n
    together = -np.sqrt(lost * won / ((1 - lost) * (1 - won)))
    closed = difference(wilson(lost, n), wilson(won, n), together)
    accuracy = (both + only_base) / n
    # Fieller's correction for the accuracy's own chance is small beside the difference.
    assert found[1:] == pytest.approx([end / accuracy for end in closed[1:]], abs=0.15 * width(closed))


def test_it_is_as_wide_as_a_paired_bootstrap_finds_and_narrower_than_unpaired():
    rng = np.random.default_rng(3)
    own, base = drawn(rng, 2000, 0.85, 0.9)
    again = rng.integers(0, 2000, (4000, 2000))
    kept = own.right[0][again].mean(axis=1) / base.right[0][again].mean(axis=1)
    low, high = np.quantile(1 - kept, [0.025, 0.975])
    found = paired_loss(own, base)
    assert found[1:] == pytest.approx((low, high), abs=0.1 * (high - low))
    alone = unpaired_loss(*(wilson(float(one.accuracies[0]), 2000) for one in (own, base)))
    assert width(found) < 0.7 * width(alone)


@pytest.mark.parametrize("n", [60, 1000, 10_000])
def test_models_that_never_differ_may_differ_on_a_few_records_that_were_not_drawn(n):
    own, base = table(n // 2, 0, 0, n - n // 2)
    found = paired_loss(own, base)
    assert found.value == 0.0
    assert 3 / n < found.high * base.accuracies[0] == -found.low * base.accuracies[0] < 4.2 / n  # the rule of three


def test_models_that_are_always_right_or_never():
    always, never = (RightAnswers.of(np.full((2, 50), right)) for right in (True, False))
    assert paired_loss(always, always).high < 0.1
    assert paired_loss(never, always).value == paired_loss(never, always).high == 1.0
    assert np.isnan(paired_loss(always, never).value)


counts = st.lists(st.integers(0, 40), min_size=4, max_size=4)


@settings(max_examples=60, deadline=None)
@given(counts.filter(lambda kinds: sum(kinds) > 3 and kinds[0] + kinds[2] > 0))
def test_it_holds_its_value_and_knows_no_order(kinds):
    own, base = table(*kinds)
    found = paired_loss(own, base)
    assert found.low <= found.value <= found.high <= 1
    mixed = np.random.default_rng(0).permutation(sum(kinds))
    other = paired_loss(own._replace(right=own.right[:, mixed]), base._replace(right=base.right[:, mixed]))
    assert other == pytest.approx(found, abs=1e-9)


# ---------------------------------------------------------------------- trainings
def test_the_chance_of_trainings_does_not_cancel():
    """All models of a training err on other records than those of the next, equally many under both settings."""
    right = np.ones((4, 300), bool)
    for repeat, wrong in enumerate((10, 30, 50, 70)):
        right[repeat, :wrong] = False
    one = RightAnswers.of(right)
    spread = float(stats.t.ppf(0.975, 3)) * np.std(one.accuracies, ddof=1) / np.sqrt(4)
    assert width(paired_loss(one, one)) > 2 * spread


# ---------------------------------------------------------------------- people
def test_the_covariance_is_what_leaving_out_each_person_shows():
    rng = np.random.default_rng(1)
    asked = rng.integers(1, 6, 15)
    counts = rng.uniform(0, asked, (2, 15))
    without = np.array([[np.delete(each, k).sum() / np.delete(asked, k).sum() for k in range(15)] for each in counts])
    whole = (counts.sum(axis=1) / asked.sum())[:, None]
    expected = 14 / 15 * (without - whole) @ (without - whole).T
    assert covariance(counts, asked) == pytest.approx(expected)


def test_people_with_many_records_that_are_alike_say_no_more_than_one_record_each():
    rng = np.random.default_rng(2)
    own, base = (one.right.astype(bool) for one in drawn(rng, 80, 0.7, 0.8))
    person = np.repeat(np.arange(80), 25)
    many = paired_loss(*(RightAnswers.of(np.repeat(one, 25, axis=1), person) for one in (own, base)))
    alone = paired_loss(RightAnswers.of(own), RightAnswers.of(base))
    assert 0.98 * width(alone) < width(many) < 1.6 * width(alone)


def test_only_the_same_people_pair():
    own, base = table(5, 1, 2, 4)
    assert pairs(own, base)
    assert not pairs(own, RightAnswers.of(np.ones((1, 12), bool), np.arange(12) % 6))
    assert not pairs(*(RightAnswers.of(one.right.astype(bool), np.zeros(12, int)) for one in (own, base)))  # one person


# ---------------------------------------------------------------------- truth
# 600 studies each: if 94 % of the intervals hold, more than 8.5 % fail with a chance of .008.
@pytest.mark.parametrize(
    ("n", "own", "base", "world"),
    [
        (60, 0.8, 0.8, {"shared": 0.995, "kept": 0.005}),
        (60, 0.45, 0.5, {"shared": 0.99, "kept": 0.0}),
        (200, 0.97, 0.99, {}),
        (200, 0.76, 0.8, {"repeats": 4, "trained": 0.002}),
        (300, 0.93, 0.97, {"repeats": 5, "shared": 0.98, "kept": 0.01}),
        (1000, 0.7, 0.8, {"shared": 0.5, "kept": 0.3}),
        (240, 0.8, 0.85, {"person": np.arange(240) // 6, "alike": 0.4}),
        (240, 0.93, 0.97, {"person": np.arange(240) // 12, "alike": 0.3, "repeats": 3, "trained": 0.001}),
    ],
)
def test_it_holds_the_truth(n, own, base, world):
    rng = np.random.default_rng(7)
    truth, missed = 1 - own / base, 0
    for _ in range(600):
        found = paired_loss(*drawn(rng, n, own, base, **world))
        missed += not found.low <= truth <= found.high
    assert missed / 600 <= 0.085


@pytest.mark.parametrize("repeats", [1, 2, 3])
def test_few_trainings_have_an_interval_for_themselves_that_is_of_use(repeats):
    """Accuracies of .85 and .9 ± .03 of 400 records: with two trainings the width was 1 and more. 400 studies."""
    rng, missed, wide = np.random.default_rng(repeats), 0, []
    for _ in range(400):
        accuracies = np.clip(rng.normal([[0.85], [0.9]], 0.03, (2, repeats)), 0.5, 0.99)
        hard = np.sqrt(0.8) * rng.normal(size=400)
        own, base = (
            RightAnswers.of(hard + np.sqrt(0.2) * rng.normal(size=(repeats, 400)) < stats.norm.ppf(each)[:, None])
            for each in accuracies
        )
        found, truth = paired_loss(own, base), 1 - accuracies[0].mean() / accuracies[1].mean()
        missed += not found.low <= truth <= found.high
        wide.append(width(found))
    assert missed / 400 <= 0.085
    assert max(wide) < 0.12


# ---------------------------------------------------------------------- histories
def history(tested, epochs=(1, 2)):
    rows = [
        {"repeat": k, "epoch": epoch, "train_accuracy": 0.9, "test_accuracy": tested.accuracies[k]}
        | ({RIGHT: tested.right[k], ASKED: tested.asked} if epoch == max(epochs) else {RIGHT: None, ASKED: None})
        for k in reversed(range(len(tested.right)))
        for epoch in epochs
    ]
    return pd.DataFrame(rows)


def test_rows_of_a_cell_compare_its_models_with_the_twin_record_by_record():
    rng = np.random.default_rng(4)
    own, base = drawn(rng, 400, 0.85, 0.9, repeats=3)
    kept = right_answers(history(own))
    assert np.array_equal(kept.right, own.right)
    assert np.array_equal(kept.asked, own.asked)
    rows = measure_training(history(own), history(base), n_train=100, n_test=400)
    lost = {row["repeat"]: (row["value"], row["low"], row["high"]) for row in rows if row["metric"] == "accuracy_loss"}
    assert lost["all"] == paired_loss(own, base)
    assert lost["1"] == paired_loss(own._replace(right=own.right[1:2]), base)
    without = history(own).drop(columns=[RIGHT, ASKED])
    assert right_answers(without) is None
    (alone,) = [
        row
        for row in measure_training(without, history(base), n_train=100, n_test=400)
        if (row["metric"], row["repeat"]) == ("accuracy_loss", "all")
    ]
    assert alone["value"] == pytest.approx(lost["all"][0])
    assert alone["high"] - alone["low"] > 1.3 * (lost["all"][2] - lost["all"][1])
