"""Accuracy and use of a released model, with an interval over the people whose records were tested."""

import numpy as np

from dp_leakage.common.config import Json
from dp_leakage.common.utilities import ACCURACY, label_of
from dp_leakage.metrics.intervals import wilson
from dp_leakage.metrics.people import over_people
from dp_leakage.metrics.utility import guessed_use, measured_use


def accuracy_of(right: np.ndarray, y: np.ndarray, person: np.ndarray | None) -> Json:
    """Return a release's statement of its accuracy on records outside its training.

    Args:
        right: bool (n,), n ≥ 1: whether it names the right class of each.
        y: int64 (n,): their classes.
        person: int64 (n,): whose they are; None if each record has its own owner.
    """
    n = len(right)
    found = wilson(float(right.mean()), n) if person is None else over_people(right, person)
    told = {
        "accuracy": found.value,
        "accuracy_interval": [found.low, found.high],
        "accuracy_on": n,
        "largest_class": float(np.bincount(y).max() / n),
    }
    return told if person is None else told | {"accuracy_persons": len(np.unique(person))}


def use_of(
    measure: str, y: np.ndarray, probabilities: np.ndarray, trained: np.ndarray, person: np.ndarray | None
) -> Json:
    """Return the statement on the study's measure of use; empty if the measure is accuracy.

    Args:
        measure: a key of `utility.UTILITIES`.
        y: int64 (n,): the classes of records that it did not train on.
        probabilities: float32 (n, classes): its outputs for them.
        trained: int64 (m,): the classes of its training records.
        person: int64 (n,): the owner of each record; None if all owners differ.
    """
    if measure == ACCURACY:
        return {}
    found = measured_use(measure, y, probabilities[None], trained, person).estimate
    guess = guessed_use(measure, y, trained, probabilities.shape[1], person).value
    told = {"name": measure, "label": label_of(measure), "value": found.value, "interval": [found.low, found.high]}
    return {"utility": told | {"guessing": guess}}
