"""Measures of use: scikit-learn's own numbers, intervals that hold, paired losses, and the default for rare classes."""

from dataclasses import replace

import numpy as np
import pytest
from registries import unchanged
from sklearn import metrics as sk

from dp_leakage import plugins
from dp_leakage.common.errors import UserError
from dp_leakage.common.utilities import ACCURACY, UTILITIES
from dp_leakage.metrics.contrast import kept_use
from dp_leakage.metrics.utility import BLOCKS, Use, guessed_use, lost_use, measured_use, utility_for

OTHERS = [name for name in UTILITIES if name != ACCURACY]


def outcomes(rng, n=400, models=3, rare=0.1, skill=1.5, classes=2):
    """Classes (n,) and what models say of them (models, n, classes), with errors of records and of models."""
    y = rng.choice(classes, n, p=[1 - rare, *[rare / (classes - 1)] * (classes - 1)])
    y[:classes], y[classes : 2 * classes] = np.arange(classes), np.arange(classes)
    score = skill * np.eye(classes)[y] + rng.normal(size=(n, classes)) + rng.normal(size=(models, n, classes)) / 2
    told = np.exp(score)
    return y, told / told.sum(axis=2, keepdims=True)


def test_of_two_classes_each_is_what_scikit_learn_computes_about_the_rarer():
    y, told = outcomes(np.random.default_rng(0))
    expected = {
        "balanced_accuracy": [sk.balanced_accuracy_score(y, one.argmax(1)) for one in told],
        "auroc": [sk.roc_auc_score(y, one[:, 1]) for one in told],
        "average_precision": [sk.average_precision_score(y, one[:, 1]) for one in told],
        "f1": [sk.f1_score(y, one.argmax(1)) for one in told],
    }
    assert list(expected) == OTHERS
    for name, values in expected.items():
        assert measured_use(name, y, told, y).values == pytest.approx(values, abs=1e-12)
        flipped = measured_use(name, 1 - y, told[:, :, ::-1], 1 - y)  # the rarer class is now the first
        assert flipped.values == pytest.approx(values, abs=1e-12)


def test_of_more_classes_they_are_means_over_each_against_all_others():
    y, told = outcomes(np.random.default_rng(1), classes=3, rare=0.5)
    one = told[0]
    assert measured_use("auroc", y, told, y).values[0] == pytest.approx(
        sk.roc_auc_score(y, one, multi_class="ovr", average="macro"), abs=1e-12
    )
    ranked = [sk.average_precision_score(y == c, one[:, c]) for c in range(3)]
    assert measured_use("average_precision", y, told, y).values[0] == pytest.approx(np.mean(ranked), abs=1e-12)
    assert measured_use("f1", y, told, y).values[0] == pytest.approx(sk.f1_score(y, one.argmax(1), average="macro"))


@pytest.mark.parametrize("name", OTHERS)
def test_influences_are_those_of_leaving_records_out(name):
    """With as many blocks as records, the jackknife of scikit-learn's own function."""
    y, told = outcomes(np.random.default_rng(2), n=80, models=1, rare=0.3)
    score = {
        "balanced_accuracy": lambda y, p: sk.balanced_accuracy_score(y, p.argmax(1)),
        "auroc": lambda y, p: sk.roc_auc_score(y, p[:, 1]),
        "average_precision": lambda y, p: sk.average_precision_score(y, p[:, 1]),
        "f1": lambda y, p: sk.f1_score(y, p.argmax(1)),
    }[name]
    left_out = np.array([score(np.delete(y, i), np.delete(told[0], i, axis=0)) for i in range(len(y))])
    found = measured_use(name, y, told, y)
    assert found.influences.shape == (1, 80)
    assert np.sort(found.influences[0]) == pytest.approx(np.sort((80 - 1) * (left_out.mean() - left_out)), abs=1e-9)


def test_guessing_scores_the_best_that_one_answer_for_all_records_can():
    y, _ = outcomes(np.random.default_rng(3), rare=0.2)
    rare = y.mean()
    expected = {"balanced_accuracy": 0.5, "auroc": 0.5, "average_precision": rare, "f1": 2 * rare / (1 + rare)}
    for name, value in expected.items():
        assert guessed_use(name, y, y, 2).value == pytest.approx(value, abs=1e-12)


@pytest.mark.parametrize("name", ["auroc", "average_precision"])
def test_intervals_hold_for_new_records_and_models_as_often_as_they_say(name):
    """200 studies of 300 records with 6 models each: 95 % hold; fewer than 89 % do by chance once in 1,000 times."""
    rng = np.random.default_rng(4)
    y, told = outcomes(rng, n=40_000, models=40)
    truth = measured_use_values(name, y, told).mean()
    held = []
    for _ in range(200):
        y, told = outcomes(rng, n=300, models=6)
        found = measured_use(name, y, told, y).estimate
        held.append(found.low <= truth <= found.high)
    assert np.mean(held) >= 0.89


def measured_use_values(name, y, told):
    return np.array([UTILITIES[name].score(y, one) for one in told])


