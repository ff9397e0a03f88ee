"""Precision of accusations: the maximum share of members among ten people accused by the best attack."""

from typing import Any

import numpy as np
import pandas as pd

from dp_leakage.common.rounding import decimals_up
from dp_leakage.metrics.measure import STRONGEST
from dp_leakage.privacy.rates import PRIORS, precision
from dp_leakage.table.frames import chosen, drawn_numbers, panels, rate_rows
from dp_leakage.table.limits import divided, proven_notes, proven_tprs
from dp_leakage.table.notes import not_measured_notes, own_notes
from dp_leakage.table.numbers import rows_by_budget
from dp_leakage.table.tables import Table, Tables

FIGURE = {
    "table": True,
    "caption": "Number of members among ten people accused by the best measured attack, and the proven maximum for "
    "any attack. If members are rare among the people tested, most accusations are wrong.",
    "proven": True,
    "settings": {
        "fpr": {
            "enum": [0.01, 0.001],
            "default": 0.01,
            "description": "The false positive rate of the attacker who accuses.",
        },
    },
}


def draw(
    metrics: pd.DataFrame, settings: dict[str, Any], published: pd.DataFrame | None
) -> tuple[Tables, pd.DataFrame]:
    """Return one table per (data set, model), a row per defense and budget, columns per share of members among the
    people tested.

    Settings:
        fpr: false positive rate, 0.01 or 0.001.
    """
    measured, proven = divided(metrics)
    frame, fpr = chosen(measured, settings), settings["fpr"]
    rates = rate_rows(frame, STRONGEST, fpr)
    rates = rates.assign(attack=rates["of"], of="")
    rows = drawn_numbers(pd.concat([_precisions(rates, prior, fpr) for prior in PRIORS]), None, ["attack", "prior"])
    limit = proven_tprs(proven)
    limits = [
        precision(row.prior, float(limit((row.dataset, row.model, row.defense), np.array([fpr]))[0]), fpr)
        for row in rows.itertuples()
    ]
    rows = rows.assign(precision_proven=np.where(rows["accountant"] != "", limits, np.nan))
    heads = ["defense", "ε"]
    groups = [("", 2), *((f"{100 * prior:g} % were in training; at random {10 * prior:g}", 2) for prior in PRIORS)]
    tables = [
        Table(heading, [*heads, *("measured", "at most") * len(PRIORS)], rows_by_budget(part, _lines), groups, left=2)
        for heading, part in panels(rows)
    ]
    notes = [
        "Of ten people whom the best measured attack accuses, this many were in the training data [95 % interval], "
        f"where it is wrong about {100 * fpr:g} % of those who were not.",
        *not_measured_notes([fpr] if rows["measured"].isna().any() else []),
        *proven_notes(proven, "At most"),
        *own_notes(settings),
    ]
    return Tables(tables, notes, settings.get("title")), rows


def _precisions(rates: pd.DataFrame, prior: float, fpr: float) -> pd.DataFrame:
    """Convert true positive rates to the share of members among the accused, which increases with them."""
    turned = {end: [precision(prior, tpr, fpr) for tpr in rates[end]] for end in ("value", "low", "high")}
    return rates.assign(**turned, metric="precision", prior=prior)


def _lines(cell: pd.DataFrame) -> list[list[str]]:
    return [[text for row in cell.sort_values("prior").itertuples() for text in _texts(row)]]


def _texts(row: Any) -> tuple[str, str]:
    if np.isnan(row.measured):
        return "–", "–"
    found = f"{10 * row.measured:.1f} [{10 * row.low:.1f}, {10 * row.high:.1f}]"
    most = "–" if np.isnan(row.precision_proven) else decimals_up(10 * row.precision_proven, 1)
    return found, most
