"""Any metrics of any cells as a table, each beside what the paper prints of it."""

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from dp_leakage.figures.frames import (
    chosen,
    drawn_numbers,
    each_budget,
    each_series,
    metric_rows,
    panels,
    parse_setting,
)
from dp_leakage.figures.notes import accounting_notes
from dp_leakage.figures.numbers import budget, interval, printed
from dp_leakage.figures.style import look, name, styled
from dp_leakage.figures.table import Table, blocks, draw_tables

if TYPE_CHECKING:
    from matplotlib.figure import Figure

HEADS = {"train_accuracy": "training accuracy", "test_accuracy": "test accuracy", "membership_auc": "AUC"}


@styled
def draw(
    metrics: pd.DataFrame, settings: dict[str, Any], published: pd.DataFrame | None
) -> "tuple[Figure, pd.DataFrame]":
    """One table per (data set, model), a row per defence and budget.

    Settings:
        metrics: what the columns are, each ``METRIC`` or ``METRIC/ATTACK``.
        best_of: metrics of which the last column has the best of all their attacks, which is biased upward.
    """
    frame = chosen(metrics, settings)
    columns = {
        _head(asked): metric_rows(frame, *_asked(asked)[:1], attack=_asked(asked)[1]) for asked in settings["metrics"]
    }
    for metric in settings["best_of"]:
        columns[f"best of both, {HEADS.get(metric, name(metric))}"] = best(pd.concat(list(columns.values())), metric)
    shown = pd.concat([part.assign(column=column) for column, part in columns.items()])
    rows = drawn_numbers(shown, published, extra=["column", "n_members"], any_size=True)
    tables = [_table(heading, part, list(columns)) for heading, part in panels(rows)]
    notes = [*_notes(rows), *accounting_notes(frame, settings)]
    return draw_tables(tables, notes, settings.get("title")), rows.drop(columns="column")


def best(rows: pd.DataFrame, metric: str) -> pd.DataFrame:
    """Of each cell's rows of ``metric`` the one with the largest value, with ``attack=best_of_two`` as its setting."""
    found = rows[rows["metric"] == metric].sort_values("value", ascending=False, kind="stable")
    found = found.drop_duplicates(["dataset", "model", "defense"])
    return found.assign(setting=[_renamed(setting) for setting in found["setting"]])


def _renamed(setting: str) -> str:
    return ";".join(f"{key}={value}" for key, value in {**parse_setting(setting), "attack": "best_of_two"}.items())


def _asked(text: str) -> tuple[str, str | None]:
    metric, _, attack = text.partition("/")
    return metric, attack or None


def _head(text: str) -> str:
    metric, attack = _asked(text)
    words = HEADS.get(metric, name(metric))
    return f"{words}, {name(attack)}" if attack else words


def _table(heading: str, part: pd.DataFrame, columns: list[str]) -> Table:
    has_print = {column: part.loc[part["column"] == column, "published"].notna().any() for column in columns}
    heads = ["defence", "ε"]
    for column in columns:
        heads += [column, "print"] if has_print[column] else [column]
    parts = [
        (look(series).label, [[budget(*key), *_line(cell, has_print)] for key, cell in _cells(rows)])
        for series, rows in each_series(part)
    ]
    return Table(heading, heads, blocks(parts))


def _cells(rows: pd.DataFrame) -> Iterator[tuple[tuple[float, float], pd.DataFrame]]:
    """Budgets by ε; cells that were given by their noise by σ."""
    noise = rows["noise_multiplier"].where(rows["epsilon"].isna(), np.nan)
    yield from each_budget(rows.assign(noise_multiplier=noise))


def _line(cell: pd.DataFrame, has_print: dict[str, bool]) -> list[str]:
    found = {row.column: row for row in cell.itertuples()}
    return [text for column in has_print for text in _cell(found.get(column), has_print[column])]


def _cell(row: Any, has_print: bool) -> list[str]:
    if row is None:
        return ["–", ""] if has_print else ["–"]
    text = interval(row.measured, row.low, row.high)
    return [text, printed(row.published, row.inside)] if has_print else [text]


def _notes(rows: pd.DataFrame) -> list[str]:
    compared = rows[rows["published"].notna()]
    if compared.empty:
        return ["[95 % interval]."]
    words = "Print: the paper's number; ✓ inside our 95 % interval, ✗ not"
    if compared["inside"].isna().any():
        words += "; without a mark where our run has fewer records than the paper's, and is not compared"
    return [f"{words}."]
