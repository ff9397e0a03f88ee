"""Run one attack on the target models of one cell themselves, for scores and any images."""

from pathlib import Path

from dp_leakage.attacks import ATTACKS
from dp_leakage.attacks.checks import checked_scores
from dp_leakage.common.kernels import exact
from dp_leakage.common.user_code import FILES, call, whose
from dp_leakage.provenance.files import write_arrays, write_table
from dp_leakage.steps import Json, provenance
from dp_leakage.steps._data import read_dataset
from dp_leakage.steps._models import device_of, read_models
from dp_leakage.steps._untrained import untrained


def main(
    settings: Json,
    data: Path,
    scores: Path,
    target: Path | None = None,
    images: Path | None = None,
    device: str = "auto",
) -> None:
    """Read the target models, or create untrained ones; write the attack's scores (and images).

    Args:
        settings: of the attack's results.
        data: the records.
        scores, images: the files.
        target: the models; None if the attack sees no trained ones.
        device: as in config.yaml, for an attack that works on it.
    """
    dataset = read_dataset(data, settings["inputs"]["data"])
    if target is None:
        ensemble = untrained(settings["untrained"], dataset, settings["seed"])
    else:
        ensemble = read_models(target, settings["inputs"]["target"], dataset)
    module, name = settings["module"], settings["attack"]
    entry = ATTACKS[name]
    made = provenance(settings)
    if entry.on_device:
        made["device"] = device_of(device)  # it adds in another order than a CPU
        ensemble = ensemble.to(made["device"])
    with exact():
        scored = call(module, "score", ensemble, dataset, None, settings["settings"], settings["seed"], thing=name)
    if module in FILES:
        scored = checked_scores(scored, whose(module, name), entry.family, ensemble.size)
    frame, pictures = scored if isinstance(scored, tuple) else (scored, {})
    if images:
        write_arrays(images, pictures, made)
    write_table(scores, frame, made)
