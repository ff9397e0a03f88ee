from datetime import date

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image

from dp_leakage.common.errors import UserError
from dp_leakage.data import load
from dp_leakage.data.persons import effective, likely_persons, numbered_files, owners
from dp_leakage.data.profile import profile, several_per_person
from dp_leakage.data.sources import images
from dp_leakage.data.splits import split_persons

N = 400


def _frame(**columns) -> pd.DataFrame:
    rng = np.random.default_rng(0)
    return pd.DataFrame({"age": rng.integers(18, 90, N), "y": np.arange(N) % 2, **columns})


@pytest.mark.parametrize(
    "name", ["patient", "Patient ID", "user_id", "userId", "customer.no", "pid", "ID", "study_subject", "visit_id"]
)
@pytest.mark.parametrize("kind", ["whole", "text", "gaps"])
def test_a_column_called_like_a_person_with_several_records_each_is_found(name, kind):
    values = np.arange(N) % 50
    column = {"whole": values, "text": [f"p{v:03}" for v in values], "gaps": np.where(values == 0, np.nan, values)}[
        kind
    ]
    assert likely_persons(_frame(**{name: column}), ["y"], 100) == ((name, 49 if kind == "gaps" else 50),)


def test_texts_too_many_for_categories_are_found_under_any_name():
    assert likely_persons(_frame(who=[f"n{v % 150}" for v in range(N)]), ["y"], 100) == (("who", 150),)


@pytest.mark.parametrize(
    ("name", "values"),
    [
        ("patient", np.arange(N)),  # one record each
        ("is_customer", np.arange(N) % 2),  # a flag
        ("user", np.arange(N) % 50 / 7),  # a measurement
        ("rooms", np.arange(N) % 50),  # whole numbers of another name
        ("persons_in_car", np.arange(N) % 50),
        ("account_balance", np.arange(N) % 50),
        ("color", [f"c{v % 50}" for v in range(N)]),  # few enough to be categories
        ("paid", np.arange(N) % 50),
        ("user", (np.arange(N) % 2).astype(bool)),
    ],
)
def test_other_columns_are_not(name, values):
    assert likely_persons(_frame(**{name: values}), ["y"], 100) == ()


def test_the_label_is_not_a_person_here():
    assert likely_persons(_frame(speaker=np.arange(N) % 50), ["y", "speaker"], 100) == ()


@pytest.mark.parametrize("extra", [{}, {"drop": ["patient"]}, {"key": "patient"}])
def test_the_remarks_warn_of_it_as_a_feature_and_where_it_is_none(tmp_path, extra):
    file = tmp_path / "visits.csv"
    _frame(patient=np.arange(N) % 50).to_csv(file, index=False)
    raw = load({"path": str(file), "label": "y", **extra}, tmp_path)
    roles = {"pool": np.arange(0, 200), "target_nonmembers": np.arange(200, 400)}
    said = [remark for remark in profile(raw, roles) if remark.startswith("Column 'patient' seems to name persons")]
    assert len(said) == 1
    assert "50 values in 400 records" in said[0]


def test_bundled_tables_are_not_warned_of(tmp_path):
    for source in ("breast_cancer", "digits"):
        assert load({"source": source}, tmp_path).persons == ()


def test_lists_in_a_parquet_file_are_passed_over(tmp_path):
    file = tmp_path / "visits.parquet"
    _frame(user=[[v % 50] for v in range(N)]).to_parquet(file)
    assert load({"path": str(file), "label": "y", "drop": ["user"]}, tmp_path).persons == ()


# ---------------------------------------------------------------------- whose record it is
@pytest.mark.parametrize("ending", ["csv", "parquet"])
def test_a_table_says_whose_each_record_is(tmp_path, ending):
    file = tmp_path / f"t.{ending}"
    frame = _frame(patient=[f"{v % 50:03d}" for v in range(N)])
    frame.to_csv(file, index=False) if ending == "csv" else frame.to_parquet(file)
    raw = load({"source": ending, "path": str(file), "label": "y", "person": "patient"}, tmp_path)
    assert raw.person.tolist() == [v % 50 for v in range(N)]
    assert raw.people == tuple(f"{v:03d}" for v in range(50))  # 001 is not 1
    assert not any("patient" in name for name in raw.feature_names)
    assert raw.persons == ()


@pytest.mark.parametrize(
    ("values", "words"),
    [
        (["a", None, "b"], "record 1 names no person"),
        (["a", "a", "a"], "names only one person, 'a'"),
        *((["a", missing, "b"], "record 1 names no person") for missing in ("NA", " ? ", "null", "None", "n/a", pd.NA)),
        ([{"a": 1}, "b", "c"], "values of type dict"),
        ([date(2024, 5, 1), date(2024, 5, 2)], "values of type date"),
    ],
)
def test_a_column_that_names_no_persons_is_refused(values, words):
    with pytest.raises(UserError, match=words):
        owners(np.array(values, dtype=object), "t.csv")


