"""Leakage about a person, from all records together, compared with leakage about a single record."""

from typing import Any

import pandas as pd

from dp_leakage.table.frames import chosen, drawn_numbers, metric_rows, panels
from dp_leakage.table.notes import not_measured_notes, own_notes
from dp_leakage.table.numbers import beside_prints, rows_by_budget
from dp_leakage.table.tables import Table, Tables
from dp_leakage.table.words import name

FIGURE = {
    "table": True,
    "persons": True,
    "caption": "Success of one attack against people, from the scores of all their records, and against single "
    "records. All records of a person are included together. Rows compare record-level with user-level noise, over "
    "ε.",
    "settings": {
        "attack": {
            "type": "string",
            "minLength": 1,
            "default": "lira_online",
            "description": "The attack that is shown.",
        },
        "fpr": {
            "enum": [0.01, 0.001],
            "default": 0.01,
            "description": "The false positive rate at which true positive rates are shown.",
        },
    },
}

PERSON, RECORD = "a person", "a record"
# Metrics of persons, of records, and the header of both.
PAIRS = [
    ("reached_advantage", "record_advantage", "advantage"),
    ("reached_tpr", "record_tpr", "TPR at {:g} % FPR"),
    ("membership_auc", "record_auc", "AUC"),
]
HIDDEN = {"person": "a person", "example": "a record"}


def draw(
    metrics: pd.DataFrame, settings: dict[str, Any], published: pd.DataFrame | None
) -> tuple[Tables, pd.DataFrame]:
    """Return one table per (data set, model), a row per defense and budget.

    Settings:
        attack: attack whose numbers are shown.
        fpr: the false positive rate of the TPR, 0.01 or 0.001.

    Raises:
        UserError: the attack did not run, or no person has several records.
    """
    frame, shown = chosen(metrics, settings), []
    for pair in PAIRS:
        for metric in pair[:2]:
            fpr = settings["fpr"] if "tpr" in metric else None
            shown.append(metric_rows(frame, metric, attack=settings["attack"], fpr=fpr).assign(column=metric))
    rows = drawn_numbers(pd.concat(shown), None, extra=["column"])
    rows = rows.assign(hides=[HIDDEN.get(unit, "") for unit in rows["unit"]])
    groups = [("", 3), *((words.format(100 * settings["fpr"]), 2) for *_, words in PAIRS)]
    tables = [_table(heading, part, groups) for heading, part in panels(rows)]
    notes = [
        f"{name(settings['attack'])}, 95 % intervals in brackets. Only people count as independent, also where single "
        "records are attacked. An ε is of what the noise hides: a record or a person.",
        *not_measured_notes(rows.loc[rows["measured"].isna() & rows["fpr"].notna(), "fpr"]),
        *own_notes(settings),
    ]
    return Tables(tables, notes, settings.get("title")), rows.drop(columns="column")


def _table(heading: str, part: pd.DataFrame, groups: list[tuple[str, int]]) -> Table:
    of_whom = {metric: words for *both, _ in PAIRS for metric, words in zip(both, (PERSON, RECORD), strict=True)}
    heads, texts = beside_prints(part, of_whom)
    rows = rows_by_budget(part, lambda cell: [[cell["hides"].iloc[0] or "–", *texts(cell)]])
    return Table(heading, ["defense", "ε", "hides", *heads], rows, groups, left=3)
