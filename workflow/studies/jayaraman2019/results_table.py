"""Loss, leakage and members exposed for every mechanism and budget, beside the paper's (tables 5 to 7)."""

from typing import Any

import numpy as np
import pandas as pd

from dp_leakage.table.frames import attack_rows, chosen, drawn_numbers, metric_rows, panels
from dp_leakage.table.notes import accounting_notes
from dp_leakage.table.numbers import PRINTED, beside_prints, rows_by_budget
from dp_leakage.table.tables import Table, Tables
from dp_leakage.table.words import name

FIGURE = {
    "table": True,
    "caption": "Every mechanism and budget in numbers, beside the paper's where it prints them. A tick says "
    "that the printed value lies inside our 95 % interval, a cross that it does not.",
    "settings": {
        "attacks": {
            "type": "array",
            "items": {"type": "string", "minLength": 1},
            "default": ["yeom", "shokri", "yeom_attribute"],
            "description": "The attacks that are shown.",
        },
        "exposed_by": {
            "type": ["null", "string"],
            "minLength": 1,
            "default": "yeom",
            "description": "The attack that counts exposed members; null for none.",
        },
        "definition": {"$ref": "#/$defs/definition", "default": "released"},
        "counting": {
            "enum": ["mean", "all_runs"],
            "default": "all_runs",
            "description": "Exposed members in the mean over runs, or in all runs.",
        },
        "fpr": {
            "type": "array",
            "items": {"type": "number", "exclusiveMinimum": 0, "exclusiveMaximum": 1},
            "default": [0.01, 0.02, 0.05],
            "description": "The false positive rates that an attacker accepts.",
        },
    },
}

COUNTING = {"all_runs": "in every run", "mean": "mean over runs"}
NEAR = 0.03  # an accuracy loss this far from print is called near in the footnote


def draw(
    metrics: pd.DataFrame, settings: dict[str, Any], published: pd.DataFrame | None
) -> tuple[Tables, pd.DataFrame]:
    """One table per (data set, model), a row per mechanism and budget.

    Settings:
        attacks: whose advantages, in this order.
        exposed_by: attack whose members exposed are counted; None: none.
        definition: which attribute advantage: ``gap`` or ``released``.
        counting: ``all_runs`` or ``mean``.
        fpr: false positive rates of the members exposed.
    """
    frame = chosen(metrics, settings)
    numbers = {"accuracy loss": metric_rows(frame, "accuracy_loss")}
    for attack in settings["attacks"]:
        numbers[name(attack)] = attack_rows(frame, attack, settings["definition"])
    for rate in settings["fpr"] if settings["exposed_by"] else []:
        asked = {"attack": settings["exposed_by"], "counting": settings["counting"], "fpr": rate}
        numbers[f"at {100 * rate:g} %"] = _exposed(frame, asked)
    shown = pd.concat([part.assign(column=column) for column, part in numbers.items()])
    rows = drawn_numbers(shown, published, extra=["column", "n_members"])
    tables = [_table(heading, part, list(numbers), settings) for heading, part in panels(rows)]
    notes = [*_print_notes(rows), *accounting_notes(frame, settings)]
    return Tables(tables, notes, settings.get("title")), rows.drop(columns="column")


def _exposed(frame: pd.DataFrame, asked: dict[str, Any]) -> pd.DataFrame:
    """Members exposed, counted as asked for; of the undefended model the mean, since the paper counts one run there."""
    undefended = frame["mechanism"] == "none"
    return pd.concat(
        [
            metric_rows(frame[undefended], "members_exposed", **asked | {"counting": "mean"}),
            metric_rows(frame[~undefended], "members_exposed", **asked),
        ]
    )


def _table(heading: str, part: pd.DataFrame, columns: list[str], settings: dict[str, Any]) -> Table:
    """Columns in the order given; those of members exposed have a head together."""
    exposed = [column for column in columns if column.endswith(" %")]
    heads, texts = beside_prints(part, dict(zip(columns, columns, strict=True)), nothing="")
    counted, _ = beside_prints(part, dict(zip(exposed, exposed, strict=True)))
    before = 2 + len(heads) - len(counted)
    members = part["n_members"].iloc[0]
    words = f"members exposed of {members:,.0f}, {COUNTING[settings['counting']]} (undefended: mean)"
    groups = [("", before), *([(words, len(counted))] if counted else [])]
    return Table(heading, ["mechanism", "ε", *heads], rows_by_budget(part, lambda cell: [texts(cell)]), groups)


def _print_notes(rows: pd.DataFrame) -> list[str]:
    notes = [
        "Attacks: advantage (true − false positive rate). Members exposed: at the false positive rate at the head. "
        "[95 % interval]."
    ]
    compared = rows[rows["published"].notna()]
    if compared.empty:
        return notes
    inside = [
        f"{name(str(metric))} {int(part['inside'].sum())} of {len(part)}" for metric, part in compared.groupby("metric")
    ]
    notes.append(f"{PRINTED} Inside: {'; '.join(inside)}.")
    loss = compared[compared["metric"] == "accuracy_loss"]
    if len(loss):
        # Print has two digits; without the allowance 0.03 itself would fall to rounding.
        near = np.abs(loss["measured"] - loss["published"]) <= NEAR + 1e-9
        notes.append(f"Accuracy loss within ±{NEAR:g} of print: {near.sum()} of {len(loss)}.")
    return notes
