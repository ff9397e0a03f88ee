"""The most exposed records where coins put them in and out: how often each is named, and what it is."""

import numpy as np
import pandas as pd

from dp_leakage.data.raw import Raw
from dp_leakage.report import tables
from dp_leakage.report.exposed import described, most_exposed


def planted() -> pd.DataFrame:
    rng = np.random.default_rng(0)
    member = rng.random((16, 300)) < 0.5
    score = rng.normal(size=(16, 300))
    score[:, 7] += 20 * member[:, 7]
    columns = {"repeat": np.repeat(np.arange(16), 300), "record": np.tile(np.arange(300), 16)}
    return pd.DataFrame(columns | {"member": member.ravel(), "score": score.ravel(), "flagged": score.ravel() > 1})


def test_the_planted_record_is_first_with_its_interval_and_its_words():
    found = most_exposed(planted(), 3).assign(dataset="d", model="m", defense="none", attack="lira")
    assert found["record"].tolist() == [7]  # nobody else stands out by more than chance
    (table,) = tables.most_exposed(found.assign(shown=["class a, age = 99"]))
    assert table.heads == ["record", "named where it was in training", "named where it was not", "what it is"]
    record, named, outside, words = table.rows[0]
    runs = int(found["runs_in"][0])
    assert record == "7"
    assert named.startswith(f"{runs} of {runs} runs, [")
    assert named.endswith("100 %]")
    assert outside == f"0 of {16 - runs} runs"
    assert words == "class a, age = 99"


def test_a_record_of_a_table_is_told_by_its_class_and_what_is_unusual_about_it():
    x = np.zeros((50, 6), np.float32)
    x[3, 2], x[3, 4], x[4, 4] = 90.0, 7.5, 5.0
    x[:, 5] = np.arange(50)
    raw = Raw(x, np.zeros(50, int), ("sick",), tuple("abcdef"))
    assert described(raw, [3])[0].startswith("class sick, c = 90, e = 7.5, ")


def test_a_record_of_an_image_is_its_picture_and_nothing_of_the_users_text_gets_into_the_page():
    pictures = described(Raw(np.random.default_rng(0).random((4, 1, 8, 8)), np.zeros(4, int), ("a",)), [2])
    assert pictures[0].startswith("data:image/png;base64,iVBOR")
    row = {"record": 2, "named_in": 1, "runs_in": 2, "named_out": 0, "runs_out": 2, "low": 0.1, "high": 0.9}
    cell = {"dataset": "d", "model": "m", "defense": "none", "attack": "lira"}
    (table,) = tables.most_exposed(pd.DataFrame([row | cell | {"shown": pictures[0]}, row | cell | {"shown": "<b>"}]))
    assert str(table.rows[0][-1]).startswith('<img src="data:image/png;base64,')
    assert table.rows[1][-1] == "<b>"  # text, which the page escapes
    assert not hasattr(table.rows[1][-1], "__html__")
