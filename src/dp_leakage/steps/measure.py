"""Turns the scores of a cell's attacks into metrics with intervals, and joins them to those of its training."""

from pathlib import Path

from dp_leakage.provenance.files import write_table
from dp_leakage.steps import Json, provenance, run
from dp_leakage.steps._metrics import COLUMNS, read_cell


def main(settings: Json, parts: list[Path], metrics: Path) -> None:
    """Reads one file per part, in the order of the settings, writes ``metrics.parquet``."""
    rows = read_cell(parts, settings["parts"])
    write_table(metrics, {name: rows[name].tolist() for name in COLUMNS}, provenance(settings))


if __name__ == "__main__":
    run(main, "metrics", lists=("parts",))
