"""The largest of several measured numbers, with a simultaneous interval."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from dp_leakage.metrics.intervals import Estimate
from dp_leakage.metrics.runs import ALL
from dp_leakage.metrics.simultaneous import simultaneous
from dp_leakage.report.claims import ClaimWriter
from dp_leakage.table.frames import is_private


@dataclass(frozen=True)
class Most:
    """The largest number.

    Attributes:
        found: the number, with an interval that is simultaneous for all.
        row: its row.
        count: number of compared numbers.
        largest: whether it is the furthest above chance; otherwise a larger one is not significant.
    """

    found: Estimate
    row: "pd.Series[Any]"
    count: int
    largest: bool

    def words(self, kinds: str, writer: ClaimWriter, what: str = "the most") -> str:
        """Return ``, the most of 6 pairs, whose intervals hold together``; "" for a single number.

        Args:
            kinds: plural name of the compared things.
            writer: writes numbers.
            what: role of the number among them.
        """
        if self.count == 1:
            return ""
        many = f"{writer.count(self.count)} {kinds}, whose intervals hold together"
        return f", {what} of {many}" if self.largest else f": of {many}, {what} that chance does not explain"


def by_kind(rows: pd.DataFrame) -> Iterator[tuple[str, str, pd.DataFrame]]:
    """Yield the data set, ``undefended`` or ``private``, and the rows of these models."""
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
    """Return the number furthest above chance, among significant numbers if there are any.

    Args:
        rows: of one metric, over all repeats and of single ones.
        key: the columns that identify a number.
        limits: the range of the metric.
        guess: its value by chance, for all numbers or for each row.
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
