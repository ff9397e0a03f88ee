"""Near-copies are found where they are, at any size, and hardly any where records are merely close by chance."""

import numpy as np
import pytest
from sklearn.datasets import load_breast_cancer, load_digits

from dp_leakage.data import load, resolve
from dp_leakage.data.near_copies import Copies, copy_groups, counted
from dp_leakage.data.profile import profile
from dp_leakage.data.raw import Raw


def jittered(x, copies, jitter, seed=0):
    x = np.repeat(x, copies, axis=0)
    return (x + jitter * x.std(axis=0) * np.random.default_rng(seed).normal(size=x.shape)).astype(np.float32)


def found(x):
    return counted(copy_groups(np.asarray(x, np.float32)))


@pytest.mark.parametrize("load_set", [load_digits, load_breast_cancer])
@pytest.mark.parametrize("jitter", [0.0, 0.0001, 0.02])
def test_real_data_have_no_near_copies_until_they_are_made(load_set, jitter):
    x = load_set().data.astype(np.float32)
    assert found(x).groups == 0
    made = found(jittered(x, 4, jitter))
    assert made.records > 0.95 * made.among
    few = np.concatenate([x[:500], jittered(x[:20], 1, jitter)])
    assert found(few).records >= (40 if jitter < 0.01 else 15)


@pytest.mark.parametrize("n", [60, 120, 250, 2000])
def test_every_equal_pair_is_found_and_so_are_near_ones_from_120_records_on(n):
    x = np.random.default_rng(n).normal(size=(n, 30))
    for jitter in (0.0, 0.05) if n >= 120 else (0.0,):
        both = np.concatenate([x, jittered(x[: n // 10], 1, jitter)])
        group = copy_groups(both.astype(np.float32))
        assert (group[: n // 10] == group[n:]).all()
        assert counted(group).groups <= n // 10 + 1


@pytest.mark.parametrize(
    "drawn",
    [
        lambda rng: rng.normal(size=(2000, 2)),
        lambda rng: rng.normal(size=(2000, 80)),
        lambda rng: np.c_[rng.integers(0, 5, (2000, 6)), rng.normal(size=(2000, 2))],
        lambda rng: np.c_[rng.integers(0, 4, (2000, 3)), rng.integers(0, 2, 2000) * 1e3, rng.normal(size=(2000, 2))],
        lambda rng: np.c_[np.eye(6)[rng.integers(0, 6, 900)], np.eye(9)[rng.integers(0, 9, 900)], rng.normal(size=900)],
        lambda rng: np.c_[np.zeros(400), rng.integers(0, 2, 400)],
        lambda rng: np.zeros((400, 3)),
        lambda rng: rng.normal(size=(5, 3)),
        lambda rng: rng.normal(size=(100, 3)),
    ],
)
def test_chance_hardly_makes_a_group_whatever_the_number_and_kind_of_columns(drawn):
    """At most .05 groups are expected of a data set, so that two in four have a chance of .02 (Poisson)."""
    assert sum(found(drawn(np.random.default_rng(seed))).groups for seed in range(4)) <= 1


@pytest.mark.parametrize(
    "drawn",
    [lambda rng: np.exp(2 * rng.normal(size=(2000, 8))), lambda rng: rng.random((2000, 30)) < 0.3],
)
def test_heavy_tails_and_binary_columns_make_few(drawn):
    """Where density changes within the 20 nearest, or distances are whole numbers, records are no more than .005."""
    assert all(found(drawn(np.random.default_rng(seed))).records <= 10 for seed in range(3))


def test_near_copies_are_seen_beside_columns_of_categories():
    rng = np.random.default_rng(4)
    people = np.c_[np.eye(6)[rng.integers(0, 6, 400)], rng.integers(0, 5, (400, 2)), rng.normal(size=(400, 5))]
    visits = np.repeat(people, 3, axis=0)
    visits[:, -5:] += 0.02 * rng.normal(size=(1200, 5))
    assert found(visits).records > 900


def test_groups_are_numbered_in_the_order_of_their_first_records():
    x = np.random.default_rng(5).normal(size=(60, 6)).astype(np.float32)
    x[[7, 50]] = x[3]
    group = copy_groups(x)
    assert group[[7, 50]].tolist() == [3, 3]
    assert np.array_equal(np.unique(group, return_index=True)[1], np.delete(np.arange(60), [7, 50]))
    assert counted(group) == Copies(records=3, groups=1, among=60)


def test_users_are_told_of_the_first_copy_what_it_hides_and_what_to_do():
    x = np.random.default_rng(2).normal(size=(100, 6)).astype(np.float32)
    roles = {"target_members": np.arange(50), "target_nonmembers": np.arange(50, 100)}
    raw = Raw(x, np.arange(100) % 2, ("a", "b"))
    assert not [words for words in profile(raw, roles) if "nearly so" in words]
    x[60] = x[3]
    (told,) = [words for words in profile(raw, roles) if "nearly so" in words]
    assert told.startswith(
        "2 of 100 records are equal to another one or nearly so, like several pictures of one person"
    )
    assert "copies: together" in told
    (told,) = [words for words in profile(raw, roles, trained_elsewhere=True) if "nearly so" in words]
    assert told.endswith("Keep one record of each group.")


def test_a_source_can_count_copies_as_one_person(tmp_path):
    x = np.random.default_rng(2).normal(size=(100, 6)).astype(np.float32)
    x[90:] = x[:10]
    np.savez(tmp_path / "mine.npz", x=x, y=np.arange(100) % 2)
    raw = load(resolve({"path": str(tmp_path / "mine.npz"), "copies": "together"}), tmp_path)
    assert np.array_equal(raw.person[90:], np.arange(10))
    assert raw.notes[-1].startswith(
        "20 of 100 records are copies of others, or nearly so. Their 10 groups count as one"
    )
    roles = {"pool": np.arange(100)}
    assert not [words for words in profile(raw, roles) if "nearly so" in words]
