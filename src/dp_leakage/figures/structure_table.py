"""Disclosure by the structure of models, without any attack, in counts."""

from typing import Any

import numpy as np
import pandas as pd

from dp_leakage.table.frames import chosen, drawn_numbers, each_cell, metric_rows, panels
from dp_leakage.table.notes import own_notes
from dp_leakage.table.numbers import cell_label
from dp_leakage.table.tables import Table, Tables
from dp_leakage.table.words import name

FIGURE = {
    "table": True,
    "part": "structure",
    "caption": "Disclosure by the structure of models, without any attack. A cell holds all training records with the "
    "same output, or in the same leaf of a tree. Small cells hide their records less. If all records of a cell have "
    "one class, the model reveals this class. A model with more parameters than training records (residual freedom "
    "below 0) can store all records. Records stored: training records that stand in the model as they are, as support "
    "vectors and neighbors do; whoever has the model has these records. Counts have no intervals.",
}

# Metric and cells → column header.
COLUMNS = {
    ("smallest_cell", "answers"): "smallest",
    ("in_small_cells", "answers"): "in small cells",
    ("class_disclosed", "answers"): "class certain",
    ("smallest_cell", "leaves"): "smallest",
    ("in_small_cells", "leaves"): "in small cells",
    ("residual_freedom", ""): "residual freedom",
    ("stored_records", ""): "records stored",
}
GROUPS = [("", 2), ("records answered alike", 3), ("leaves", 2), ("", 2)]
SHARES = ("in_small_cells", "class_disclosed")


def draw(
    metrics: pd.DataFrame, settings: dict[str, Any], published: pd.DataFrame | None
) -> tuple[Tables, pd.DataFrame]:
    """Return one table per data set, a row per model, defense and budget, for the worst repeat.

    Raises:
        UserError: no structure was checked.
    """
    frame = chosen(metrics, settings)
    checked = frame[frame["metric"].isin([metric for metric, _ in COLUMNS])]
    rows = drawn_numbers(checked if len(checked) else metric_rows(frame, "smallest_cell"), None, ["cells"])
    tables = [_table(heading, part) for heading, part in panels(rows, by=["dataset"])]
    notes = [
        "In small cells: the share of the training records that share a cell with fewer than nine others. Class "
        "certain: the share in cells of one class. Of several repeats the worst; of several trees the worst tree.",
        *own_notes(settings),
    ]
    return Tables(tables, notes, settings.get("title")), rows


def _table(heading: str, part: pd.DataFrame) -> Table:
    lines = [
        [name(str(model)), cell_label(series, cell.iloc[0]), *_texts(cell)]
        for model, rows in part.groupby("model", sort=False)
        for series, cell in each_cell(rows)
    ]
    return Table(heading, ["model", "defense", *COLUMNS.values()], lines, GROUPS, left=2)


def _texts(cell: pd.DataFrame) -> list[str]:
    found = {(row.metric, row.cells): float(row.measured) for row in cell.itertuples()}
    return [_text(metric, found.get((metric, cells), np.nan)) for metric, cells in COLUMNS]


def _text(metric: str, value: float) -> str:
    if np.isnan(value):
        return "–"
    return f"{100 * value:.1f} %" if metric in SHARES else f"{value:,.0f}".replace("-", "−")
