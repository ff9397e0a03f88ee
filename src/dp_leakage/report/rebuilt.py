"""Sentences on gradient inversion: how often a rebuilt image identifies the record, undefended and private."""

import pandas as pd

from dp_leakage.metrics.rows import CELL
from dp_leakage.report.claims import Claim, ClaimWriter
from dp_leakage.report.guarantees import rounded_up
from dp_leakage.report.most import by_kind, most
from dp_leakage.table.words import name

METRIC, CEILING = "recognized", "recognized_proven"
STEP = ["candidates", "batch", "weights"]  # what tells an attack's numbers of a cell apart


def rebuilt_claims(metrics: pd.DataFrame) -> list[Claim]:
    """Return for each data set claims on the attack and step that identify records best, undefended and private.

    The best is the share furthest above a guess, which is right less often among more candidates.

    Args:
        metrics: rows as `dp_leakage.table.frames` names them, of single repeats too.

    The interval is simultaneous for all attacks, steps and models of this kind on the data set.
    """
    rows = metrics[metrics["metric"].isin([METRIC, CEILING])].fillna({"batch": 0.0})  # where it was no list
    return [_claim(*own) for own in by_kind(rows)]


def _claim(dataset: str, kind: str, rows: pd.DataFrame) -> Claim:
    key = [*CELL, "attack", *STEP]
    right = rows[rows["metric"] == METRIC]
    standing = most(right, key, (0.0, 1.0), 1 / right["candidates"])
    found, row = standing.found, standing.row
    writer = ClaimWriter({"dataset": dataset, **{column: row[column] for column in (*CELL[1:], "attack", *STEP)}})
    step = f"a step on {writer.plain('batch', row['batch'])} records" if row["batch"] > 1 else "a step"
    guess = f"{100 / row['candidates']:.3g} %"
    often = f"{writer.percent(METRIC, found, among=standing.count)} of the cases, where a guess is right in {guess}"
    limits = rows[(rows["metric"] == CEILING) & (rows[key] == row[key]).all(axis=1)]["value"]
    limit = float(limits.iloc[0])
    proven = f" No attack on such a step is right in more than {writer(CEILING, limit, rounded_up(100 * limit, 1))} %."
    what = "the most" if right["candidates"].nunique() == 1 else "the most above a guess"
    model = f"{name(row['model'])} that has {'not ' if row['weights'] == 'initial' else ''}trained"
    words = (
        f"Images rebuilt from gradients, {kind} models: the image rebuilt from {step} tells which of "
        f"{writer.plain('candidates', row['candidates'])} equally likely records was in it in {often}. That is "
        f"{name(row['attack'])} on {model}, defense {row['defense']}"
        f"{standing.words('combinations of attack, step and model', writer, what)}.{proven if limit < 1 else ''}"
    )
    cells = ((row["model"], row["defense"]),)
    return writer.claim(f"{dataset}.rebuilt.{kind}", "rebuilt", dataset, words, cells=cells, screen=2)
