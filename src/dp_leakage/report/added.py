"""Sentences on attribute inference: how much a model adds to what an attacker guesses without it."""

import pandas as pd

from dp_leakage.metrics.intervals import Estimate
from dp_leakage.metrics.rows import CELL
from dp_leakage.report.claims import Claim, ClaimWriter
from dp_leakage.report.most import most
from dp_leakage.table.words import name

METRIC, LIMITS = "attribute_added", (-1.0, 1.0)


def added_claims(metrics: pd.DataFrame) -> list[Claim]:
    """Return for each data set a claim on the attack and cell where the model adds the most to guesses about members.

    Args:
        metrics: rows as `dp_leakage.table.frames` names them, of single repeats too.

    The interval is simultaneous for all cells and attacks of the data set.
    """
    rows = metrics[(metrics["metric"] == METRIC) & (metrics["of"] == "members")]
    return [_claim(str(dataset), own) for dataset, own in rows.groupby("dataset")]


def _claim(dataset: str, rows: pd.DataFrame) -> Claim:
    standing = most(rows, [*CELL, "attack"], LIMITS)
    found, row = standing.found, standing.row
    writer = ClaimWriter({"dataset": dataset, "among": standing.count})
    own = {column: row[column] for column in ("model", "defense", "attack", "of")}
    points = writer(METRIC, found.value, _points(found), low=found.low, high=found.high, **own)
    adds = (
        f"the model adds {points} points" if found.low > 0 else f"the model adds nothing that shows ({points} points)"
    )
    attack = name(row["attack"])
    where = f"{attack} on {name(row['model'])}, defense {row['defense']}"
    words = (
        f"Attributes of members: {adds} to the share of right guesses, beyond what the attacker's own data give. "
        f"That is {where}{standing.words('pairs of attack and cell', writer)}."
    )
    cells = ((row["model"], row["defense"]),)
    return writer.claim(f"{dataset}.added", "added", dataset, words, cells=cells, screen=2)


def _points(found: Estimate) -> str:
    """Format percentage points as ``3.2 [1.0, 5.4]``."""
    value, low, high = (f"{round(100 * one, 1) + 0.0:.1f}".replace("-", "−") for one in found)
    return f"{value} [{low}, {high}]"
