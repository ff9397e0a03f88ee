"""The group of records in which attacks find most, in a sentence for each data set, undefended and private."""

import numpy as np
import pandas as pd

from dp_leakage.figures.groups import called
from dp_leakage.figures.style import name
from dp_leakage.metrics.intervals import Estimate
from dp_leakage.metrics.rows import CELL
from dp_leakage.metrics.runs import ALL
from dp_leakage.metrics.simultaneous import simultaneous
from dp_leakage.report.claims import Claim, Telling

METRIC, LIMITS = "group_excess", (-2.0, 2.0)


def group_claims(metrics: pd.DataFrame) -> list[Claim]:
    """Of each data set, the group that stands out most, among undefended models and among private ones.

    Args:
        metrics: rows as `dp_leakage.figures.frames` names them, of single repeats too.

    The interval is so wide that those of all groups, attacks and models of its kind on the data set hold together.
    """
    rows = metrics[metrics["metric"] == METRIC]
    private = rows["accountant"].fillna("") != ""
    kinds = {"undefended": rows[rows["defense"] == "none"], "private": rows[private]}
    return [
        _claim(str(dataset), kind, own)
        for dataset in dict.fromkeys(rows["dataset"])
        for kind, of_kind in kinds.items()
        if not (own := of_kind[of_kind["dataset"] == dataset]).empty
    ]


def _claim(dataset: str, kind: str, rows: pd.DataFrame) -> Claim:
    key = [*CELL, "attack", "by", "group"]
    together = rows[rows["repeat"] == ALL]
    single = dict(iter(rows[rows["repeat"] != ALL].groupby(key)["value"]))
    held = [
        simultaneous(Estimate(*found), len(together), LIMITS, single.get(tuple(of), np.array([])))
        for found, of in zip(together[["value", "low", "high"]].to_numpy(), together[key].to_numpy(), strict=True)
    ]
    place = max(range(len(held)), key=lambda at: (held[at].low > 0, held[at].value))
    most, row = held[place], together.iloc[place]
    tell = Telling({"dataset": dataset, "among": len(held)})
    own = {column: row[column] for column in ("model", "defense", "attack", "by", "group")}
    shown = tell.fraction(METRIC, most, **own)
    group = called(row["by"], row["group"])
    found = (
        f"the attack finds more among records of {group} than among all others: the advantage is larger by {shown}"
        if most.low > 0
        else f"no group stands out beyond chance; nearest comes {group}, whose advantage is larger by {shown}"
    )
    words = (
        f"By group, {kind} models: {found}. That is {name(row['attack'])} on {name(row['model'])}, defense "
        f"{row['defense']}, the most of {tell.count(len(held))} combinations of group, attack and model, whose "
        "intervals hold together."
    )
    cells = ((row["model"], row["defense"]),)
    claim = f"{dataset}.groups.{kind}"
    return Claim(claim, "groups", dataset, words, cells=cells, screen=2, numbers=tuple(tell.numbers))
