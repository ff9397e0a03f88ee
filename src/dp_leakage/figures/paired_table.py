"""Reduction of an attack's success by a defense, on the same records: paired differences with intervals."""

from typing import Any

import numpy as np
import pandas as pd

from dp_leakage.common.errors import UserError
from dp_leakage.metrics import coins
from dp_leakage.metrics.intervals import UNKNOWN_DIFFERENCE, Estimate, Influences, crossed_difference
from dp_leakage.metrics.rates import tpr_at
from dp_leakage.metrics.roc import area, share_above
from dp_leakage.metrics.runs import by_repeat
from dp_leakage.table.frames import chosen, each_cell, listed, own_row, panels, require_scores
from dp_leakage.table.notes import own_notes
from dp_leakage.table.numbers import cell_label, interval
from dp_leakage.table.tables import Table, Tables
from dp_leakage.table.words import name

SCORES = ["repeat", "record", "member", "score"]
FIGURE = {
    "table": True,
    "caption": "Reduction of each attack's success by each defense, compared on the same records. An interval below 0 "
    "shows that the defense helps against this attack, and that neither records nor trainings explain this by "
    "chance.",
    "needs": "scores",
    "settings": {
        "attacks": {
            "type": "array",
            "items": {"type": "string", "minLength": 1},
            "default": [],
            "description": "The attacks that are compared; none for all.",
        },
        "against": {
            "type": "string",
            "minLength": 1,
            "default": "none",
            "description": "The defense with which all others are compared.",
        },
        "fpr": {
            "type": ["null", "number"],
            "exclusiveMinimum": 0,
            "exclusiveMaximum": 1,
            "default": None,
            "description": "Compare true positive rates at this false positive rate; null: areas under the ROC.",
        },
    },
}


def draw(
    metrics: pd.DataFrame, settings: dict[str, Any], published: pd.DataFrame | None
) -> tuple[Tables, pd.DataFrame]:
    """Return one table per (data set, model); rows are defenses and budgets, columns attacks.

    Settings:
        attacks: names; empty: all.
        against: the folder name of the defense that all others are compared with.
        fpr: compare the true positive rates at this false positive rate; None: the areas under the ROC.

    Raises:
        UserError: there are no scores of ``attacks`` or ``against``, or both attacks were run on different records.
    """
    frame = chosen(metrics, settings)
    attacks = listed(settings["attacks"]) or list(frame["attack"].unique())
    require_scores(frame, "attacks", "attack", attacks)
    require_scores(frame, "against", "defense", [settings["against"]])
    rows = pd.DataFrame(
        [
            row
            for _, cells in frame[frame["attack"].isin(attacks)].groupby(["dataset", "model"], sort=True)
            for row in _differences(cells, settings["against"], settings["fpr"])
        ]
    )
    tables = [_table(heading, part, attacks) for heading, part in panels(rows)]
    fpr = settings["fpr"]
    what = "Area under the ROC" if fpr is None else f"True positive rate at {100 * fpr:g} % false positives"
    words = "the undefended models'" if settings["against"] == "none" else f"that of {settings['against']}"
    notes = [
        f"{what} less {words}: below 0, the defense takes something from the attack. 95 % intervals over the "
        "records, the same for both, and over the models of each.",
        *own_notes(settings),
    ]
    return Tables(tables, notes, settings.get("title")), rows


def _differences(cells: pd.DataFrame, against: str, fpr: float | None) -> list[dict[str, Any]]:
    """Return a row of the csv for every attack on every other defense of one (data set, model)."""
    what = "membership_auc" if fpr is None else "reached_tpr"
    rate = {} if fpr is None else {"fpr": fpr}
    rows = []
    # Without the cell's columns: groups are copies, and these columns are on every record.
    for attack, scored in cells[["attack", "defense", *SCORES]].groupby("attack", sort=False):
        base = scored[scored["defense"] == against]
        if base.empty:
            continue
        judged = _judged(base, fpr)
        for defense, own in scored[scored["defense"] != against].groupby("defense", sort=False):
            found = _paired(_judged(own, fpr), judged, f"'{defense}' and '{against}'")
            first = cells.loc[own.index[0]]
            rows.append(own_row(first, f"{what}_difference", found, attack=attack, against=against, **rate))
    return rows


def _judged(part: pd.DataFrame, fpr: float | None) -> tuple[np.ndarray, Influences]:
    """Return the members (by sign, with the record's number, and under random inclusion for each repeat), and the
    metric.

    It is NaN at a rate that the non-members cannot measure (`rates.tpr_at`).
    """
    (score, record), member = by_repeat(part, ["score", "record"], ["record"])
    asked = np.where(member, record[0] + 1, -record[0] - 1)
    by_coins = member.ndim == 2
    groups = (score, member) if by_coins else (score[:, member], score[:, ~member])
    if fpr is None:
        return asked, (coins.auc if by_coins else area)(*groups)
    found = (coins.share_above if by_coins else share_above)(*groups, fpr=fpr)
    return asked, found._replace(value=tpr_at(score, member, fpr).told.value)


def _paired(own: tuple[np.ndarray, Influences], base: tuple[np.ndarray, Influences], cells: str) -> Estimate:
    (asked, reached), (asked_of_base, reached_of_base) = own, base
    if not np.array_equal(asked, asked_of_base):
        raise UserError(f"figure of kind 'paired_table': {cells} were attacked on different records; leave one out")
    if np.isnan(reached.value):
        return UNKNOWN_DIFFERENCE
    difference = coins.paired_difference if asked.ndim == 2 else crossed_difference
    return difference(reached, reached_of_base)


def _table(heading: str, part: pd.DataFrame, attacks: list[str]) -> Table:
    there = [attack for attack in attacks if attack in set(part["attack"])]
    lines = []
    for series, cell in each_cell(part):
        found = {row.attack: interval(row.measured, row.low, row.high) for row in cell.itertuples()}
        lines.append([cell_label(series, cell.iloc[0]), *(found.get(attack, "–") for attack in there)])
    return Table(heading, ["defense", *map(name, there)], lines)
