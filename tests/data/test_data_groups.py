from itertools import pairwise

import numpy as np
import pytest

from dp_leakage.data.dataset import Dataset
from dp_leakage.data.groups import WAYS, Names, groups_of, repeated
from dp_leakage.data.projection import project

CLASSES = ("cat", "dog", "fox")


def dataset(x: np.ndarray, asked: int | None = None, own_values: np.ndarray | None = None) -> Dataset:
    y = np.arange(len(x), dtype=np.int64) % 3
    roles = {"pool": np.arange(asked or len(x)), "target_nonmembers": np.arange(asked or len(x), len(x))}
    return Dataset(x.astype(np.float32), y, roles, np.array([], np.int64), None, own_values)


def by_column(values: np.ndarray, name: str = "age", categories: tuple[str, ...] = ()) -> dict[str, np.ndarray]:
    """The groups of one sensitive column."""
    data = dataset(values[:, None], own_values=values[:, None].astype(np.float32))
    ((_, groups),) = groups_of(data, ["sensitive"], Names(CLASSES, [(name, categories)])).items()
    return groups


def ends(name: str) -> tuple[float, float]:
    """The two ends of an interval, of which the upper one is inside."""
    words = name.split()
    low, high = ([float(word) for before, word in pairwise(words) if before == of] for of in ("over", "to"))
    return (low or [-np.inf])[0], (high or [np.inf])[0]


def test_each_way_deals_every_record_that_is_asked_about_to_one_group_of_the_users_own_name():
    rng = np.random.default_rng(0)
    own = np.stack([rng.integers(0, 2, 120), rng.integers(18, 90, 120)], axis=1).astype(np.float32)
    names = Names(CLASSES, [("sex", ("female", "male")), ("age", ())])
    found = groups_of(dataset(rng.random((120, 5)), 100, own), WAYS, names)
    assert list(found) == ["class", "sex", "age", "duplicates"]
    for groups in found.values():
        assert sorted(np.concatenate(list(groups.values()))) == list(range(100))
    assert list(found["class"]) == list(CLASSES)
    np.testing.assert_array_equal(found["class"]["dog"], np.arange(1, 100, 3))
    np.testing.assert_array_equal(found["sex"]["male"], np.flatnonzero(own[:100, 0] == 1))
    ages = own[:100, 1]
    for name, rows in found["age"].items():
        low, high = ends(name)
        np.testing.assert_array_equal(rows, np.flatnonzero((low < ages) & (ages <= high)))
    assert [len(rows) for rows in found["age"].values()] == pytest.approx([25] * 4, abs=5)  # equal ages stay together
    assert list(found["duplicates"]) == ["once"]


def test_few_numbers_are_groups_of_their_own_in_as_many_digits_as_tell_them_apart():
    assert list(by_column(np.resize([0.5, 2, 16777216, 16777218], 40))) == ["0.5", "2", "16777216", "16777218"]


def test_equal_numbers_stay_in_one_quarter():
    groups = by_column(np.repeat(np.arange(12.0), [40, *[5] * 11]))
    sizes = {"up to 0": 40, "over 0 up to 2": 10, "over 2 up to 7": 25, "over 7": 20}
    assert {name: len(rows) for name, rows in groups.items()} == sizes


@pytest.mark.parametrize("scale", [1e-4, 1.0, 1e5])
def test_the_names_of_quarters_hold_no_number_of_a_record(scale):
    """Names stand in tables and figures that others get; the ends of a quarter would each be one record's own."""
    values = (np.random.default_rng(2).normal(3, 1, 200) * scale).astype(np.float32)
    groups = by_column(values)
    told = {end for name in groups for end in ends(name)}
    assert not told & set(values.tolist())
    assert [len(rows) for rows in groups.values()] == pytest.approx([50] * 4, abs=5)
    for name, rows in groups.items():
        low, high = ends(name)
        np.testing.assert_array_equal(rows, np.flatnonzero((np.float32(low) < values) & (values <= np.float32(high))))


def test_most_records_with_one_number_leave_fewer_groups_than_quarters():
    groups = by_column(np.repeat(np.arange(12.0), [160, *[2] * 11]))
    assert {name: len(rows) for name, rows in groups.items()} == {"up to 0": 160, "over 0": 22}


def test_a_column_that_is_called_as_a_way_is_told_from_it():
    data = dataset(np.zeros((6, 1)), own_values=np.zeros((6, 1), np.float32))
    found = groups_of(data, ["class", "sensitive"], Names(CLASSES, [("class", ("first", "second"))]))
    assert list(found) == ["class", "column class"]
    assert list(found["column class"]) == ["first"]


@pytest.mark.parametrize("method", ["none", "pca"])
def test_records_that_occur_twice_are_found_after_a_projection_too(method):
    rng = np.random.default_rng(1)
    x = rng.random((400, 30)).astype(np.float32)
    twins = rng.permutation(400)[:60]
    x[twins[30:]] = x[twins[:30]]
    data = dataset(x, 300)
    settings = {"scale": "standard", "method": method, **({"components": 12} if method == "pca" else {})}
    projected, _ = project(data, settings, 0)
    np.testing.assert_array_equal(np.flatnonzero(repeated(projected.x)), np.sort(twins))
    groups = groups_of(projected, ["duplicates"], Names(CLASSES))["duplicates"]
    np.testing.assert_array_equal(groups["several times"], np.sort(twins[twins < 300]))
