"""Scales, projects and normalizes the features, if the study says so."""

from pathlib import Path

from dp_leakage.data.projection import project
from dp_leakage.provenance.files import read_arrays, write_arrays
from dp_leakage.steps import Json, log, provenance, run
from dp_leakage.steps._data import arrays_of, dataset_of


def main(settings: Json, prepared: Path, data: Path) -> None:
    """Reads ``prepared.npz``, writes ``data.npz``."""
    arrays, made = read_arrays(prepared, settings["prepared"])
    dataset, notes = project(dataset_of(arrays), settings["projection"], settings["seed"])
    for note in notes:
        log.info("%s", note)
    stamp = provenance(
        settings,
        sha256=made["sha256"],
        n_records=made["n_records"],
        notes=[*made["notes"], *notes],
        remarks=made["remarks"],
        names=made["names"],
    )
    write_arrays(data, arrays_of(dataset), stamp)


if __name__ == "__main__":
    run(main, "prepared", "data")
