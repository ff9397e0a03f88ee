"""Members that an attacker names at a small false positive rate, counted in both ways."""

from typing import TYPE_CHECKING, Any

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
from dp_leakage.figures.numbers import PRINTED, budget, count, interval, printed
from dp_leakage.figures.style import look, name, styled
from dp_leakage.figures.table import Table, blocks, draw_tables

if TYPE_CHECKING:
    from matplotlib.figure import Figure

FIGURE = {
    "caption": "How many members of the training data an attacker names who accepts 1, 2 or 5 false alarms per "
    "100 outsiders. An attacker who guesses names as many by chance as the last line says; only what lies above it "
    "is leakage.",
    "settings": {"attack": "yeom", "fpr": [0.01, 0.02, 0.05]},
    "kinds": {"attack": ["either", "null", "text"], "fpr": ["list", ["number", "above", 0, "below", 1]]},
}

COUNTINGS = {"mean": "mean over the runs", "all_runs": "flagged in every run"}
BY_COINS = COUNTINGS | {"all_runs": "flagged in every run with it"}


@styled
def draw(
    metrics: pd.DataFrame, settings: dict[str, Any], published: pd.DataFrame | None
) -> "tuple[Figure, pd.DataFrame]":
    """One table per (data set, model), a row per defence and budget.

    Settings:
        attack: whose scores.
        fpr: false positive rates.
    """
    frame = chosen(metrics, settings)
    counted = [
        metric_rows(frame, "members_exposed", attack=settings["attack"], counting=counting, fpr=f"{rate:g}")
        for counting in COUNTINGS
        for rate in settings["fpr"]
    ]
    rows = drawn_numbers(pd.concat(counted), published, extra=["n_members", *(["n_records"] if tossed(frame) else [])])
    tables = [_table(heading, part, settings["fpr"]) for heading, part in panels(rows)]
    notes = [
        f"Attack: {name(settings['attack'])}. The threshold is set on the non-members, at the false positive rate "
        "at the head of the column. [95 % interval].",
        "Mean: members above the threshold, averaged over the runs. Every run: "
        + ("records above it in each run that trained on them" if tossed(rows) else "members above it in each run")
        + "; by chance almost none, so it may lie below the guesser's line without meaning protection.",
    ]
    if rows["published"].notna().any():
        notes.append(
            f"{PRINTED} The paper does not say how it counts: it stands at both, but for the undefended "
            "model, of which its authors count one run, at the mean alone."
        )
    notes += accounting_notes(frame, settings)
    return draw_tables(tables, notes, settings.get("title")), rows


def tossed(part: pd.DataFrame) -> bool:
    """Do coins say in each run which of the records are members?"""
    return "n_records" in part and bool((part["n_records"] > part["n_members"]).any())


def of_whom(part: pd.DataFrame) -> str:
    """Of how many members the counts are; by coins of how many in a run, and of how many records in all of them."""
    members = f"{part['n_members'].iloc[0]:,.0f}"
    if not tossed(part):
        return f"of {members} members"
    return f"of about {members} members in each run, {part['n_records'].iloc[0]:,.0f} records in all"


def _table(heading: str, part: pd.DataFrame, rates: list[float]) -> Table:
    has_print = part["published"].notna().any()
    per_rate = 2 if has_print else 1
    percents = [f"at {100 * rate:g} %" for rate in rates]
    heads = [text for percent in percents for text in ([percent, "print"] if has_print else [percent])]
    parts = [
        (look(series).label, [[budget(*key), *_cells(cell, rates, has_print)] for key, cell in each_budget(rows)])
        for series, rows in each_series(part)
    ]
    members = part["n_members"].iloc[0]
    chance = [cell for rate in rates for cell in [count(members * rate), *[""] * (per_rate - 1)]]
    guesser = ["", *chance, *[""] * (per_rate * len(rates))]
    countings = BY_COINS if tossed(part) else COUNTINGS
    groups = [("", 2), *((words, per_rate * len(rates)) for words in countings.values())]
    return Table(
        f"{heading}: members exposed, {of_whom(part)}",
        ["defence", "ε", *heads, *heads],
        [*blocks(parts), [], ["a guesser", *guesser]],
        groups,
    )


def _cells(cell: pd.DataFrame, rates: list[float], has_print: bool) -> list[str]:
    settings = [parse_setting(setting) for setting in cell["setting"]]
    found = {(s["counting"], s["fpr"]): row for s, row in zip(settings, cell.itertuples(), strict=True)}
    texts: list[str] = []
    for counting in COUNTINGS:
        for rate in rates:
            row = found.get((counting, f"{rate:g}"))
            texts.append(interval(row.measured, row.low, row.high, counts=True) if row else "")
            if has_print:
                texts.append(printed(row.published, row.inside, counts=True) if row else "")
    return texts
