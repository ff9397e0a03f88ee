"""Columns of a table that look like names of persons, each of whom has several records."""

import re
from collections.abc import Collection
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pandas as pd

LEAST_PERSONS = 10  # different values; with fewer it is rather a flag, or a number of persons
LEAST_RECORDS = 2.0  # records of a value on average
WORDS = (
    "account|client|customer|employee|household|member|owner|participant|patient|person|speaker|student|subject|user|"
    "writer"
)
NAME = re.compile(rf"(.*[\W_])?({WORDS})([\W_]?(code|id|key|name|no|nr|number))?|(p|u|.*[\W_])?id", re.IGNORECASE)


def likely_persons(frame: "pd.DataFrame", beside: Collection[str], most_categories: int) -> tuple[tuple[str, int], ...]:
    """(name, number of different values) of each column that seems to say whose record it is.

    Such a column holds texts or whole numbers, with at least `LEAST_RECORDS` records for each of at least
    `LEAST_PERSONS` values, and either is called like one (``patient``, ``user_id``), or has more than
    ``most_categories`` different texts. A column of numbers with another name is never found, since ages look the same.

    Args:
        frame: the table, with columns that are no features.
        beside: columns that are known to be something else, such as the label.
        most_categories: more different texts than these are names rather than categories.
    """
    from pandas.api.types import infer_dtype

    found = []
    for name in frame.columns:
        column = frame[name]
        if name in beside:
            continue
        named, values = bool(NAME.fullmatch(name)), column.dropna()
        if column.dtype.kind == "f":  # whole numbers with gaps are read as these
            fits = named and bool((values % 1 == 0).all())
        elif column.dtype.kind in "iu":
            fits = named
        else:  # a Parquet file may hold lists, which cannot be counted
            fits = infer_dtype(values) in ("string", "categorical")
        if not fits:
            continue
        different = int(values.nunique())
        repeated = different >= LEAST_PERSONS and len(values) >= LEAST_RECORDS * different
        if repeated and (named or different > most_categories):
            found.append((name, different))
    return tuple(found)
