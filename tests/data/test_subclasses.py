"""Subclasses: within classes, all of them used, and random ones blind to the data."""

import numpy as np
import pytest

from dp_leakage.data.subclasses import PARTITIONS, at_random, by_kmeans

RNG = np.random.default_rng(0)
Y = RNG.integers(3, size=300)
X = RNG.normal(size=(300, 4)).astype(np.float32)


@pytest.mark.parametrize("partition", PARTITIONS)
def test_a_subclass_lies_in_one_class_and_a_seed_gives_the_same(partition):
    groups = PARTITIONS[partition](X, Y, 5, 7)
    assert (groups // 5 == Y).all()
    assert set(groups) == set(range(15))
    assert (groups == PARTITIONS[partition](X, Y, 5, 7)).all()


def test_kmeans_finds_planted_clusters():
    center = RNG.integers(4, size=300)
    groups = by_kmeans(X * 0.01 + 10 * np.eye(4, dtype=np.float32)[center], np.zeros(300, dtype=int), 4, 0)
    assert len({*zip(groups, center, strict=True)}) == 4


def test_a_class_with_fewer_records_than_subclasses_has_as_many_as_records():
    assert len(set(by_kmeans(X[:3], np.zeros(3, dtype=int), 5, 0))) == 3


def test_random_subclasses_do_not_look_at_the_features():
    assert (at_random(X, Y, 5, 1) == at_random(-X, Y, 5, 1)).all()