def test_losses_against_the_same_records_are_known_better_than_those_against_others():
    rng = np.random.default_rng(5)
    y, told = outcomes(rng, n=600, models=8)
    worse = told**0.5 * np.exp(rng.normal(size=(8, 600, 2)) * 0.3)
    own, base = (measured_use("auroc", y, one / one.sum(axis=2, keepdims=True), y) for one in (worse, told))
    lost = lost_use(own, base)
    assert lost.value == pytest.approx(1 - own.value / base.value)
    apart = np.hypot(*(one.estimate.high - one.estimate.low for one in (own, base))) / base.value
    assert lost.low < lost.value < lost.high
    assert lost.high - lost.low < 0.8 * apart
    same = lost_use(base, base)
    assert same.value == 0
    assert same.low <= 0 <= same.high


def test_the_test_of_a_loss_at_the_limit_errs_as_rarely_as_its_level():
    """240 studies in which a tenth of the AUROC is lost: 5 % pass a test at 5 %; more than 24 once in 1,000 times."""
    rng = np.random.default_rng(6)
    base_value = UTILITIES["auroc"].score(*first(outcomes(rng, n=100_000, models=1, skill=1.5)))
    skills = np.linspace(0.5, 1.5, 41)
    values = [UTILITIES["auroc"].score(*first(outcomes(rng, n=100_000, models=1, skill=one))) for one in skills]
    skill = float(np.interp(0.9 * base_value, values, skills))
    passed = 0
    for _ in range(240):
        state = rng.bit_generator.state
        y, told = outcomes(rng, n=250, models=5)
        rng.bit_generator.state = state  # the same records and their own errors
        same, worse = outcomes(rng, n=250, models=5, skill=skill)
        assert (same == y).all()
        own, base = measured_use("auroc", y, worse, y), measured_use("auroc", y, told, y)
        passed += kept_use(own, base, 0.9).is_above(0.0, 0.05)
    assert passed <= 24


def test_few_records_with_a_long_lower_tail_pass_a_test_little_more_often_than_its_level():
    """Ten records of a rare class, exponential ones; at 2.5 %, 59 of 1,000 studies pass, and 90 by symmetric limits."""
    rng, nothing, passed, symmetric = np.random.default_rng(0), Use(np.zeros(1), np.zeros((1, BLOCKS)), BLOCKS), 0, 0
    for _ in range(1000):
        reached = 1 - rng.exponential(size=10)  # 0 on average
        influences = np.zeros((4, BLOCKS))
        influences[:, :10] = BLOCKS / 9 * (reached - reached.mean())
        found = kept_use(Use(reached.mean() + 0.001 * rng.normal(size=4), influences, BLOCKS), nothing)
        passed += found.is_above(0.0, 0.025)
        symmetric += replace(found, third=0.0).is_above(0.0, 0.025)
    assert passed <= 75 < symmetric


def first(found):
    y, told = found
    return y, told[0]


def test_people_are_left_out_with_all_their_records():
    rng = np.random.default_rng(7)
    y, told = outcomes(rng, n=100, models=4)
    person = np.arange(300) % 100
    alone = measured_use("auroc", y, told, y)
    thrice = measured_use("auroc", np.tile(y, 3), np.tile(told, (1, 3, 1)), y, person)
    assert thrice.units == alone.units == 100
    assert thrice.value == pytest.approx(alone.value)
    assert thrice.estimate == pytest.approx(alone.estimate, abs=0.01)
    assert measured_use("auroc", np.tile(y, 3), np.tile(told, (1, 3, 1)), y).influences.shape == (4, BLOCKS)


def test_records_of_one_class_are_refused():
    told = np.full((1, 5, 2), 0.5)
    with pytest.raises(UserError, match="key 'utility': 'auroc' needs test records of two classes or more"):
        measured_use("auroc", np.zeros(5, np.int64), told, np.array([0, 1]))


def test_the_default_leaves_accuracy_where_nine_tenths_have_one_class():
    both, none = np.array([0, 1]), np.array([0, 0])
    assert utility_for(None, np.repeat([0, 1], [89, 11]), both) == "accuracy"
    assert utility_for(None, np.repeat([0, 1], [90, 10]), both) == "auroc"
    assert utility_for(None, np.repeat([0, 1], [90, 10]), none) == "accuracy"  # nothing else can be measured
    assert utility_for(None, np.repeat([0, 1, 2], [5, 90, 5]), both) == "auroc"
    assert utility_for("f1", np.repeat([0, 1], [90, 10]), none) == "f1"


PLUGIN = """\
UTILITY = {"label": "share of sure answers"}


def measure(labels, probabilities):
    return RETURNED
"""


def test_a_plugin_is_a_measure_and_must_return_a_number_from_0_to_1(tmp_path):
    y, told = outcomes(np.random.default_rng(8))
    for place, returned in enumerate(["float((probabilities.max(1) > .9).mean())", "2.0", "'much'"]):
        folder = tmp_path / str(place)
        folder.mkdir()
        (folder / "sure_answers.py").write_text(PLUGIN.replace("RETURNED", returned))
        with unchanged():
            plugins.load([folder])
            assert UTILITIES["sure_answers"].label == "share of sure answers"
            if place == 0:
                found = measured_use("sure_answers", y, told, y)
                assert found.values == pytest.approx((told.max(axis=2) > 0.9).mean(axis=1))
            else:
                with pytest.raises(UserError, match="plugin sure_answers: measure must return a number from 0 to 1"):
                    measured_use("sure_answers", y, told, y)
