"""Canaries: the training set keeps its size, pairs are neighbours, and each kind is what it says."""

import numpy as np
import pytest

from dp_leakage.data.canaries import place
from dp_leakage.data.dataset import Dataset
from dp_leakage.errors import UserError

RNG = np.random.default_rng(0)
DATA = Dataset(
    RNG.normal(size=(200, 5)).astype(np.float32),
    np.arange(200) % 4,
    {"target_members": np.arange(80), "target_nonmembers": np.arange(80, 180)},
    np.array([], dtype=np.int64),
)
COUNTS = {"natural": 5, "mislabelled": 6, "gradient": 7}
PLACED = place(DATA, COUNTS, 3)


def test_with_either_record_of_each_pair_the_training_set_has_its_usual_size():
    assert len(PLACED.fixed) + len(PLACED.held) == 80
    assert not {*PLACED.fixed} & {*PLACED.held, *PLACED.other}
    assert len({*PLACED.held, *PLACED.other}) == 2 * 18


def test_both_records_of_a_pair_have_one_label():
    assert (PLACED.y[PLACED.held] == PLACED.y[PLACED.other]).all()


def true_labels(rows):
    """The label in the data of the records with these features."""
    return np.array([DATA.y[np.flatnonzero((DATA.x == x[:5]).all(axis=1))[0]] for x in PLACED.x[rows]])


def test_natural_canaries_are_a_member_and_an_outsider_and_mislabelled_ones_have_wrong_labels():
    for kind, right in (("natural", True), ("mislabelled", False)):
        for rows in (PLACED.held, PLACED.other):
            own = rows[PLACED.kind == kind]
            assert ((PLACED.y[own] == true_labels(own)) == right).all()


def test_gradient_canaries_have_a_feature_of_their_own():
    own = PLACED.kind == "gradient"
    features = PLACED.x[:, 5:]
    assert (np.count_nonzero(features, axis=0) == 2).all()
    assert (PLACED.x[PLACED.held[own]] == -PLACED.x[PLACED.other[own]]).all()
    assert (PLACED.x[PLACED.held[own], :5] == 0).all()


def test_too_many_canaries_are_refused_with_the_number_that_there_can_be():
    with pytest.raises(UserError, match="asks for 81 pairs of records; valid is up to 80"):
        place(DATA, {"natural": 81}, 0)
