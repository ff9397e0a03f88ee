"""Asks a group of trained models about the records, once for all attacks: signals, or class scores."""

from pathlib import Path

import torch

from dp_leakage.attacks.queries import ask, ask_probabilities
from dp_leakage.files import write_arrays
from dp_leakage.steps import Json, provenance, run
from dp_leakage.steps._data import read_dataset
from dp_leakage.steps._models import device_of, read_models


def main(
    settings: Json, data: Path, models: Path, signals: Path | None, class_scores: Path | None, device: str
) -> None:
    """Reads models; writes what they say of all records, or class scores of the records of some roles."""
    dataset = read_dataset(data, settings["data"])
    asked = read_models(models, settings["models"], dataset).to(device_of(device))
    if signals:
        write_arrays(signals, ask(asked, dataset, settings["queries"]).arrays(), provenance(settings))
    if class_scores:
        record, probability = ask_probabilities(asked, dataset, settings["roles"])
        write_arrays(class_scores, {"record": record, "probability": probability}, provenance(settings))


if __name__ == "__main__":
    torch.set_num_threads(1)
    run(main, "data", "models", "signals?", "class_scores?", options={"device": "auto"})
