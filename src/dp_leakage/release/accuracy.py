"""Accuracy of a released model, with an interval over the people whose records were tested."""

import numpy as np

from dp_leakage.common.config import Json
from dp_leakage.metrics.intervals import wilson
from dp_leakage.metrics.people import over_people


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
