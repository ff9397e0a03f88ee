"""Fits what an attack learns from shadow or reference models: once per (data set, model), shared by all cells."""

from importlib import import_module
from pathlib import Path

import torch

from dp_leakage.files import write_tensors
from dp_leakage.steps import Json, provenance, run
from dp_leakage.steps._data import read_dataset
from dp_leakage.steps._models import read_models


def main(settings: Json, data: Path, models: Path, fitted: Path) -> None:
    """Reads the auxiliary models, writes the attack's arrays."""
    dataset = read_dataset(data, settings["data"])
    ensemble = read_models(models, settings["models"], dataset)
    arrays = import_module(settings["module"]).fit(ensemble, dataset, settings["settings"], settings["seed"])
    write_tensors(fitted, arrays, provenance(settings))


if __name__ == "__main__":
    torch.set_num_threads(1)
    run(main, "data", "models", "fitted")
