import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.datasets import load_digits

from dp_leakage.common.errors import UserError
from dp_leakage.data.splits import automatic_roles, balanced, dealt, duplicates, split

Y = load_digits().target.astype(np.int64)
ROLES = {"target_members": 400, "target_nonmembers": 300, "shadow_pool": 800}


@given(
    labels=st.lists(st.integers(0, 4), min_size=3, max_size=60),
    sizes=st.lists(st.integers(1, 20), min_size=1, max_size=3),
    seed=st.integers(0, 2**32),
    stratified=st.booleans(),
)
@settings(max_examples=200, deadline=None)
def test_roles_have_their_sizes_and_share_no_row_or_are_refused(labels, sizes, seed, stratified):
    y = np.array(labels, np.int64)
    roles = {f"role_{i}": size for i, size in enumerate(sizes)}
    if sum(sizes) > len(y):
        with pytest.raises(UserError):
            split(y, roles, seed=seed, stratified=stratified)
        return
    rows = split(y, roles, seed=seed, stratified=stratified)
    assert list(rows) == list(roles)
    assert {role: len(r) for role, r in rows.items()} == roles
    together = np.concatenate([*rows.values()])
    assert together.dtype == np.int64
    assert len(np.unique(together)) == len(together)
    assert together.min() >= 0
    assert together.max() < len(y)


@pytest.mark.parametrize("stratified", [True, False])
def test_the_same_seed_gives_the_same_rows_and_another_seed_others(stratified):
    first = split(Y, ROLES, seed=1, stratified=stratified)
    again = split(Y, ROLES, seed=1, stratified=stratified)
    other = split(Y, ROLES, seed=2, stratified=stratified)
    for role in ROLES:
        np.testing.assert_array_equal(first[role], again[role])
    assert set(first["target_members"]) != set(other["target_members"])


@pytest.mark.parametrize("stratified", [True, False])
def test_a_later_roles_size_leaves_the_earlier_rows_as_they_are(stratified):
    more = split(Y, ROLES | {"shadow_pool": 900}, seed=1, stratified=stratified)
    less = split(Y, ROLES, seed=1, stratified=stratified)
    for role in ("target_members", "target_nonmembers"):
        np.testing.assert_array_equal(more[role], less[role])


def test_a_stratified_role_has_the_class_shares_to_the_nearest_record():
    y = np.repeat([0, 1, 2], [700, 200, 100])
    rows = split(y, {"a": 100, "b": 33, "c": 500}, seed=0, stratified=True)
    np.testing.assert_array_equal(np.bincount(y[rows["a"]]), [70, 20, 10])
    for role, size in (("b", 33), ("c", 500)):
        assert np.abs(np.bincount(y[rows[role]]) - size * np.array([0.7, 0.2, 0.1])).max() <= 1


def test_stratified_agrees_with_scikit_learn_on_the_counts():
    from sklearn.model_selection import train_test_split

    ours = split(Y, {"a": 450}, seed=0, stratified=True)["a"]
    theirs, _ = train_test_split(np.arange(len(Y)), train_size=450, stratify=Y, random_state=0)
    assert np.abs(np.bincount(Y[ours]) - np.bincount(Y[theirs])).max() <= 1


def test_members_and_nonmembers_are_uniform_draws():
    # Each of 30 rows is a member with probability 1/3; 3,000 seeds: a z over 4.5 in 30 has a false alarm rate of 2e-4.
    counts = np.zeros(30)
    for seed in range(3000):
        counts[split(np.zeros(30, int), {"n": 10, "m": 10}, seed=seed, stratified=False)["m"]] += 1
    assert np.abs(counts - 1000).max() < 4.5 * np.sqrt(3000 * 2 / 9)


def test_rows_come_in_random_order_so_that_a_prefix_is_a_random_subset():
    y = np.repeat([0, 1], 500)
    rows = split(y, {"a": 500}, seed=3, stratified=True)["a"]
    assert 30 < y[rows[:100]].sum() < 70


