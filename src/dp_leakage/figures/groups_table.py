"""Leakage by group of records in numbers: within the group, and its excess over all other records."""

from typing import Any

import pandas as pd

from dp_leakage.figures.groups import group_rows, order_of_groups
from dp_leakage.table.frames import chosen, metric_rows, panels
from dp_leakage.table.notes import own_notes
from dp_leakage.table.numbers import beside_prints, rows_by_budget
from dp_leakage.table.tables import Table, Tables
from dp_leakage.table.words import called, name

FIGURE = {
    "table": True,
    "part": "groups",
    "caption": "Success of one attack in each group of records. The excess is the advantage within the group minus "
    "the advantage among all other records: above 0, the group is easier to attack. Intervals are 95 % "
    "for each number alone.",
    "settings": {
        "attack": {
            "$ref": "#/$defs/attack",
            "description": "Attack whose advantage is shown; null for the first that was run.",
        },
        "by": {"$ref": "#/$defs/by"},
        "most": {"$ref": "#/$defs/most"},
    },
}

# Metric → the head of its column.
COLUMNS = {"group_advantage": "advantage", "group_excess": "excess over the others", "group_auc": "AUC"}


def draw(
    metrics: pd.DataFrame, settings: dict[str, Any], published: pd.DataFrame | None
) -> tuple[Tables, pd.DataFrame]:
    """Return one table per (data set, model), rows for each defense and budget and the groups under it.

    Settings:
        attack: attack whose numbers are shown; None: the first that was run.
        by: criterion of the groups, such as ``class`` or a column; None: everything that was measured.
        most: maximum number of groups in a table: those with the largest advantage under any defense.

    Raises:
        UserError: nothing was measured by group, or not by this attack.
    """
    frame = chosen(metrics, settings)
    first = group_rows(frame, "group_advantage", settings)
    kept = set(zip(first["dataset"], first["model"], first["called"], strict=True))
    everything = settings | {"attack": first["attack"].iloc[0], "most": len(frame)}
    others = pd.concat(
        [group_rows(frame, metric, everything) for metric in COLUMNS if (frame["metric"] == metric).any()]
    )
    keys = zip(others["dataset"], others["model"], others["called"], strict=True)
    rows = others[[key in kept for key in keys]].reset_index(drop=True)
    sizes = _sizes(frame)
    tables = [_table(heading, part.assign(column=part["metric"]), sizes) for heading, part in panels(rows)]
    notes = [f"Attack: {name(rows['attack'].iloc[0])}. 95 % intervals in brackets.", *own_notes(settings)]
    return Tables(tables, notes, settings.get("title")), rows.drop(columns="called")


def _sizes(frame: pd.DataFrame) -> dict[tuple[str, str], int]:
    """Return (data set, group in words) → number of records."""
    rows = metric_rows(frame, "group_records")
    groups = map(called, rows["by"], rows["group"])
    return {(dataset, group): int(n) for dataset, group, n in zip(rows["dataset"], groups, rows["value"], strict=True)}


def _table(heading: str, part: pd.DataFrame, sizes: dict[tuple[str, str], int]) -> Table:
    heads, texts = beside_prints(part, COLUMNS)
    order = order_of_groups(part[part["metric"] == "group_advantage"])

    def lines(cell: pd.DataFrame) -> list[list[str]]:
        own = dict(iter(cell.groupby("called", sort=False)))
        dataset = str(cell["dataset"].iloc[0])
        return [[group, f"{sizes[dataset, group]:,}", *texts(own[group])] for group in order if group in own]

    return Table(heading, ["defense", "ε", "group", "records", *heads], rows_by_budget(part, lines), left=3)
