"""Seconds per epoch of every defense, measured in turns in one process, beside Opacus and plain PyTorch."""

from typing import Any

import numpy as np
import pandas as pd

from dp_leakage.table.frames import OF_CELL, chosen, csv_columns, in_order, panels, unprinted
from dp_leakage.table.notes import own_notes
from dp_leakage.table.numbers import rows_by_budget
from dp_leakage.table.published import with_published
from dp_leakage.table.tables import Table, Tables

FIGURE = {
    "table": True,
    "caption": "How long an epoch takes under every defense, measured in turns in one process, beside Opacus' "
    "per-example gradients and plain PyTorch.",
    "needs": "timing",
}

ENGINES = {"ours": "this package", "pytorch": "plain PyTorch", "opacus": "Opacus' hooks"}
TURN = ["dataset", "model", "round"]


def draw(
    metrics: pd.DataFrame, settings: dict[str, Any], published: pd.DataFrame | None
) -> tuple[Tables, pd.DataFrame]:
    """One table per (data set, model), a row per defense, budget and engine.

    Args:
        metrics: rows timed (a defense), engine, round, seconds, records of the file of each cell's (data set, model),
            with the cell's columns beside: of the file's rows the cell's own count.
        settings: none of its own.
        published: the paper's seconds for whole trainings, of which the ratio to the undefended one is shown.
    """
    frame = chosen(metrics, settings)
    own = frame[frame["timed"] == frame["defense"]]
    plain = own[(own["mechanism"] == "none") & (own["engine"] == "ours")].set_index(TURN)["seconds"]
    own = own.assign(
        seconds_per_epoch=own["seconds"] * own["n_records"] / own["records"],
        slowdown=own["seconds"] / plain.loc[list(own[TURN].itertuples(index=False, name=None))].to_numpy(),
    )
    rows = pd.concat([_summary(own, metric) for metric in ("seconds_per_epoch", "slowdown")], ignore_index=True)
    rows = in_order(_with_print(rows, published))
    tables = [_table(heading, part) for heading, part in panels(rows)]
    timed = ", ".join(f"{value:,.0f}" for value in sorted(set(own["records"])))
    rounds = own["round"].nunique()
    notes = [
        f"One model, one core, {timed} records an epoch, scaled to all members; median over {rounds} rounds "
        "[least, most]. Times as slow: against the undefended model of this package in the same round.",
    ]
    if rows["published"].notna().any():
        notes.append("Print: the paper's time for a whole training over its time without a defense, on its hardware.")
    return Tables(tables, [*notes, *own_notes(settings)], settings.get("title")), rows[csv_columns(rows, ["engine"])]


def _summary(own: pd.DataFrame, metric: str) -> pd.DataFrame:
    """Median, least and most over the rounds."""
    groups = own.groupby([*OF_CELL, "n_members", "engine"], dropna=False, sort=False)[metric]
    found = groups.agg(measured="median", low="min", high="max").reset_index()
    return found.assign(metric=metric)


def _with_print(rows: pd.DataFrame, published: pd.DataFrame | None) -> pd.DataFrame:
    """Adds the printed slowdown, to our engine's rows; other machines' times are not compared with ours."""
    seconds = with_published(rows.assign(metric="training_seconds"), published, any_size=True)["published"]
    plain = seconds[rows["mechanism"] == "none"].groupby(rows["dataset"]).first()
    ratio = seconds / rows["dataset"].map(plain)
    shown = (rows["metric"] == "slowdown") & (rows["engine"] == "ours")
    return unprinted(rows).assign(published=ratio.where(shown))


def _table(heading: str, part: pd.DataFrame) -> Table:
    has_print = bool(part["published"].notna().any())

    def lines(cell: pd.DataFrame) -> list[list[str]]:
        of = {engine: cell[cell["engine"] == engine] for engine in ENGINES}
        return [[ENGINES[engine], *_numbers(rows, has_print)] for engine, rows in of.items() if len(rows)]

    heads = ["defense", "ε", "engine", "seconds per epoch", "times as slow", *(["print"] if has_print else [])]
    return Table(heading, heads, rows_by_budget(part.assign(noise_multiplier=np.nan), lines), left=3)


def _numbers(cell: pd.DataFrame, has_print: bool) -> list[str]:
    found = {row.metric: row for row in cell.itertuples()}
    texts = [_range(found["seconds_per_epoch"]), _range(found["slowdown"])]
    value = found["slowdown"].published
    return [*texts, "" if np.isnan(value) else f"{value:.3g}"] if has_print else texts


def _range(row: Any) -> str:
    return f"{row.measured:.3g} [{row.low:.3g}, {row.high:.3g}]"
