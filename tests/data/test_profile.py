from typing import NamedTuple, Self

import numpy as np
import pytest
from sklearn.datasets import load_wine

from dp_leakage.data.profile import profile, single_class
from dp_leakage.data.raw import Column, Raw
from dp_leakage.data.splits import split

RNG = np.random.default_rng(0)


def raw(x=None, y=None, n=2000, **more):
    y = np.arange(n) % 4 if y is None else np.asarray(y)
    x = RNG.standard_normal((len(y), 3)).astype(np.float32) if x is None else x
    names = tuple(f"class{c}" for c in range(int(y.max()) + 1))
    return Raw(x, y.astype(np.int64), names, ("age", "height", "weight")[: x.shape[1]], **more)


class Table(NamedTuple):
    """A column of whole numbers, as it stands or as categories, and one of measurements."""

    x: np.ndarray
    columns: tuple[Column, ...]

    @classmethod
    def of(cls, codes: np.ndarray, categories: bool) -> Self:
        if not categories:
            return cls(cls.beside(codes[:, None]), (Column("code"), Column("height")))
        found = np.unique(codes)
        return cls(cls.beside(codes[:, None] == found), (Column("code", tuple(map(str, found))), Column("height")))

    @staticmethod
    def beside(columns: np.ndarray) -> np.ndarray:
        return np.c_[columns, RNG.normal(size=len(columns))].astype(np.float32)


def roles(n=2000):
    return {"target_members": np.arange(n // 2), "target_nonmembers": np.arange(n // 2, n)}


def test_of_good_data_nothing_is_said():
    assert profile(raw(), roles()) == []


def test_few_records_are_said_with_what_that_costs():
    said = " ".join(profile(raw(n=200), roles(200)))
    assert "Only 100 records are among the members" in said
    assert "standard error of up to 0.07" in said


def test_real_wine_has_too_few_records():
    bundle = load_wine()
    data = raw(bundle.data[:, :3].astype(np.float32), bundle.target)
    said = profile(data, split(data.y, {"target_members": 80, "target_nonmembers": 80}, seed=0, stratified=True))
    assert any("Only 80 records" in sentence for sentence in said)


def test_small_and_absent_classes_are_named_at_most_five():
    y = np.concatenate([np.zeros(900), np.repeat(np.arange(1, 9), 12), np.full(4, 9), np.zeros(1000)]).astype(int)
    y[-1] = 10
    said = profile(raw(y=y), {"target_members": np.arange(1000), "target_nonmembers": np.arange(1000, 2000)})
    text = " ".join(said)
    assert "1 class without any record among the members: class10." in text
    assert "1 class with fewer than 10 records among the members: class9 (4)." in text
    assert "90% of the records among the members are of the class class0" in text
    many = " ".join(profile(raw(y=np.arange(2000) % 400), roles()))
    assert "400 classes with fewer than 10 records among the members: class0 (3), class1 (3)" in many
    assert "and 395 more" in many


def test_people_of_a_class_count_beside_their_records():
    y, person = np.repeat([0, 1], [1960, 40]), np.arange(2000) // 4
    data = raw(y=y, person=person)
    rows = {"pool": np.r_[0:1000, 1980:2000], "target_nonmembers": np.arange(1000, 1960)}
    said = profile(data, rows)
    assert "1 class with fewer than 10 people in the pool: class1 (20 records of 5 people)." in said
    assert "1 class without any record among the non-members: class1." in said
    assert single_class(data, rows) == (
        "all 960 records among the non-members are of the class class0; expected two classes in each part of the "
        "split: of others there are only class1 (40 records of 10 people), so add more people, or "
        "draw another split (SEED)"
    )
    assert single_class(data, {"pool": rows["pool"], "target_nonmembers": np.arange(1000, 1980)}) == ""


def test_one_class_among_the_members_is_said():
    y = np.repeat([0, 1], 1000)
    assert any("nothing to learn" in sentence for sentence in profile(raw(y=y), roles()))


@pytest.mark.parametrize("texts", [False, True])
def test_a_column_that_gives_the_label_away_is_named_and_none_that_is_wrong_once(texts):
    y = RNG.integers(0, 3, 2000)
    codes = (2 * y + RNG.integers(0, 2, 2000)).astype(np.float32)
    table = Table.of(codes, texts)
    (said,) = profile(raw(table.x, y, columns=table.columns), roles())
    assert said.startswith("Column 'code' gives the label away")
    assert "--drop code" in said
    codes[np.argmax(y == 2)] = 0
    table = Table.of(codes, texts)
    assert profile(raw(table.x, y, columns=table.columns), roles()) == []


@pytest.mark.parametrize("first", [0, 123_456_789])
def test_a_column_that_numbers_the_records_is_named_and_none_of_ages_or_measurements(first):
    x = np.stack([first + RNG.permutation(4000)[:2000] * 100, RNG.integers(0, 99, 2000), RNG.normal(size=2000)], axis=1)
    (said,) = profile(raw(x.astype(np.float32)), roles())
    assert said.startswith("Column 'age' has a different whole number in nearly every record")
    assert "--drop age" in said
    assert "--key age" in said


def test_constant_columns_are_named_and_sensitive_ones_apart():
    x = RNG.standard_normal((2000, 3)).astype(np.float32)
    x[:1000, 1] = 7
    data = raw(x, sensitive=np.array([1]))
    said = " ".join(profile(data, roles()))
    assert "1 feature with one value in all records among the members: height." in said
    assert "nothing to guess in height" in said


def test_duplicates_across_the_split_are_counted():
    x = RNG.standard_normal((2000, 3)).astype(np.float32)
    x[1500:1503] = x[:3]
    x[5] = x[6]
    said = profile(raw(x), roles())
    assert "3 records among the members also occur among the non-members, where no attack can tell them apart." in said
    assert "1 record among the members repeats another one there." in said
