"""Runs one attack on the target models of one cell: scores, and pictures where it makes some, nothing else."""

from importlib import import_module
from pathlib import Path

import torch

from dp_leakage.files import read_tensors, write_arrays, write_table
from dp_leakage.steps import Json, provenance, run
from dp_leakage.steps._data import read_dataset
from dp_leakage.steps._models import read_models


def main(settings: Json, data: Path, target: Path, fitted: Path | None, scores: Path, images: Path | None) -> None:
    """Reads target models (and what the attack learnt beforehand), writes its scores (and its pictures)."""
    dataset = read_dataset(data, settings["data"])
    ensemble = read_models(target, settings["target"], dataset)
    learnt = read_tensors(fitted, settings["fitted"])[0] if fitted else None
    scored = import_module(settings["module"]).score(ensemble, dataset, learnt, settings["settings"], settings["seed"])
    frame, pictures = scored if images else (scored, {})
    if images:
        write_arrays(images, pictures, provenance(settings))
    write_table(scores, frame, provenance(settings))


if __name__ == "__main__":
    torch.set_num_threads(1)
    run(main, "data", "target", "fitted?", "scores", "images?")
