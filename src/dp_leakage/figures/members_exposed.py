"""Members that an attacker names at a small false positive rate, counted in both ways."""

from typing import Any

import pandas as pd

from dp_leakage.figures.frames import chosen, drawn_numbers, metric_rows, panels
from dp_leakage.figures.notes import accounting_notes, not_measured_notes
from dp_leakage.figures.numbers import PRINTED, beside_prints, count, rows_by_budget
from dp_leakage.figures.style import name
from dp_leakage.table.tables import Table, Tables

FIGURE = {
    "table": True,
    "caption": "How many members an attacker identifies who wrongly accuses 1, 2 or 5 of 100 non-members. Guessing "
    "identifies as many as the last line shows; only what exceeds it is leakage.",
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

COUNTINGS = {"mean": "mean over the runs", "all_runs": "flagged in every run"}
BY_COINS = COUNTINGS | {"all_runs": "flagged in every run with it"}


def draw(
    metrics: pd.DataFrame, settings: dict[str, Any], published: pd.DataFrame | None
) -> tuple[Tables, pd.DataFrame]:
    """One table per (data set, model), a row per defense and budget.

    Settings:
        attack: whose scores.
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


def tossed(part: pd.DataFrame) -> bool:
    """Do coins say in each run which of the records are members?"""
    return "n_records" in part and bool((part["n_records"] > part["n_members"]).any())


def of_whom(part: pd.DataFrame) -> str:
    """Of how many members the counts are; by coins of how many in a run."""
    members = f"{part['n_members'].iloc[0]:,.0f}"
    if not tossed(part):
        return f"of {members} members"
    return f"of about {members} members in each run"


def exposed_table(heading: str, part: pd.DataFrame) -> Table:
    """Both ways of counting side by side, each at every rate of the rows; below them what a guesser names."""
    part = part.assign(column=[f"{way} {rate:g}" for way, rate in zip(part["counting"], part["fpr"], strict=True)])
    words = {rate: f"at {100 * rate:g} %" for rate in sorted(set(part["fpr"]))}
    by_way = {
        way: beside_prints(part, {f"{way} {rate:g}": head for rate, head in words.items()}, nothing="")
        for way in COUNTINGS
    }
    lines = rows_by_budget(part, lambda cell: [[text for _, texts in by_way.values() for text in texts(cell)]])
    chance = {head: count(part["n_members"].iloc[0] * rate) for rate, head in words.items()}
    guesser = [chance.get(head, "") if way == "mean" else "" for way, (heads, _) in by_way.items() for head in heads]
    countings = BY_COINS if tossed(part) else COUNTINGS
    return Table(
        f"{heading}: members exposed, {of_whom(part)}",
        ["defense", "ε", *(head for heads, _ in by_way.values() for head in heads)],
        [*lines, ["a guesser", "", *guesser]],
        [("", 2), *((countings[way], len(heads)) for way, (heads, _) in by_way.items())],
    )
