"""Compute disclosure metrics from the structure of tree and linear models."""

from pathlib import Path

from dp_leakage.engines.answers import Answers
from dp_leakage.metrics.structure import measure_structure
from dp_leakage.provenance.files import read_tensors
from dp_leakage.steps import Json, provenance
from dp_leakage.steps._data import read_dataset
from dp_leakage.steps._rows import write_rows


def main(settings: Json, models: Path, data: Path, rows: Path) -> None:
    """Read the models' outputs on all records, and the records; write the rows."""
    said = Answers.from_tensors(read_tensors(models, settings["models"])[0])
    y = read_dataset(data, settings["data"]).y
    write_rows(rows, measure_structure(said, y), provenance(settings))
