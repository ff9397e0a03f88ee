"""Near-copies are seen where they are, and not where records are merely close by chance."""

import numpy as np
import pytest
from sklearn.datasets import load_breast_cancer, load_digits

from dp_leakage.data.near_copies import share_of_near_copies
from dp_leakage.data.profile import MANY_NEAR, profile
from dp_leakage.data.raw import Raw


def jittered(x, copies, jitter, seed=0):
    x = np.repeat(x, copies, axis=0)
    return (x + jitter * x.std(axis=0) * np.random.default_rng(seed).normal(size=x.shape)).astype(np.float32)


@pytest.mark.parametrize("load", [load_digits, load_breast_cancer])
def test_real_data_have_no_near_copies_until_they_are_made(load):
    x = load().data.astype(np.float32)
    assert share_of_near_copies(x) < 0.02
    for jitter in (0.0001, 0.02):
        assert share_of_near_copies(jittered(x, 4, jitter)) > 0.9
    assert share_of_near_copies(np.repeat(x, 2, axis=0)) < 0.02  # equal records are counted elsewhere


@pytest.mark.parametrize(
    "drawn",
    [
        lambda rng: rng.normal(size=(2000, 2)),
        lambda rng: rng.normal(size=(2000, 80)),
        lambda rng: np.exp(2 * rng.normal(size=(2000, 8))),
        lambda rng: rng.random((2000, 30)) < 0.3,
        lambda rng: np.c_[rng.integers(0, 5, (2000, 6)), rng.normal(size=(2000, 2))],
        lambda rng: np.c_[rng.integers(0, 4, (2000, 3)), rng.integers(0, 2, 2000) * 1e3, rng.normal(size=(2000, 2))],
        lambda rng: np.c_[np.eye(6)[rng.integers(0, 6, 900)], np.eye(9)[rng.integers(0, 9, 900)], rng.normal(size=900)],
        lambda rng: np.c_[rng.integers(0, 30, (2000, 2)), rng.normal(size=2000)],
        lambda rng: np.c_[np.zeros(400), rng.integers(0, 2, 400)],
        lambda rng: np.zeros((400, 3)),
    ],
)
def test_there_is_no_false_alarm_whatever_the_number_and_kind_of_columns(drawn):
    assert share_of_near_copies(drawn(np.random.default_rng(1)).astype(np.float32)) < MANY_NEAR / 2


def test_near_copies_are_seen_beside_columns_of_categories():
    rng = np.random.default_rng(4)
    people = np.c_[np.eye(6)[rng.integers(0, 6, 400)], rng.integers(0, 5, (400, 2)), rng.normal(size=(400, 5))]
    visits = np.repeat(people, 3, axis=0)
    visits[:, -5:] += 0.02 * rng.normal(size=(1200, 5))
    assert share_of_near_copies(visits.astype(np.float32)) > 0.9


def test_users_are_told_what_near_copies_hide_and_what_to_do():
    x = jittered(np.random.default_rng(2).normal(size=(150, 6)), 4, 0.02)
    y = np.arange(600) % 2
    roles = {"target_members": np.arange(300), "target_nonmembers": np.arange(300, 600)}
    (told,) = [words for words in profile(Raw(x, y, ("a", "b")), roles) if "nearly" in words]
    assert told.startswith("About 100% of the records are nearly the same as another one")
    assert "Say whose each record is (the source's key person), or keep one record per person" in told
    distinct = np.random.default_rng(3).normal(size=(600, 6)).astype(np.float32)
    assert not any("nearly" in words for words in profile(Raw(distinct, y, ("a", "b")), roles))
