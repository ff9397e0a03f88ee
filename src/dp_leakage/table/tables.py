"""Tables of texts. `html` writes them for a page and `latex` for a paper; the numbers behind them go into a csv."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby, pairwise


@dataclass(frozen=True)
class Table:
    """Rows of texts with column headers.

    Attributes:
        heading: above it; "" for none.
        heads: of the columns.
        rows: as many texts as heads each. Each row has all its names, so that rows can be sorted.
        groups: (words, number of columns) above the heads, from left to right, together all columns; empty for none.
        left: number of left-aligned columns; the rest are right-aligned.
    """

    heading: str
    heads: Sequence[str]
    rows: Sequence[Sequence[str]]
    groups: Sequence[tuple[str, int]] = ()
    left: int = 1

    @property
    def starts(self) -> list[bool]:
        """Return for each row whether a rule separates it from the row above: where a repeated first text begins or
        ends.
        """
        sizes = [len(list(rows)) for _, rows in groupby(self.rows, key=lambda row: row[0])]
        parted = [False, *(max(both) > 1 for both in pairwise(sizes))]
        return [start and place == 0 for start, size in zip(parted, sizes, strict=False) for place in range(size)]


@dataclass(frozen=True)
class Tables:
    """A figure made of tables.

    Attributes:
        tables: one below the other.
        notes: footnotes, a sentence or more each.
        title: above everything; None: none.
    """

    tables: Sequence[Table]
    notes: Sequence[str] = ()
    title: str | None = None
