"""A training that draws single records, where batches count persons."""

import math

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from dp_leakage.privacy.mechanism import Mechanism
from dp_leakage.steps.train import in_records, units_of
from dp_leakage.training.settings import TrainingSettings

POISSON = Mechanism("poisson", noise_multiplier=1.0)


@given(st.lists(st.integers(1, 20), min_size=2, max_size=300), st.integers(1, 300))
def test_a_record_is_drawn_at_the_rate_of_a_person_in_as_many_steps(sizes, batch):
    units, size = np.array(sizes), min(batch, len(sizes))
    own = in_records(TrainingSettings(batch_size=size, epochs=3), POISSON, units)
    records = sum(sizes)
    assert math.ceil(records / own.batch_size) == math.ceil(len(sizes) / size)
    rate, of_persons = own.batch_size / records, size / len(sizes)
    assert of_persons * (1 - 1e-12) <= rate <= of_persons * (1 + 1e-12)


@given(st.lists(st.integers(1, 20), min_size=2, max_size=300), st.integers(1, 300))
def test_plain_training_takes_as_many_steps_of_whole_batches(sizes, batch):
    units, size = np.array(sizes), min(batch, len(sizes))
    for mechanism in (None, Mechanism("shuffle", noise_multiplier=1.0)):
        own = in_records(TrainingSettings(batch_size=size), mechanism, units).batch_size
        assert own == int(own) or own == size
        assert math.ceil(sum(sizes) / own) <= math.ceil(len(sizes) / size)


def test_persons_draw_persons_and_single_records_stay_as_they_are():
    training = TrainingSettings(batch_size=7)
    assert in_records(training, Mechanism("poisson", "person"), np.array([3, 4, 5])) is training
    assert in_records(training, POISSON, np.ones(9, np.int64)) is training
    assert units_of(None, np.arange(5)).tolist() == [1] * 5
    assert units_of(np.array([4, 4, 2, 9]), np.array([0, 1, 3])).tolist() == [2, 1]
