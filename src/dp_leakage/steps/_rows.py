"""Rows of metrics in the format of all steps. Few imports, so that few edits rerun a step."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pandas as pd

from dp_leakage.metrics.rows import MEASURED, is_empty, qualifiers, tidy
from dp_leakage.provenance.files import write_table
from dp_leakage.steps import Json


def write_rows(path: Path, rows: Sequence[Mapping[str, Any]] | pd.DataFrame, made: Json) -> None:
    """Write rows in tidy columns (`metrics.rows`); a qualifier that does not apply is null, an unknown number NaN."""
    frame = tidy(rows)
    own = {name: frame[name].mask(is_empty(frame[name]), None) for name in qualifiers(frame)}
    write_table(path, {name: frame[name].to_numpy() for name in MEASURED} | own, made)
