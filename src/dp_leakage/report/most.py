"""The largest of several measured numbers, with an interval that pays for having looked at all of them."""

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import pandas as pd

from dp_leakage.figures.frames import is_private
from dp_leakage.metrics.intervals import Estimate
from dp_leakage.metrics.runs import ALL
from dp_leakage.metrics.simultaneous import simultaneous


def by_kind(rows: pd.DataFrame) -> Iterator[tuple[str, str, pd.DataFrame]]:
    """(data set, ``undefended`` or ``private``, the rows of such models), wherever there are rows."""
    kinds = {"undefended": rows[rows["defense"] == "none"], "private": rows[is_private(rows)]}
    for dataset in dict.fromkeys(rows["dataset"]):
        for kind, of_kind in kinds.items():
            own = of_kind[of_kind["dataset"] == dataset]
            if not own.empty:
                yield str(dataset), kind, own


def most(
    rows: pd.DataFrame, key: Sequence[str], limits: tuple[float, float], guess: float = 0.0
) -> tuple[Estimate, "pd.Series[Any]", int]:
    """The number that stands out most.

    Args:
        rows: of one metric, over all repeats and of single ones.
        key: the columns that tell the numbers apart.
        limits: the range of the metric.
        guess: what it is by chance; a number that is surely above comes before one that is not.

    Returns:
        The number, with an interval so wide that those of all hold together; its row; and how many there are.
    """
    together = rows[rows["repeat"] == ALL]
    single = dict(iter(rows[rows["repeat"] != ALL].groupby([*key])["value"]))
    held = [
        simultaneous(Estimate(*found), len(together), limits, single.get(tuple(of), np.array([])))
        for found, of in zip(together[["value", "low", "high"]].to_numpy(), together[[*key]].to_numpy(), strict=True)
    ]
    place = max(range(len(held)), key=lambda at: (held[at].low > guess, held[at].value))
    return held[place], together.iloc[place], len(held)
