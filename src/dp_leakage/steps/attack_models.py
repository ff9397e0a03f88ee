"""Runs one attack on the target models of one cell themselves, for scores and any pictures, and measures it."""

from pathlib import Path

import torch

from dp_leakage.attacks import ATTACKS
from dp_leakage.attacks.checks import checked_scores
from dp_leakage.common.identity import identity
from dp_leakage.common.kernels import exact
from dp_leakage.common.user_code import FILES, call, whose
from dp_leakage.provenance.files import is_current, write_arrays, write_table
from dp_leakage.steps import Json, measure_attack, provenance, run
from dp_leakage.steps._data import read_dataset
from dp_leakage.steps._models import device_of, read_models
from dp_leakage.steps._untrained import untrained


def main(
    settings: Json,
    data: Path,
    scores: Path,
    rows: Path,
    target: Path | None = None,
    images: Path | None = None,
    device: str = "auto",
) -> None:
    """Writes what the attack finds, unless it is there and current, and then what that reaches.

    Args:
        settings: ``scores`` and ``rows``, the settings by which these files are made; ``images`` are as ``scores``.
        data: the records.
        scores, rows, images: the files.
        target: the models; None if the attack sees no trained ones.
        device: as in config.yaml, for an attack that works on it.
    """
    made = identity(settings["scores"])
    if not all(is_current(path, made) for path in (scores, images) if path):
        attack(settings["scores"], data, target, scores, images, device)
    measure_attack.main(settings["rows"], [scores], rows)


def attack(settings: Json, data: Path, target: Path | None, scores: Path, images: Path | None, device: str) -> None:
    """Reads the target models, or makes untrained ones; writes the attack's scores (and its pictures)."""
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


if __name__ == "__main__":
    torch.set_num_threads(1)
    run(main, "data", "target?", "scores", "images?", "rows", options={"device": "auto"})
