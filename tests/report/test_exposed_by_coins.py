"""The most exposed records where coins put them in and out: how often each is named, and what it is."""

from dataclasses import replace

import numpy as np
import pandas as pd

from dp_leakage.data.raw import Raw
from dp_leakage.report import tables
from dp_leakage.report.exposed import MostExposed, described, most_exposed


def planted(repeats: int = 16, n: int = 300) -> pd.DataFrame:
    rng = np.random.default_rng(0)
    member = rng.random((repeats, n)) < 0.5
    score = rng.normal(size=(repeats, n))
    score[:, 7] += 20 * member[:, 7]
    columns = {"repeat": np.repeat(np.arange(repeats), n), "record": np.tile(np.arange(n), repeats)}
    return pd.DataFrame(columns | {"member": member.ravel(), "score": score.ravel(), "flagged": score.ravel() > 1})


def test_the_planted_record_is_listed_with_its_evidence_its_interval_and_its_words():
    found = most_exposed(planted(), 3)
    assert found.records["record"].tolist() == [7]  # nobody else stands out by more than chance
    assert (found.count, found.among, found.repeats, found.at_least) == (1, 300, 16, 1)
    named = replace(found, records=found.records.assign(shown=["class a, age = 99"]), cell=("d", "mlp", "none", "lira"))
    (table,) = tables.most_exposed([named])
    assert table.heading == (
        "d · MLP · none · LiRA: 1 of 300 records stand out (at most 5 % of them by chance), at least 1 with 95 % "
        "confidence"
    )
    assert table.heads == [
        "record",
        "evidence: score in minus out of training, in standard errors",
        "identified when in training",
        "identified when not in training",
        "what it is",
    ]
    record, evidence, inside, outside, words = table.rows[0]
    runs = int(found.records["runs_in"][0])
    assert record == "7"
    assert float(evidence) > 10
    assert inside.startswith(f"{runs} of {runs} runs, [")
    assert inside.endswith("100 %]")
    assert outside == f"0 of {16 - runs} runs"
    assert words == "class a, age = 99"


def test_who_is_named_at_a_rate_that_cannot_be_measured_is_not_counted():
    (table,) = tables.most_exposed([most_exposed(planted(8, 60))])
    assert table.heads == ["record", "evidence: score in minus out of training, in standard errors"]


def test_with_fewer_than_eight_models_it_is_said_that_these_do_not_suffice_and_how_many_would():
    """Never that more models could show weaker exposure: it may be strong."""
    few, none = most_exposed(planted(6)), most_exposed(planted().assign(score=0.0))
    assert few.records.empty
    cells = [replace(found, cell=("d", "mlp", "none", "lira")) for found in (few, few, none)]
    assert tables.nobody_exposed(cells) == [
        "With 6 models per setting none of the records can be told from chance, however much leaks. It takes 8.",
        "d · MLP · none · LiRA: none of the 300 records stands out by more than chance.",
    ]
    assert tables.most_exposed(cells) == []


def test_a_record_of_a_table_is_told_by_its_class_and_what_is_unusual_about_it():
    x = np.zeros((50, 6), np.float32)
    x[3, 2], x[3, 4], x[4, 4] = 90.0, 7.5, 5.0
    x[:, 5] = np.arange(50)
    raw = Raw(x, np.zeros(50, int), ("sick",), tuple("abcdef"))
    assert described(raw, [3])[0].startswith("class sick, c = 90, e = 7.5, ")


def test_a_record_of_an_image_is_its_picture_and_nothing_of_the_users_text_gets_into_the_page():
    pictures = described(Raw(np.random.default_rng(0).random((4, 1, 8, 8)), np.zeros(4, int), ("a",)), [2])
    assert pictures[0].startswith("data:image/png;base64,iVBOR")
    records = pd.DataFrame({"record": [2, 2], "evidence": 9.0, "shown": [pictures[0], "<b>"]})
    (table,) = tables.most_exposed([MostExposed(records, 2, 4, 8, at_least=1)])
    assert str(table.rows[0][-1]).startswith('<img src="data:image/png;base64,')
    assert table.rows[1][-1] == "<b>"  # text, which the page escapes
    assert not hasattr(table.rows[1][-1], "__html__")
