"""Shares of right answers over independent people, whose own records may be alike."""

import numpy as np
from scipy.special import stdtrit

from dp_leakage.data.persons import effective
from dp_leakage.metrics.intervals import CONFIDENCE, Estimate, Z, wilson


def over_people(right: np.ndarray, person: np.ndarray) -> Estimate:
    """The share of right answers, bool (n,), n ≥ 1, with Wilson's 95 % interval at the number of `as_independent`.

    ``person``, int64 (n,), says whose each record is.
    """
    return wilson(float(right.mean()), as_independent(right[None], person))


def as_independent(right: np.ndarray, person: np.ndarray) -> float:
    """How many independent records know a share of right answers as well as these do (Korn & Graubard 1998).

    They vary as much as the jackknife over people finds, and are no more than the records. Student's t, which replaces
    the normal quantile, has one degree of freedom less than there are people; if some have more records than others,
    than so many alike ones (Kish 1965). Answers without variance count one for each of these.

    Args:
        right: bool (R, n), n ≥ 1, of R models on the same records; the number is one that suits each of them.
        person: int64 (n,): whose each record is.
    """
    _, own, counts = np.unique(person, return_inverse=True, return_counts=True)
    n, people, alike = right.shape[1], len(counts), effective(person)
    if people in (1, n):
        return float(people)
    share = right.mean(axis=1)
    of_people = np.stack([np.bincount(own, each) for each in right])
    without = (right.sum(axis=1, keepdims=True) - of_people) / (n - counts)
    variance = (people - 1) / people * float(np.square(without - share[:, None]).sum())
    if not variance > 0:
        return alike
    quantile = float(stdtrit(max(alike - 1, 1.0), (1 + CONFIDENCE) / 2))
    return min(float((share * (1 - share)).sum()) / variance, n) * (Z / quantile) ** 2
