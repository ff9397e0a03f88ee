"""Tries the study's learning rates for one cell, on records that none of its models trains on or is judged on."""

from pathlib import Path

import torch

from dp_leakage.common.identity import derived_seed
from dp_leakage.privacy.calibration import calibrated
from dp_leakage.privacy.mechanism import holds_groups
from dp_leakage.provenance.files import read_arrays, write_table
from dp_leakage.steps import Json, log, provenance, run
from dp_leakage.steps._models import architecture_of, device_of, train_models
from dp_leakage.steps.train import blocks_of, groups_of
from dp_leakage.training.loop import Diverged
from dp_leakage.training.settings import TrainingSettings
from dp_leakage.training.tuning import folds, same_steps, with_rate


def main(settings: Json, data: Path, tuned: Path, device: str) -> None:
    """Reads ``data.npz``; writes the accuracy of every rate on each fold, 0 if its training diverged."""
    arrays, _ = read_arrays(data, settings["data"])
    x, y = torch.from_numpy(arrays["x"]), torch.from_numpy(arrays["y"])
    subsets, judged = map(torch.from_numpy, folds(arrays["tuning"]))
    seeds = [derived_seed(settings["seed"], fold) for fold in range(len(subsets))]
    architecture = architecture_of(settings, tuple(x.shape[1:]), int(y.max()) + 1)
    given, own = settings["mechanism"], settings["training"]
    schedule = {"epochs": own["epochs"], "batch_size": own["batch_size"], "dataset_size": settings["n_records"]}
    mechanism = calibrated(given, blocks=blocks_of(architecture, given), **schedule)
    by_groups = mechanism is not None and holds_groups(mechanism.unit)
    sizes = {"records": settings["n_records"], "members": settings["n_members"], "available": subsets.shape[1]}
    training = same_steps(own, **sizes, by_groups=by_groups)
    rows = []
    for rate in settings["rates"]:
        tried = TrainingSettings(**with_rate(training, rate))
        groups = groups_of(given, x, y, subsets, settings["seed"])
        others = {"evaluate_on": judged, "groups": groups, "device": device_of(device)}
        try:
            _, history = train_models(settings, architecture, x, y, subsets, seeds, tried, mechanism, **others)
            accuracies = {row["model"]: row["test_accuracy"] for row in history}
        except Diverged as error:
            log.info("%s", error)
            accuracies = dict.fromkeys(range(len(seeds)), 0.0)
        rows += [(rate, fold, accuracy) for fold, accuracy in accuracies.items()]
        log.info("learning rate %g: %.3f right", rate, sum(accuracies.values()) / len(accuracies))
    columns = dict(zip(("learning_rate", "fold", "accuracy"), map(list, zip(*rows, strict=True)), strict=True))
    write_table(tuned, columns, provenance(settings, records=int(judged.numel())))


if __name__ == "__main__":
    torch.set_num_threads(1)
    run(main, "data", "tuned", options={"device": "auto"})
