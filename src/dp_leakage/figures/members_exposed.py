"""Members identified at a small false positive rate, counted in two ways."""

from typing import Any

import pandas as pd

from dp_leakage.table.exposed import COUNTINGS, exposed_table, tossed
from dp_leakage.table.frames import chosen, drawn_numbers, metric_rows, panels
from dp_leakage.table.notes import accounting_notes, not_measured_notes
from dp_leakage.table.numbers import PRINTED
from dp_leakage.table.tables import Tables
from dp_leakage.table.words import name

FIGURE = {
    "table": True,
    "caption": "Number of members that an attacker identifies while wrongly accusing 1, 2 or 5 of 100 non-members. "
    "The last line is guessing; only the excess over guessing is leakage.",
    "settings": {
        "attack": {"$ref": "#/$defs/attack", "default": "yeom"},
        "fpr": {
            "type": "array",
            "items": {"type": "number", "exclusiveMinimum": 0, "exclusiveMaximum": 1},
            "default": [0.01, 0.02, 0.05],
            "description": "The false positive rates that an attacker accepts.",
        },
    },
}


def draw(
    metrics: pd.DataFrame, settings: dict[str, Any], published: pd.DataFrame | None
) -> tuple[Tables, pd.DataFrame]:
    """Return one table per (data set, model), a row per defense and budget.

    Settings:
        attack: attack whose scores are used.
        fpr: false positive rates.
    """
    frame = chosen(metrics, settings)
    counted = pd.concat(
        [
            metric_rows(frame, "members_exposed", attack=settings["attack"], counting=counting, fpr=rate)
            for counting in COUNTINGS
            for rate in settings["fpr"]
        ]
    )
    rows = drawn_numbers(counted, published, ["n_members", *(["n_records"] if tossed(frame) else [])])
    tables = [exposed_table(heading, part) for heading, part in panels(rows)]
    again = (
        "of these, those above it in each run that trained on them" if tossed(rows) else "those above it in each run"
    )
    notes = [
        f"Members above the threshold of {name(settings['attack'])} [95 % interval]. Every run: {again}.",
        "The threshold is set on the non-members, at the false positive rate at the head of the column.",
        "By chance almost none is above it in every run: so that number may lie below the guesser's line without "
        "meaning protection.",
    ]
    if rows["published"].notna().any():
        notes.append(
            f"{PRINTED} The paper does not say how it counts: it stands at both, but for the undefended "
            "model, of which its authors count one run, at the mean alone."
        )
    notes += not_measured_notes(rows.loc[rows["measured"].isna(), "fpr"])
    notes += accounting_notes(frame, settings)
    return Tables(tables, notes, settings.get("title")), rows