def test_given_rows_confine_a_role_and_are_drawn_first():
    official = {"target_nonmembers": np.arange(1700, 1797)}
    rows = split(Y, {"target_members": 1600, "target_nonmembers": 90}, seed=0, stratified=False, given=official)
    assert set(rows["target_nonmembers"]) <= set(range(1700, 1797))
    assert not set(rows["target_members"]) & set(rows["target_nonmembers"])
    assert list(rows) == ["target_members", "target_nonmembers"]


@pytest.mark.parametrize(
    ("roles", "official", "words"),
    [
        ({"a": 1000, "b": 900}, None, ["b needs 900", "797 of 1,797", "a: 1,000, b: 900"]),
        ({"a": 0}, None, ["a is 0", "at least 1"]),
        ({"a": -5}, None, ["a is -5"]),
        ({"a": 11}, {"a": np.arange(10)}, ["a needs 11", "only 10"]),
    ],
)
def test_impossible_sizes_are_refused(roles, official, words):
    with pytest.raises(UserError) as refusal:
        split(Y, roles, seed=0, stratified=False, given=official)
    for word in words:
        assert word in str(refusal.value)


def test_automatic_roles_fit_any_number_of_records():
    for n in (10, 569, 1797):
        sizes = automatic_roles(n, ["target_members", "target_nonmembers", "shadow_pool", "reference_pool"])
        assert n - len(sizes) < sum(sizes.values()) <= n
        assert sizes["target_members"] == sizes["target_nonmembers"]
        assert sizes["shadow_pool"] >= 2 * sizes["target_members"]
    assert automatic_roles(100, ["target_members", "target_nonmembers"]) == {
        "target_members": 50,
        "target_nonmembers": 50,
    }


def test_balanced_keeps_large_classes_and_draws_equally():
    y = np.repeat([0, 1, 2, 3], [5, 14, 20, 2])
    np.testing.assert_array_equal(np.bincount(y[balanced(y, 14)]), [0, 14, 20])
    drawn = balanced(y, per_class=5, seed=1)
    np.testing.assert_array_equal(np.bincount(y[drawn]), [5, 5, 5])
    np.testing.assert_array_equal(drawn, np.sort(drawn))
    assert set(drawn) != set(balanced(y, per_class=5, seed=2))
    assert len(balanced(y, 99)) == 0


def test_duplicates_are_counted_within_and_across_roles():
    x = np.array([[1, 2], [1, 2], [3, 4], [0.0, 5], [-0.0, 5], [7, 8]], np.float32)
    roles = {"a": np.array([0, 2, 3]), "b": np.array([1, 4, 5])}
    assert duplicates(x, roles) == {("a", "b"): 2}
    assert duplicates(x, {"all": np.arange(6)}) == {("all", "all"): 2}
    assert duplicates(x, {"a": np.array([0]), "b": np.array([2])}) == {}


@pytest.mark.parametrize(("n", "size", "models"), [(100, 50, 16), (101, 50, 6), (90, 30, 9), (90, 60, 9), (7, 6, 14)])
def test_dealt_records_are_in_as_many_models_as_can_be(n, size, models):
    rows = dealt(n, size, models, seed=3)
    assert rows.shape == (models, size)
    assert all(len(set(own)) == size and set(own) <= set(range(n)) for own in rows.tolist())
    held = np.zeros(n, dtype=int)
    np.add.at(held, rows.ravel(), 1)
    shuffles = -(-models // max(n // min(size, n - size), 1))
    assert held.max() - held.min() <= shuffles * (n % min(size, n - size) > 0)
    np.testing.assert_array_equal(dealt(n, size, models - 1, seed=3), rows[:-1])


def test_dealt_halves_are_complementary():
    rows = dealt(40, 20, 4, seed=0)
    for first, second in (rows[:2], rows[2:]):
        np.testing.assert_array_equal(np.sort(np.concatenate([first, second])), np.arange(40))
    assert set(rows[0]) != set(rows[2])
