"""Attacks that significantly exceed a proven limit, so that mechanism, accounting or attack is wrong."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from dp_leakage.metrics import STRONGEST
from dp_leakage.metrics.intervals import Estimate
from dp_leakage.metrics.rows import CELL
from dp_leakage.metrics.runs import ALL
from dp_leakage.metrics.simultaneous import simultaneous
from dp_leakage.report.sources import Sources, sources_of
from dp_leakage.table.frames import is_private


@dataclass(frozen=True)
class Compared:
    """A measured metric and the metric that limits it.

    Attributes:
        measured, proven: metrics.
        attack: the attack whose rows count; "": each attack separately.
        key: columns, besides the cell's, in which both agree.
        limits: range of the metric.
    """

    measured: str
    proven: str
    attack: str
    key: tuple[str, ...]
    limits: tuple[float, float]


COMPARED = (
    Compared("reached_advantage", "advantage_proven", STRONGEST, (), (-1.0, 1.0)),
    Compared("reached_tpr", "tpr_proven", STRONGEST, ("fpr",), (0.0, 1.0)),
    Compared("recognized", "recognized_proven", "", ("attack", "candidates", "batch", "weights"), (0.0, 1.0)),
)


@dataclass(frozen=True)
class Exceeded:
    """A number whose interval lies above its proven limit.

    Attributes:
        row: the measured row.
        metric, proven: the measured metric and its limit.
        low: lower end of an interval that is simultaneous for all numbers compared in the study.
        limit: the proven limit.
        among: number of comparisons.
    """

    row: "pd.Series[Any]"
    metric: str
    proven: str
    low: float
    limit: float
    among: int

    @property
    def cell(self) -> tuple[str, str, str]:
        """Return data set, model and defense."""
        return str(self.row["dataset"]), str(self.row["model"]), str(self.row["defense"])


def exceeded(metrics: pd.DataFrame) -> list[Exceeded]:
    """Return the numbers of private models that significantly exceed a proven limit.

    Args:
        metrics: rows of all cells, over all repeats and of single ones.

    Numbers that a difference between member and non-member records may explain are left out.
    """
    sources = sources_of(metrics)
    return [one for compared in COMPARED for one in _exceeded(metrics, compared, sources)]


def _exceeded(
    metrics: pd.DataFrame, compared: Compared, sources: Mapping[tuple[str, str, str], Sources]
) -> Iterator[Exceeded]:
    metrics = metrics.fillna({"batch": 0.0})  # where it was no list
    rows = metrics[metrics["metric"] == compared.measured]
    rows = rows[is_private(rows) & (rows["attack"] == compared.attack if compared.attack else True)]
    if sources and compared.attack:  # of membership
        keys = rows[[*CELL, "of"]].itertuples(index=False, name=None)
        explained = [(own := sources.get(key[:3])) is not None and own.explains(key[3]) for key in keys]
        rows = rows[~np.array(explained, dtype=bool)]
    key = [*CELL, *compared.key]
    proven = metrics[(metrics["metric"] == compared.proven) & (metrics["repeat"] == ALL)]
    pairs = rows[(rows["repeat"] == ALL) & rows["value"].notna()].merge(
        proven[[*key, "value"]].rename(columns={"value": "limit"}), on=key
    )
    single = dict(iter(rows[rows["repeat"] != ALL].groupby(key, dropna=False)["value"]))
    for _, row in pairs.iterrows():
        found = Estimate.from_row(row)
        repeats = single.get(tuple(row[key]), np.array([]))
        low = simultaneous(found, len(pairs), compared.limits, repeats).low
        if low > row["limit"]:
            yield Exceeded(row, compared.measured, compared.proven, low, float(row["limit"]), len(pairs))
