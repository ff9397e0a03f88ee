"""Turns the scores of a cell's attacks into metrics with intervals, and joins them to those of its training."""

from pathlib import Path

from dp_leakage.files import write_table
from dp_leakage.steps import Json, provenance, run
from dp_leakage.steps._metrics import read_part

COLUMNS = ("metric", "repeat", "value", "low", "high", "setting")


def main(settings: Json, parts: list[Path], metrics: Path) -> None:
    """Reads one file per part, in the order of the settings, writes ``metrics.parquet``."""
    frames = [read_part(path, *part) for path, part in zip(parts, settings["parts"], strict=True)]
    rows = {name: [value for frame in frames for value in frame[name]] for name in COLUMNS}
    write_table(metrics, rows, provenance(settings))


if __name__ == "__main__":
    run(main, "metrics", lists=("parts",))
