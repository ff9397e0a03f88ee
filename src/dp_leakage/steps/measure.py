"""Join the measurements of a cell: its training, its attacks and its audits."""

from pathlib import Path

from dp_leakage.steps import Json, provenance
from dp_leakage.steps._metrics import read_rows
from dp_leakage.steps._rows import write_rows


def main(settings: Json, parts: list[Path], metrics: Path) -> None:
    """Read the rows of every part, in the order of the settings; write ``metrics.parquet``."""
    write_rows(metrics, read_rows(parts, settings["parts"]), provenance(settings))
