"""Try the study's learning rates for one cell, on records that none of its models uses."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import torch

from dp_leakage.common.identity import derived_seed
from dp_leakage.common.utilities import ACCURACY
from dp_leakage.data.persons import effective, numbers
from dp_leakage.metrics.utility import scored
from dp_leakage.models.ensemble import Models, class_probabilities
from dp_leakage.privacy.mechanism import holds_groups
from dp_leakage.privacy.protection import Protection
from dp_leakage.provenance.files import read_arrays, write_table
from dp_leakage.steps import Json, log, provenance, run
from dp_leakage.steps._data import dataset_of
from dp_leakage.steps._models import architecture_of, device_of
from dp_leakage.steps._noise import private_training
from dp_leakage.steps.train import group_count, groups_of, in_records, measure_of, units_of
from dp_leakage.training.loop import Diverged
from dp_leakage.training.settings import TrainingSettings
from dp_leakage.training.trainer import train
from dp_leakage.training.tuning import FOLDS, folds, same_steps, with_rate


def main(settings: Json, data: Path, tuned: Path, device: str) -> None:
    """Read ``data.npz``; write every rate's use on each fold, 0 if its training diverged."""
    arrays, _ = read_arrays(data, settings["data"])
    x, y = torch.from_numpy(arrays["x"]), torch.from_numpy(arrays["y"])
    person = arrays.get("person")
    subsets, judged, held = _folds(arrays["tuning"], person)
    seeds = [derived_seed(settings["seed"], fold) for fold in range(len(subsets))]
    architecture = architecture_of(settings, tuple(x.shape[1:]), int(y.max()) + 1)
    given, own = Protection.read(settings["mechanism"]), TrainingSettings(**settings["training"])
    step = None if given is None else given.step
    private = private_training(given, architecture, own.epochs, own.batch_size, settings["n_records"])
    mechanism = None if private is None else private.mechanism
    by_groups = mechanism is not None and holds_groups(mechanism.unit)
    units = units_of(person, subsets[0].numpy())
    available = len(units) if held is None else len(units) // FOLDS
    sizes = {"records": settings["n_records"], "members": settings["n_members"], "available": available}
    training = same_steps(own, **sizes, by_groups=by_groups)
    if held is not None:  # batches are drawn from both folds, and keep one's persons
        training = replace(training, batch_size=min(FOLDS * training.batch_size, len(units)))
    measure, trained = measure_of(settings, dataset_of(arrays))
    rows = []
    for rate in settings["rates"]:
        tried = in_records(with_rate(training, rate), mechanism, units)
        groups = groups_of(step, x, y, subsets, settings["seed"], person)
        others = {"evaluate_on": judged, "groups": groups, "group_count": group_count(step, y, groups), "held": held}
        try:
            models, history = train(
                architecture, x, y, subsets, seeds, tried, mechanism, device=device_of(device), **others
            )
            reached = {row["model"]: row["test_accuracy"] for row in history}
            if measure != ACCURACY:
                reached = {fold: _score(measure, models, fold, x, y, judged[fold], trained) for fold in reached}
        except Diverged as error:
            log.info("%s", error)
            reached = dict.fromkeys(range(len(seeds)), 0.0)
        rows += [(rate, fold, score) for fold, score in reached.items()]
        log.info("learning rate %g: %s %.3f", rate, measure, sum(reached.values()) / len(reached))
    columns = dict(zip(("learning_rate", "fold", measure), map(list, zip(*rows, strict=True)), strict=True))
    independent = judged.numel() if person is None else effective(person[judged.flatten().numpy()])
    write_table(tuned, columns, provenance(settings, records=int(independent)))


def _score(
    measure: str, models: Models, fold: int, x: torch.Tensor, y: torch.Tensor, judged: torch.Tensor, trained: np.ndarray
) -> float:
    """Return the use of a fold's model on its test records."""
    told = class_probabilities(models.logits(x[judged].to(models.device), [fold])[0])
    return scored(measure, y[judged].numpy(), told, trained)


def _folds(rows: np.ndarray, person: np.ndarray | None) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor | None]:
    """Return the training and evaluation rows of each model, (FOLDS, …), and the included training rows if not all are.

    A person's records lie in one fold. So folds differ in length, and the last records of longer folds are not
    evaluated.
    """
    if person is None:
        return *map(torch.from_numpy, folds(rows)), None
    fold = numbers(person, rows) % FOLDS
    judged = [rows[fold == own] for own in range(FOLDS)]
    shortest = min(map(len, judged))
    held = np.stack([fold != own for own in range(FOLDS)])
    of_each = np.stack([own[:shortest] for own in judged])
    return torch.from_numpy(rows).expand(FOLDS, -1), torch.from_numpy(of_each), torch.from_numpy(held)


if __name__ == "__main__":
    torch.set_num_threads(1)
    run(main, "data", "tuned", options={"device": "auto"}, kept=("tuned",))
