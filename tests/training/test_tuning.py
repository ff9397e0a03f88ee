"""What a learning rate is tried with: the cell's own steps, on records that it shares with nobody."""

from dataclasses import replace

import numpy as np
import pytest

from dp_leakage.training.settings import TrainingSettings
from dp_leakage.training.tuning import folds, same_steps, with_rate

TRAINING = TrainingSettings("adam", learning_rate=0.01, epochs=60, batch_size=50, evaluate_every=20)


def test_each_fold_is_judged_by_models_that_did_not_train_on_it():
    rows = np.random.default_rng(0).permutation(101)
    train, judge = folds(rows, 4)
    assert train.shape == (4, 75)
    assert judge.shape == (4, 25)
    for own, other in zip(train, judge, strict=True):
        assert not set(own) & set(other)
    assert len(set(judge.ravel())) == 100


@pytest.mark.parametrize(("records", "members"), [(800, 400), (400, 400)])
@pytest.mark.parametrize("available", [100, 150, 300])
def test_steps_and_batches_are_those_of_the_cell(records, members, available):
    found = same_steps(TRAINING, records, members, available)
    assert found.batch_size == 50 * members / records  # by coins half of a batch of 50 are in
    steps = 60 * np.ceil(records / 50)
    assert found.epochs * np.ceil(available / found.batch_size) == pytest.approx(steps, rel=0.01)
    assert found.evaluate_every == found.epochs
    assert (found.learning_rate, found.optimizer) == (0.01, "adam")


def test_whole_classes_are_drawn_as_often_as_in_the_cell():
    found = same_steps(replace(TRAINING, batch_size=160), 800, 400, 100, by_groups=True)
    assert (found.batch_size, found.epochs) == (20, 60)


def test_a_rate_that_falls_keeps_the_shape_of_its_fall():
    assert with_rate(TRAINING, 0.5) == replace(TRAINING, learning_rate=0.5)
    falling = with_rate(replace(TRAINING, final_learning_rate=0.001), 0.05)
    assert falling.final_learning_rate == pytest.approx(0.005)
