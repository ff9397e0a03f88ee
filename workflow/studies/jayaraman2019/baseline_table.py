"""Accuracy of the models trained without differential privacy, beside what the paper prints."""

from typing import Any

import pandas as pd

from dp_leakage.table.frames import chosen, drawn_numbers, is_private, metric_rows, series_of
from dp_leakage.table.looks import look
from dp_leakage.table.notes import own_notes
from dp_leakage.table.numbers import PRINTED, beside_prints
from dp_leakage.table.tables import Table, Tables
from dp_leakage.table.words import name

FIGURE = {
    "table": True,
    "caption": "Accuracy of the models trained without differential privacy, on the records they were trained "
    "on and on new ones. The wider the gap, the more they remember single records.",
}

METRICS = {"train_accuracy": "on records trained on", "test_accuracy": "on new records"}


def draw(
    metrics: pd.DataFrame, settings: dict[str, Any], published: pd.DataFrame | None
) -> tuple[Tables, pd.DataFrame]:
    """One table, a row per data set, model and non-private defense."""
    frame = chosen(metrics, settings)
    plain = frame[~is_private(frame)]
    rows = drawn_numbers(pd.concat([metric_rows(plain, metric) for metric in METRICS]), published)
    keyed = rows.assign(column=rows["metric"], label=[look(series).label for series in series_of(rows)])
    heads, texts = beside_prints(keyed, METRICS, nothing="")
    lines = [
        [name(dataset), name(model), label, *texts(cell)]
        for (dataset, model, label), cell in keyed.groupby(["dataset", "model", "label"], sort=False)
    ]
    notes = ["Fraction right after the last epoch [95 % interval]."]
    if rows["published"].notna().any():
        notes.append(PRINTED)
    table = Table("Accuracy without differential privacy", ["data set", "model", "defense", *heads], lines, left=3)
    return Tables([table], [*notes, *own_notes(settings)], settings.get("title")), rows
