"""What one mechanism has over another at the same nominal budget (directional2023, table 7)."""

from typing import Any

import pandas as pd

from dp_leakage.common.errors import UserError
from dp_leakage.figures.compared_table import column_head, column_rows
from dp_leakage.metrics.intervals import Estimate, difference
from dp_leakage.table.frames import chosen, drawn_numbers, panels
from dp_leakage.table.notes import accounting_notes
from dp_leakage.table.numbers import PRINTED, beside_prints, number
from dp_leakage.table.tables import Table, Tables
from dp_leakage.table.words import name

FIGURE = {
    "table": True,
    "caption": "What one mechanism has over another at the same nominal budget. Positive: the first has more of it.",
    "settings": {
        "metrics": {
            "type": "array",
            "items": {"type": "string", "minLength": 1},
            "default": [],
            "description": "The columns, each `METRIC`, `METRIC/ATTACK` or `METRIC/ATTACK/key=value`.",
        },
        "of": {
            "type": "string",
            "minLength": 1,
            "default": "vmf",
            "description": "The mechanism whose numbers are taken.",
        },
        "against": {
            "type": "string",
            "minLength": 1,
            "default": "gaussian",
            "description": "The mechanism whose numbers are subtracted.",
        },
    },
}


def draw(
    metrics: pd.DataFrame, settings: dict[str, Any], published: pd.DataFrame | None
) -> tuple[Tables, pd.DataFrame]:
    """One table per (data set, model), a row per budget that both mechanisms have.

    Settings:
        metrics: as of the kind ``compared_table``.
        of, against: mechanisms; the numbers are those of the first less those of the second.
    """
    frame = chosen(metrics, settings)
    of, against = settings["of"], settings["against"]
    parts = [
        _less(column_rows(frame, asked), of, against).assign(column=column_head(asked)) for asked in settings["metrics"]
    ]
    shown = pd.concat(parts)
    if shown.empty:
        raise UserError(f"figure of kind 'difference_table': {of} and {against} have no budget in common")
    rows = drawn_numbers(shown, published, extra=["column", "n_members"], any_size=True)
    columns = list(dict.fromkeys(shown["column"]))
    tables = [_table(heading, part, columns) for heading, part in panels(rows)]
    notes = [
        f"{name(of)} less {name(against)} at the same nominal ε, which does not mean the same for both "
        "[95 % interval; the two are trained independently].",
        *([PRINTED] if rows["published"].notna().any() else []),
        *accounting_notes(frame, settings),
    ]
    return Tables(tables, notes, settings.get("title")), rows.drop(columns="column")


def _less(rows: pd.DataFrame, of: str, against: str) -> pd.DataFrame:
    """The rows of ``of`` with the differences in place of their numbers; ``_difference`` is added to the metric."""
    other = {_place(row): row for row in rows[rows["mechanism"] == against].itertuples()}
    own = rows[rows["mechanism"] == of]
    own = own.loc[[row.Index for row in own.itertuples() if _place(row) in other]]
    found = [difference(_estimate(row), _estimate(other[_place(row)])) for row in own.itertuples()]
    return own.assign(
        value=[estimate.value for estimate in found],
        low=[estimate.low for estimate in found],
        high=[estimate.high for estimate in found],
        metric=own["metric"] + "_difference",
        against=against,
    )


def _place(row: Any) -> tuple[Any, ...]:
    return row.dataset, row.model, row.epsilon


def _estimate(row: Any) -> Estimate:
    return Estimate(row.value, row.low, row.high)


def _table(heading: str, part: pd.DataFrame, asked: list[str]) -> Table:
    heads, texts = beside_prints(part, {column: column for column in asked if column in set(part["column"])})
    lines = [[number(epsilon), *texts(cell)] for epsilon, cell in part.groupby("epsilon")]
    return Table(heading, ["ε", *heads], lines)
