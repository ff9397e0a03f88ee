"""Scale, project and normalize the features, if the study says so."""

from pathlib import Path

from dp_leakage.common.user_code import call
from dp_leakage.data.projection import project
from dp_leakage.data.projection_settings import FEATURES, HIDDEN
from dp_leakage.provenance.files import read_arrays, write_arrays
from dp_leakage.steps import Json, log, provenance, run
from dp_leakage.steps._data import arrays_of, dataset_of


def main(settings: Json, prepared: Path, data: Path, features: Path | None = None) -> None:
    """Read ``prepared.npz`` and the network of learned ``features``; write ``data.npz``."""
    arrays, made = read_arrays(prepared, settings["prepared"])
    learned = None
    if features is not None:
        layers = settings["projection"]["learned_on"].get("layers", HIDDEN)
        learned = call(FEATURES, "read_features", features, settings["features"], layers, arrays["x"])
    dataset, notes = project(dataset_of(arrays), settings["projection"], settings["seed"], learned)
    notes = (*(learned.notes if learned else ()), *notes)
    for note in notes:
        log.info("%s", note)
    stamp = provenance(
        settings,
        sha256=made["sha256"] | (learned.sha256 if learned else {}),
        n_records=made["n_records"],
        notes=[*made["notes"], *notes],
        remarks=made["remarks"],
        copies=made["copies"],
        names=made["names"],
    )
    write_arrays(data, arrays_of(dataset), stamp)


if __name__ == "__main__":
    run(main, "prepared", "data", "features?")