def test_times_are_no_persons():
    with pytest.raises(UserError, match="holds dates or times"):
        owners(np.array(["2024-05-01", "2024-05-02"], "datetime64[D]"), "t.csv")


def test_names_that_differ_in_blanks_or_case_are_told(tmp_path):
    file = tmp_path / "t.csv"
    _frame(patient=[("P1", "p1", " p1", "q")[v % 4] for v in range(N)]).to_csv(file, index=False)
    raw = load({"source": "csv", "path": str(file), "label": "y", "person": "patient"}, tmp_path)
    assert len(raw.people) == 4
    assert "3 names differ in blanks or case alone" in raw.notes[0]


@pytest.mark.parametrize(
    "pattern",
    ["((a+)+)+$", "(" * 2000 + "a" + ")" * 2000, "(a{99999999999999999999})"],
)
def test_a_pattern_that_cannot_be_used_is_refused_in_one_sentence_and_in_time(tmp_path, pattern, monkeypatch):
    monkeypatch.setattr(images, "MATCHING", 0.5)
    with pytest.raises(UserError, match="person: "):
        images._owners(["ill/" + "a" * 40 + "!.png"] * 2, pattern, tmp_path)


@given(st.lists(st.integers(0, 30), min_size=40, max_size=200), st.integers(0, 2**32))
def test_nothing_of_a_person_is_on_two_sides(given_persons, seed):
    person = np.unique(given_persons, return_inverse=True)[1].reshape(-1)
    count = int(person.max()) + 1
    if count < 3:
        return
    roles = {"pool": count // 2, "target_nonmembers": count // 3}
    rows = split_persons(person, roles, seed=seed)
    for role, size in roles.items():
        assert len(np.unique(person[rows[role]])) == size
        assert set(rows[role]) == set(np.flatnonzero(np.isin(person, person[rows[role]])))
    assert not set(person[rows["pool"]]) & set(person[rows["target_nonmembers"]])


def test_too_many_persons_are_asked_for():
    with pytest.raises(UserError, match="pool needs 9 persons but only 2 of 2"):
        split_persons(np.array([0, 0, 1]), {"pool": 9}, seed=0)


@given(st.lists(st.integers(1, 9), min_size=2, max_size=40), st.integers(0, 2**32))
def test_a_share_varies_no_more_than_that_of_so_many_independent_records(sizes, seed):
    # If all records of a person are right or wrong together, the share's variance is p(1−p) Σn²/(Σn)².
    person = np.repeat(np.arange(len(sizes)), sizes)
    weights = np.array(sizes) / sum(sizes)
    assert effective(person) == pytest.approx(1 / (weights**2).sum())
    assert 1 <= effective(person) <= len(sizes) + 1e-9


def _files(form: str, persons: int = 12, of_each: int = 5) -> list[str]:
    return [
        form.format(label="ill" if person % 2 else "well", person=person, number=number)
        for person in range(persons)
        for number in range(of_each)
    ]


@pytest.mark.parametrize(
    ("form", "pattern"),
    [
        ("{label}/pat{person:03}_{number}.png", "([^/]+)_[0-9]+[.]"),
        ("{label}/{person}-{number:02}.jpg", "([^/]+)-[0-9]+[.]"),
        ("class_{label}_1/p{person} {number}.tiff", "([^/]+) [0-9]+[.]"),
        ("{label}/p_{person}.{number}.png", "([^/]+)[.][0-9]+[.]"),
    ],
)
@pytest.mark.parametrize("others", [0, 5])
def test_pictures_numbered_behind_a_persons_name_are_found_with_a_pattern_that_is_accepted(
    form, pattern, others, tmp_path
):
    names = [*_files(form), *(f"well/other{k}.png" for k in range(others))]
    found = numbered_files(names, np.array(["ill" in name for name in names]).astype(np.int64))
    assert found.persons == 12 + others
    assert others or found.pattern == pattern
    for name in names:
        (tmp_path / name).parent.mkdir(exist_ok=True)
        Image.fromarray(np.zeros((4, 4), np.uint8)).save(tmp_path / name)
    raw = load({"path": str(tmp_path), "person": found.pattern}, tmp_path)
    sizes = np.bincount(raw.person)
    assert sorted(sizes) == [1] * others + [5] * 12
    (said,) = several_per_person(load({"path": str(tmp_path)}, tmp_path), trained_elsewhere=False)
    assert f"{12 + others} names in {60 + others} records" in said
    assert f"(--person '{found.pattern}')" in said
    assert several_per_person(raw, trained_elsewhere=False) == []


@pytest.mark.parametrize(
    "names",
    [
        _files("{label}/img_{person}{number}.png"),  # two names in all
        _files("{label}/{person}_{number}.png", of_each=1),
        _files("{label}/{person}x{number}.png"),
        [f"c{k // 5}/c{k // 5}_{k}.png" for k in range(60)],  # the classes
    ],
)
def test_other_numbered_pictures_are_not(names):
    _, y = np.unique([name.split("/")[0] for name in names], return_inverse=True)
    assert numbered_files(names, y) is None
