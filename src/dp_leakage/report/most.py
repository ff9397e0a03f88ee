"""The largest of several measured numbers, with an interval that pays for having looked at all of them."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from dp_leakage.metrics.intervals import Estimate
from dp_leakage.metrics.runs import ALL
from dp_leakage.metrics.simultaneous import simultaneous
from dp_leakage.report.claims import Telling
from dp_leakage.table.frames import is_private


@dataclass(frozen=True)
class Most:
    """The number that stands out most.

    Attributes:
        found: the number, with an interval so wide that those of all hold together.
        row: its row.
        count: how many numbers there are.
        largest: whether none is further above chance; else one is, but not surely above it.
    """

    found: Estimate
    row: "pd.Series[Any]"
    count: int
    largest: bool

    def words(self, kinds: str, tell: Telling, what: str = "the most") -> str:
        """``, the most of 6 pairs, whose intervals hold together``; "" for a number alone.

        Args:
            kinds: what there are so many of.
            tell: writes numbers.
            what: what the number is of those.
        """
        if self.count == 1:
            return ""
        many = f"{tell.count(self.count)} {kinds}, whose intervals hold together"
        return f", {what} of {many}" if self.largest else f": of {many}, {what} that chance does not explain"


def by_kind(rows: pd.DataFrame) -> Iterator[tuple[str, str, pd.DataFrame]]:
    """(data set, ``undefended`` or ``private``, the rows of such models), wherever there are rows."""
    kinds = {"undefended": rows[rows["defense"] == "none"], "private": rows[is_private(rows)]}
    for dataset in dict.fromkeys(rows["dataset"]):
        for kind, of_kind in kinds.items():
            own = of_kind[of_kind["dataset"] == dataset]
            if not own.empty:
                yield str(dataset), kind, own


def most(
    rows: pd.DataFrame,
    key: Sequence[str],
    limits: tuple[float, float],
    guess: "float | pd.Series[float]" = 0.0,
) -> Most:
    """The number that stands out most: of those surely above what it is by chance, else of all, the furthest above.

    Args:
        rows: of one metric, over all repeats and of single ones.
        key: the columns that tell the numbers apart.
        limits: the range of the metric.
        guess: what it is by chance, for all numbers or for each row.
    """
    chance = np.broadcast_to(guess, len(rows))[(rows["repeat"] == ALL).to_numpy()]
    together = rows[rows["repeat"] == ALL]
    single = dict(iter(rows[rows["repeat"] != ALL].groupby([*key])["value"]))
    held = [
        simultaneous(Estimate(*found), len(together), limits, single.get(tuple(of), np.array([])))
        for found, of in zip(together[["value", "low", "high"]].to_numpy(), together[[*key]].to_numpy(), strict=True)
    ]
    above = [one.value - guessed for one, guessed in zip(held, chance, strict=True)]
    place = max(range(len(held)), key=lambda at: (held[at].low > chance[at], above[at]))
    return Most(held[place], together.iloc[place], len(held), above[place] == max(above))
