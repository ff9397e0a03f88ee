"""What attacks surely reach beyond what is proven of any attack: something there is wrong."""

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
    """A number that is measured, and the metric that no attack can exceed in it.

    Attributes:
        measured, proven: metrics.
        attack: the attack whose rows count; "" for each by itself.
        key: columns beside the cell's in which both agree.
        limits: the range of the number.
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
        metric, proven: what was measured, and what limits it.
        low: the lower end of an interval so wide that those of all numbers compared in the study hold together.
        limit: what is proven of any attack.
        among: how many numbers were compared.
    """

    row: "pd.Series[Any]"
    metric: str
    proven: str
    low: float
    limit: float
    among: int

    @property
    def cell(self) -> tuple[str, str, str]:
        """Data set, model, defense."""
        return str(self.row["dataset"]), str(self.row["model"]), str(self.row["defense"])


def exceeded(metrics: pd.DataFrame) -> list[Exceeded]:
    """The numbers of private models that surely exceed a proven limit.

    Args:
        metrics: rows of all cells, over all repeats and of single ones.

    What a difference between members and others themselves may explain exceeds nothing.
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
        found = Estimate(*(float(row[end]) for end in ("value", "low", "high")))
        repeats = single.get(tuple(row[key]), np.array([]))
        low = simultaneous(found, len(pairs), compared.limits, repeats).low
        if low > row["limit"]:
            yield Exceeded(row, compared.measured, compared.proven, low, float(row["limit"]), len(pairs))
