"""Runs one attack on the target models of one cell: scores, nothing else."""

from importlib import import_module
from pathlib import Path

import torch

from dp_leakage.files import read_tensors, write_table
from dp_leakage.steps import Json, provenance, run
from dp_leakage.steps._data import read_dataset
from dp_leakage.steps._models import read_models


def main(settings: Json, data: Path, target: Path, fitted: Path | None, scores: Path) -> None:
    """Reads target models (and what the attack learnt beforehand), writes its scores."""
    dataset = read_dataset(data, settings["data"])
    ensemble = read_models(target, settings["target"], dataset)
    learnt = read_tensors(fitted, settings["fitted"])[0] if fitted else None
    frame = import_module(settings["module"]).score(ensemble, dataset, learnt, settings["settings"], settings["seed"])
    write_table(scores, frame, provenance(settings))


if __name__ == "__main__":
    torch.set_num_threads(1)
    run(main, "data", "target", "fitted?", "scores")
