"""Table of any metrics of any cells, each next to the paper's printed value."""

from typing import Any

import numpy as np
import pandas as pd

from dp_leakage.metrics.rows import CELL
from dp_leakage.table.frames import chosen, drawn_numbers, metric_rows, panels
from dp_leakage.table.notes import accounting_notes
from dp_leakage.table.numbers import beside_prints, number, rows_by_budget
from dp_leakage.table.tables import Table, Tables
from dp_leakage.table.words import name

FIGURE = {
    "table": True,
    "caption": "Numbers for every defense and budget, next to the paper's number if there is one. A tick means that "
    "our 95 % interval contains the printed value, a cross that it does not.",
    "settings": {
        "metrics": {
            "type": "array",
            "items": {"type": "string", "minLength": 1},
            "default": ["test_accuracy"],
            "description": "The columns, each `METRIC`, `METRIC/ATTACK` or `METRIC/ATTACK/key=value`.",
        },
        "best_of": {
            "type": "array",
            "items": {"type": "string", "minLength": 1},
            "default": [],
            "description": "Metrics of which a last column shows the best of all their attacks, which is biased "
            "upward.",
        },
        "compare": {
            "type": "boolean",
            "default": True,
            "description": "Whether published values are shown next to the measured ones.",
        },
    },
}

HEADS = {
    "train_accuracy": "training accuracy",
    "test_accuracy": "test accuracy",
    "train_test_gap": "gap",
    "membership_auc": "AUC",
    "balanced_accuracy": "attack accuracy",
    "ssim": "SSIM",
    "mse": "MSE",
    "mse_standardized": "MSE, standardized",
    "recognized": "recognized",
    "recognized_proven": "of any attack, at most",
}


def draw(
    metrics: pd.DataFrame, settings: dict[str, Any], published: pd.DataFrame | None
) -> tuple[Tables, pd.DataFrame]:
    """Return one table per (data set, model), a row per defense and budget.

    Settings:
        metrics: the columns, each ``METRIC``, ``METRIC/ATTACK`` or, to select among several numbers by qualifiers,
            ``METRIC/ATTACK/key=value;…``.
        compare: whether printed values are shown; not for controls that share a name with a printed cell.
        best_of: metrics whose best attack is the last column, which is biased upward.
    """
    frame = chosen(metrics, settings)
    columns = {column_head(asked): column_rows(frame, asked) for asked in settings["metrics"]}
    for metric in settings["best_of"]:
        columns[f"best of both, {HEADS.get(metric, name(metric))}"] = best(pd.concat(list(columns.values())), metric)
    shown = pd.concat([part.assign(column=column) for column, part in columns.items()])
    rows = drawn_numbers(
        shown, published if settings["compare"] else None, extra=["column", "n_members", *_own(frame)], any_size=True
    )
    tables = [_table(heading, part, list(columns)) for heading, part in panels(rows)]
    window = ["SSIM: with a uniform 7×7 window."] if "ssim" in set(rows["metric"]) else []
    notes = [*_notes(rows), *window, *_prior(shown), *accounting_notes(frame, settings)]
    return Tables(tables, notes, settings.get("title")), rows.drop(columns="column")


def _prior(shown: pd.DataFrame) -> list[str]:
    """Return the number of candidates for recognition."""
    counts = sorted(set(shown.loc[shown["metric"] == "recognized", "candidates"])) if "candidates" in shown else []
    words = (
        "Recognized: which of {0:g} equally likely images was in the step, where a guess is right in 1 of {0:g} cases."
    )
    return [words.format(count) for count in counts]


def best(rows: pd.DataFrame, metric: str) -> pd.DataFrame:
    """Return each cell's row of ``metric`` with the largest value; its attack is called ``best_of_two``."""
    found = rows[rows["metric"] == metric].sort_values("value", ascending=False, kind="stable")
    return found.drop_duplicates(CELL).assign(attack="best_of_two")


def column_rows(frame: pd.DataFrame, asked: str) -> pd.DataFrame:
    """Return the rows of a column ``METRIC[/ATTACK[/key=value;…]]``. Raises as `metric_rows` does."""
    metric, attack, conditions = _asked(asked)
    return metric_rows(frame, metric, attack=attack, **conditions)


def column_head(asked: str) -> str:
    """Return the readable header of such a column."""
    metric, attack, conditions = _asked(asked)
    words = f"{conditions.pop('statistic', '')} {HEADS.get(metric, name(metric))}".strip()
    return ", ".join([words, *([name(attack)] if attack else []), *(f"{key} {of}" for key, of in conditions.items())])


def _asked(text: str) -> tuple[str, str | None, dict[str, str]]:
    metric, attack, conditions = [*text.split("/", 2), "", ""][:3]
    return metric, attack or None, dict(part.split("=", 1) for part in conditions.split(";") if part)


def _own(frame: pd.DataFrame) -> list[str]:
    """Return ``learning_rate`` if it differs between cells."""
    return ["learning_rate"] if "learning_rate" in frame and frame["learning_rate"].nunique() > 1 else []


def _table(heading: str, part: pd.DataFrame, columns: list[str]) -> Table:
    """Return the table with rows by ε, or by σ for cells given by their noise; then by learning rate if it differs."""
    rated = ["learning rate"] if "learning_rate" in part else []
    heads, texts = beside_prints(part, dict(zip(columns, columns, strict=True)))

    def lines(cell: pd.DataFrame) -> list[list[str]]:
        own = [number(cell["learning_rate"].iloc[0])] if rated else []
        return [[*own, *texts(cell)]]

    noise = part["noise_multiplier"].where(part["epsilon"].isna(), np.nan)
    by_rate = part.sort_values("learning_rate", kind="stable") if rated else part
    rows = rows_by_budget(by_rate.assign(noise_multiplier=noise), lines)
    return Table(heading, ["defense", "ε", *rated, *heads], rows)


def _notes(rows: pd.DataFrame) -> list[str]:
    compared = rows[rows["published"].notna()]
    if compared.empty:
        return ["[95 % interval]."]
    words = "Print: the paper's number; ✓ inside our 95 % interval, ✗ not"
    if compared["inside"].isna().any():
        words += "; without a mark where our run has fewer records than the paper's, and is not compared"
    return [f"{words}."]
