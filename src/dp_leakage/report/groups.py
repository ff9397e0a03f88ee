"""Sentences on groups of records: the group with the largest leakage, for each data set, undefended and private."""

import pandas as pd

from dp_leakage.metrics.rows import CELL
from dp_leakage.report.claims import Claim, ClaimWriter
from dp_leakage.report.most import by_kind, most
from dp_leakage.table.words import called, name

METRIC, LIMITS = "group_excess", (-2.0, 2.0)


def group_claims(metrics: pd.DataFrame) -> list[Claim]:
    """Return for each data set claims on the group with the largest leakage, among undefended and among private models.

    Args:
        metrics: rows as `dp_leakage.table.frames` names them, of single repeats too.

    The interval is simultaneous for all groups, attacks and models of this kind on the data set.
    """
    return [_claim(*own) for own in by_kind(metrics[metrics["metric"] == METRIC])]


def _claim(dataset: str, kind: str, rows: pd.DataFrame) -> Claim:
    standing = most(rows, [*CELL, "attack", "by", "group"], LIMITS)
    found, row = standing.found, standing.row
    writer = ClaimWriter({"dataset": dataset, "among": standing.count})
    own = {column: row[column] for column in ("model", "defense", "attack", "by", "group")}
    shown = writer.fraction(METRIC, found, **own)
    group = records(row["by"], row["group"])
    said = (
        f"the attack finds more among {group} than among all others: the advantage is larger by {shown}"
        if found.low > 0
        else f"in no group does an attack surely find more; nearest come {group}, where the advantage differs by "
        f"{shown}"
    )
    words = (
        f"By group, {kind} models: {said}. That is {name(row['attack'])} on {name(row['model'])}, defense "
        f"{row['defense']}{standing.words('combinations of group, attack and model', writer)}."
    )
    cells = ((row["model"], row["defense"]),)
    claim = f"{dataset}.groups.{kind}"
    return writer.claim(claim, "groups", dataset, words, cells=cells, screen=2)


def records(by: str, group: str) -> str:
    """Name the records of a group: ``records of class benign``, ``with age: over 45``, ``that occur once``."""
    if by == "duplicates":
        return f"records that occur {group}"
    return f"records {'of' if by == 'class' else 'with'} {called(by, group)}"
