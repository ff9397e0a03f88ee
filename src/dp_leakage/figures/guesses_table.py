"""What a model adds to guesses of attributes, beside what the attacker's own data give."""

from typing import TYPE_CHECKING, Any

import pandas as pd

from dp_leakage.figures.frames import chosen, drawn_numbers, metric_rows, panels
from dp_leakage.figures.notes import own_notes
from dp_leakage.figures.numbers import beside_prints, rows_by_budget
from dp_leakage.figures.style import name, styled
from dp_leakage.figures.table import Table, draw_tables

if TYPE_CHECKING:
    from matplotlib.figure import Figure

FIGURE = {
    "caption": "How often attacks guess attributes right, compared with imputation: the same guess from the "
    "attacker's own data, without the model. What the model adds among members but not among others is what it "
    "remembers of them. If an interval contains 0, nothing is shown.",
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


@styled
def draw(
    metrics: pd.DataFrame, settings: dict[str, Any], published: pd.DataFrame | None
) -> "tuple[Figure, pd.DataFrame]":
    """One table per (data set, model), a row per defense, budget and attack.

    Settings:
        attack: only this one; None: every attack that stands beside imputation.

    Raises:
        UserError: no such attack was measured.
    """
    frame, attack = chosen(metrics, settings), settings["attack"]
    shown = {head: metric_rows(frame, metric, attack=attack, **wanted) for head, (metric, wanted) in COLUMNS.items()}
    found = pd.concat([part.assign(column=head) for head, part in shown.items()])
    rows = drawn_numbers(found, None, extra=["column", "attack"])
    tables = [_table(heading, part) for heading, part in panels(rows)]
    notes = [
        "Shares of all guesses, 95 % intervals in brackets. Imputation counts as given.",
        *own_notes(settings),
    ]
    return draw_tables(tables, notes, settings.get("title")), rows.drop(columns="column")


def _table(heading: str, part: pd.DataFrame) -> Table:
    heads, texts = beside_prints(part, {head: head for head in COLUMNS})

    def lines(cell: pd.DataFrame) -> list[list[str]]:
        return [[name(str(attack)), *texts(own)] for attack, own in cell.groupby("attack", sort=False)]

    return Table(heading, ["defense", "ε", "attack", *heads], rows_by_budget(part, lines), GROUPS, left=3)
