"""Tables of metrics, with and without rows."""

import numpy as np
import pandas as pd

from dp_leakage.metrics.rows import MEASURED, NUMBERS
from dp_leakage.provenance.files import read_table, write_table
from dp_leakage.steps._rows import write_rows

ROW = {"metric": "mu", "repeat": "all", "value": 1.5, "low": float("nan"), "high": float("inf"), "attack": "yeom"}


def test_a_table_without_rows_leaves_the_numbers_that_it_is_joined_with_numbers(tmp_path):
    """Where nothing is proven of a cell: the atlas could not draw bands through what was joined with that."""
    for name, rows in {"none": [], "one": [ROW]}.items():
        write_rows(tmp_path / f"{name}.parquet", rows, {})
    none, one = (read_table(tmp_path / f"{name}.parquet")[0] for name in ("none", "one"))
    assert list(none.columns) == MEASURED
    assert list(one.columns) == [*MEASURED, "attack"]
    assert none.empty
    joined = pd.concat([none, one], ignore_index=True)
    assert all(joined[name].dtype == np.float64 for name in NUMBERS)


def test_rows_are_written_to_the_same_bytes_as_their_lists(tmp_path):
    write_rows(tmp_path / "a.parquet", [ROW, ROW], {"made": 1})
    write_table(tmp_path / "b.parquet", {name: [value] * 2 for name, value in ROW.items()}, {"made": 1})
    assert (tmp_path / "a.parquet").read_bytes() == (tmp_path / "b.parquet").read_bytes()
