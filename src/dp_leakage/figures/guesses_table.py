"""Advantage of a model for attribute guesses, over the attacker's own data."""

from typing import Any

import numpy as np
import pandas as pd

from dp_leakage.metrics.rows import CELL
from dp_leakage.table.frames import chosen, drawn_numbers, is_private, metric_rows, panels
from dp_leakage.table.limits import divided, proven_notes, proven_tprs
from dp_leakage.table.notes import own_notes
from dp_leakage.table.numbers import beside_prints, rows_by_budget
from dp_leakage.table.tables import Table, Tables
from dp_leakage.table.words import name

FIGURE = {
    "table": True,
    "caption": "Accuracy of attacks on hidden attributes, compared with imputation: the same guess from the "
    "attacker's own data, without the model. A model has memorized what it adds among members but not among non- "
    "members. An interval that contains 0 shows nothing. The proven ceiling limits the attack's accuracy among "
    "members, given its accuracy among non-members.",
    "proven": True,
    "settings": {"attack": {"$ref": "#/$defs/attack"}},
}

# Head → the metric below it, and its qualifiers.
COLUMNS = {
    "attack": ("attribute_accuracy", {"by": "attack", "of": "members"}),
    "imputation": ("attribute_accuracy", {"by": "imputation", "of": "members"}),
    "members": ("attribute_added", {"of": "members"}),
    "others": ("attribute_added", {"of": "nonmembers"}),
    "members less others": ("attribute_added", {"of": "difference"}),
}
GROUPS = [("", 3), ("right guesses of members", 2), ("the model adds, of", 3)]
CEILING = "at most, proven"


def draw(
    metrics: pd.DataFrame, settings: dict[str, Any], published: pd.DataFrame | None
) -> tuple[Tables, pd.DataFrame]:
    """Return one table per (data set, model), a row per defense, budget and attack.

    Settings:
        attack: only this one; None: every attack that is compared with imputation.

    Raises:
        UserError: no such attack was measured.
    """
    (frame, proven), attack = divided(chosen(metrics, settings)), settings["attack"]
    shown = {head: metric_rows(frame, metric, attack=attack, **wanted) for head, (metric, wanted) in COLUMNS.items()}
    if len(proven):
        shown[CEILING] = _ceiling(
            metric_rows(frame, "attribute_accuracy", attack=attack, by="attack", of="nonmembers"), proven
        )
    found = pd.concat([part.assign(column=head) for head, part in shown.items()])
    rows = drawn_numbers(found, None, extra=["column", "attack"])
    tables = [_table(heading, part) for heading, part in panels(rows)]
    notes = [
        "Shares of all guesses, 95 % intervals in brackets. Imputation counts as given.",
        *proven_notes(proven, CEILING[0].upper() + CEILING[1:]),
        *own_notes(settings),
    ]
    return Tables(tables, notes, settings.get("title")), rows.drop(columns="column")


def _ceiling(others: pd.DataFrame, proven: pd.DataFrame) -> pd.DataFrame:
    """Return the largest success rate of an attack about members of a private cell, from its success about
    non-members.

    Guessing about a non-member attacks a training without that record, so this rate is the probability of a guess in
    `TradeOff.reconstruction`. The upper end of its interval is used.
    """
    private = others[is_private(others)]
    limit = proven_tprs(proven)
    rates = [
        limit(tuple(cell), np.array([rate]))[0] for *cell, rate in private[[*CELL, "high"]].itertuples(index=False)
    ]
    return private.assign(metric="attribute_accuracy_proven", value=rates, low=np.nan, high=np.nan, of="members")


def _table(heading: str, part: pd.DataFrame) -> Table:
    bounded = [CEILING] if CEILING in set(part["column"]) else []
    heads, texts = beside_prints(part, {head: head for head in [*COLUMNS, *bounded]})

    def lines(cell: pd.DataFrame) -> list[list[str]]:
        return [[name(str(attack)), *texts(own)] for attack, own in cell.groupby("attack", sort=False)]

    groups = [*GROUPS, *([("right guesses of members", 1)] if bounded else [])]
    return Table(heading, ["defense", "ε", "attack", *heads], rows_by_budget(part, lines), groups, left=3)
