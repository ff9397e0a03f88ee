"""How often a released model is right, with an interval over the people whose records it was asked about."""

import numpy as np
from scipy.special import stdtrit

from dp_leakage.common.config import Json
from dp_leakage.data.persons import effective
from dp_leakage.metrics.intervals import CONFIDENCE, Estimate, Z, wilson


def accuracy_of(right: np.ndarray, y: np.ndarray, person: np.ndarray | None) -> Json:
    """What a release says of its accuracy on records that it did not train on.

    Args:
        right: bool (n,), n ≥ 1: whether it names the right class of each.
        y: int64 (n,): their classes.
        person: int64 (n,): whose they are; None if each is a person of its own.
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


def over_people(right: np.ndarray, person: np.ndarray) -> Estimate:
    """The share of right answers with a 95 % interval over independent people, whose own records may be alike.

    Wilson's interval at the number of independent records that vary as much (Korn & Graubard 1998, with Wilson's in
    place of Clopper and Pearson's): the variance is that of the jackknife over people, and is no smaller than if all
    records were independent. Student's t has one degree of freedom less than there are people; if some have more
    records than others, than so many alike ones (Kish 1965). Answers without variance count one for each of these.

    Args:
        right: bool (n,), n ≥ 1.
        person: int64 (n,): whose each record is.
    """
    _, own, counts = np.unique(person, return_inverse=True, return_counts=True)
    n, people, alike = len(right), len(counts), effective(person)
    share = float(right.mean())
    if people == n:
        return wilson(share, n)
    if people == 1:
        return wilson(share, 1)
    without = (right.sum() - np.bincount(own, right)) / (n - counts)
    variance = (people - 1) / people * float(np.sum((without - share) ** 2))
    if not variance > 0:
        return wilson(share, alike)
    quantile = float(stdtrit(max(alike - 1, 1.0), (1 + CONFIDENCE) / 2))
    return wilson(share, min(share * (1 - share) / variance, n) * (Z / quantile) ** 2)
