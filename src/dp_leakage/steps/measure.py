"""Turns the scores of a cell's attacks into metrics with intervals, and joins them to those of its training."""

from pathlib import Path

from dp_leakage.steps import Json, provenance, run
from dp_leakage.steps._metrics import read_cell
from dp_leakage.steps._rows import write_rows


def main(settings: Json, parts: list[Path], metrics: Path) -> None:
    """Reads one file per part, in the order of the settings, writes ``metrics.parquet``."""
    write_rows(metrics, read_cell(parts, settings["parts"]).to_dict("records"), provenance(settings))


if __name__ == "__main__":
    run(main, "metrics", lists=("parts",))
