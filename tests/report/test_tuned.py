"""What the page says of learning rates that were tried: which was best, on what, and what that costs whom."""

from dataclasses import replace

import pandas as pd
import pytest

from dp_leakage.metrics.rows import CELL, MEASURED, QUALIFIERS, completed
from dp_leakage.report import Acceptable, ReportContext, answers, claims_of, render
from dp_leakage.report.claims import ClaimWriter
from dp_leakage.report.tables import learning_rates
from dp_leakage.report.tuned import UNTUNED, tuned_of, tuned_words

RIGHT = {0.001: 0.31, 0.01: 0.62, 0.1: 0.4}


@pytest.fixture
def tuned(metrics: pd.DataFrame) -> pd.DataFrame:
    """The synthetic study, every cell with rates that were tried."""
    cells = metrics.drop(columns=[*MEASURED, *QUALIFIERS]).drop_duplicates(CELL)
    found: list[tuple[str, dict, float]] = [("learning_rate", {}, 0.01)]
    found += [("tuning_accuracy", {"tried": rate, "records": 250.0}, right) for rate, right in RIGHT.items()]
    rows = [completed(cells.assign(metric=m, repeat="all", value=v, low=v, high=v, **said)) for m, said, v in found]
    return pd.concat([metrics, *rows], ignore_index=True)


def test_the_answer_says_which_rates_were_tried_on_what_and_what_that_costs(tuned: pd.DataFrame) -> None:
    told = [claim.words for claim in claims_of(answers(tuned), {}) if claim.kind == "tuning"]
    assert told
    assert set(told) == {
        "The learning rate of each model is the best of 0.001, 0.01 and 0.1, by 250 records set apart. No model in "
        "this report trains on them and no attack asks about them, so tuning costs the training records no privacy. "
        "The tuning records themselves have no guarantee."
    }


def test_a_missed_budget_is_told_with_what_else_may_be_tuned(tuned: pd.DataFrame, metrics: pd.DataFrame) -> None:
    for frame, words in ((tuned, "Learning rates were tuned; another batch size"), (metrics, UNTUNED)):
        found = answers(frame, Acceptable(accuracy_loss=0.0001))
        assert {answer.kind for answer in found} <= {"neither", "open"}
        told = [claim.words for claim in claims_of(found, {}) if claim.kind == "untuned"]
        assert told
        assert all(words in one for one in told)


def test_without_rates_tried_nothing_is_said_of_them(metrics: pd.DataFrame, context: ReportContext) -> None:
    assert tuned_words(tuned_of(metrics), ClaimWriter()) == ""
    assert learning_rates(metrics) == []
    assert "The learning rates" not in render(context)


def test_a_table_shows_the_rate_of_every_cell_and_what_each_kept(tuned: pd.DataFrame, context: ReportContext) -> None:
    page = render(replace(context, metrics=tuned))
    assert "The learning rates" in page
    tables = learning_rates(tuned)
    cells = tuned.drop_duplicates(["dataset", "model", "defense"])
    assert sum(len(table.rows) for table in tables) == len(cells)
    assert tables[0].heads == ["defense", "ε", "rate chosen", "right with 0.001", "right with 0.01", "right with 0.1"]
    assert tables[0].rows[0][2:] == ["0.01", "0.310", "0.620", "0.400"]
