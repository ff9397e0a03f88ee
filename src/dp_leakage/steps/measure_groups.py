"""Compute metrics of groups of records from the membership attacks on a cell."""

from pathlib import Path

from dp_leakage.data.groups import RECORDS, Names, groups_of
from dp_leakage.metrics.calibration import measure_calibration
from dp_leakage.metrics.groups import measure_groups
from dp_leakage.provenance.files import read_arrays, read_table
from dp_leakage.steps import Json, provenance
from dp_leakage.steps._data import dataset_of
from dp_leakage.steps._rows import write_rows


def main(settings: Json, found: list[Path], data: Path, rows: Path) -> None:
    """Measure each attack by group, from its scores and the records, and write metrics."""
    arrays, made = read_arrays(data, settings["data"])
    asked = [way for way in settings["by"] if way != RECORDS]
    groups = groups_of(dataset_of(arrays), asked, Names(**made["names"]))
    scores = {attack: read_table(path, made)[0] for path, (attack, made) in zip(found, settings["reads"], strict=True)}
    by_record = measure_calibration(scores) if RECORDS in settings["by"] else []
    write_rows(rows, [*measure_groups(scores, groups), *by_record], provenance(settings))
