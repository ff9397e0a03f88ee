import numpy as np
import pytest

from dp_leakage.data.dataset import Dataset
from dp_leakage.data.groups import QUARTERS, WAYS, groups_of, repeated
from dp_leakage.data.projection import project


def dataset(x: np.ndarray, sensitive: list[int], asked: int | None = None) -> Dataset:
    y = np.arange(len(x), dtype=np.int64) % 3
    roles = {"pool": np.arange(asked or len(x)), "target_nonmembers": np.arange(asked or len(x), len(x))}
    return Dataset(x.astype(np.float32), y, roles, np.array(sensitive, np.int64))


def test_each_way_deals_every_record_that_is_asked_about_to_one_group():
    rng = np.random.default_rng(0)
    x = np.stack([rng.integers(0, 2, 120), rng.normal(size=120)], axis=1)
    found = groups_of(dataset(x, [0, 1], 100), WAYS)
    assert list(found) == ["class", "column 0", "column 1", "duplicates"]
    for groups in found.values():
        assert sorted(np.concatenate(list(groups.values()))) == list(range(100))
    assert set(found["class"]) == {"0", "1", "2"}
    np.testing.assert_array_equal(found["column 0"]["1"], np.flatnonzero(x[:100, 0] == 1))
    assert list(found["column 1"]) == list(QUARTERS)
    assert [len(rows) for rows in found["column 1"].values()] == [25] * 4
    tops = [x[rows, 1].max() for rows in found["column 1"].values()]
    assert tops == sorted(tops)
    assert list(found["duplicates"]) == ["once"]


def test_equal_values_stay_in_one_quarter():
    x = np.repeat(np.arange(12.0), [40, *[5] * 11])[:, None]
    groups = groups_of(dataset(x, [0]), ["sensitive"])["column 0"]
    assert 0 not in x[np.concatenate([rows for name, rows in groups.items() if name != QUARTERS[0]]), 0]


@pytest.mark.parametrize("method", ["none", "pca"])
def test_records_that_occur_twice_are_found_after_a_projection_too(method):
    rng = np.random.default_rng(1)
    x = rng.random((400, 30)).astype(np.float32)
    twins = rng.permutation(400)[:60]
    x[twins[30:]] = x[twins[:30]]
    data = dataset(x, [], 300)
    settings = {"scale": "standard", "method": method, **({"components": 12} if method == "pca" else {})}
    projected, _ = project(data, settings, 0)
    np.testing.assert_array_equal(np.flatnonzero(repeated(projected.x)), np.sort(twins))
    groups = groups_of(projected, ["duplicates"])["duplicates"]
    np.testing.assert_array_equal(groups["several times"], np.sort(twins[twins < 300]))
