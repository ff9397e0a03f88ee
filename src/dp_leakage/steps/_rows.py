"""Rows of metrics as all steps write them. It imports little, so that few edits make a step's rows anew."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from dp_leakage.provenance.files import write_table
from dp_leakage.steps import Json

NUMBERS = ("value", "low", "high")
COLUMNS = ("metric", "repeat", *NUMBERS, "setting")


def write_rows(path: Path, rows: Sequence[Mapping[str, Any]], made: Json) -> None:
    """Writes rows with `COLUMNS`. A table without rows has columns of numbers too, so joining it changes no type."""
    columns = {name: [row[name] for row in rows] for name in COLUMNS}
    write_table(path, {key: np.array(of, dtype=float) if key in NUMBERS else of for key, of in columns.items()}, made)
