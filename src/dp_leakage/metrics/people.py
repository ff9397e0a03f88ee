"""Shares of right answers over independent people, whose own records may be alike."""

from typing import NamedTuple

import numpy as np
from scipy.special import stdtrit

from dp_leakage.data.persons import effective_of
from dp_leakage.metrics.intervals import CONFIDENCE, Estimate, Z, wilson

RIGHT, ASKED = "right", "asked"  # columns of a training's history, see `RightAnswers`


class RightAnswers(NamedTuple):
    """How often R models are right on the same records of P people. Without people every record is a person of its own.

    Attributes:
        right: int32 (R, P): how many of a person's records each model is right on.
        asked: int32 (P,): how many records each person has, at least 1.
    """

    right: np.ndarray
    asked: np.ndarray

    @classmethod
    def of(cls, right: np.ndarray, person: np.ndarray | None = None) -> "RightAnswers":
        """From right answers, bool (R, n). ``person``, (n,), says whose each record is; None: all are of others."""
        if person is None:
            return cls(right.astype(np.int32), np.ones(right.shape[1], np.int32))
        _, own, counts = np.unique(person, return_inverse=True, return_counts=True)
        return cls(np.stack([np.bincount(own, each) for each in right]).astype(np.int32), counts.astype(np.int32))

    @property
    def accuracies(self) -> np.ndarray:
        """Of each model, float64 (R,)."""
        return np.asarray(self.right.sum(axis=1) / self.asked.sum())


def covariance(counts: np.ndarray, asked: np.ndarray) -> np.ndarray:
    """What the choice of the people adds to the variances and covariances of k shares: float64 (k, k).

    The delete-one jackknife over P ≥ 2 people (Efron & Stein 1981).

    Args:
        counts: (k, P): what each person adds to each share's numerator.
        asked: (P,): what each person adds to the denominator of all.
    """
    n, people = asked.sum(), len(asked)
    whole = counts.sum(axis=1, keepdims=True)
    moved = (whole - counts) / (n - asked) - whole / n
    return np.asarray((people - 1) / people * moved @ moved.T)


def over_people(right: np.ndarray, person: np.ndarray) -> Estimate:
    """The share of right answers, bool (n,), n ≥ 1, with Wilson's 95 % interval at the number of `as_independent`.

    ``person``, int64 (n,), says whose each record is.
    """
    return wilson(float(right.mean()), as_independent(RightAnswers.of(right[None], person)))


def as_independent(answers: RightAnswers) -> float:
    """How many independent records know a share of right answers as well as these do (Korn & Graubard 1998).

    They vary as much as the jackknife over people finds, and are no more than the records. Student's t, which replaces
    the normal quantile, has one degree of freedom less than there are people; if some have more records than others,
    than so many alike ones. Answers without variance count one for each of these. The number is one that suits each of
    several models.
    """
    n, people, fewest = int(answers.asked.sum()), len(answers.asked), effective_of(answers.asked)
    if people in (1, n):
        return people
    share = answers.accuracies
    variance = float(np.trace(covariance(*answers)))
    if not variance > 0:
        return fewest
    quantile = float(stdtrit(max(fewest - 1, 1.0), (1 + CONFIDENCE) / 2))
    return min(float((share * (1 - share)).sum()) / variance, n) * (Z / quantile) ** 2
