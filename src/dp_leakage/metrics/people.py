"""Shares of right answers over independent people, whose own records may be similar."""

from typing import NamedTuple

import numpy as np
from scipy.special import stdtrit

from dp_leakage.data.persons import effective_of
from dp_leakage.metrics.intervals import CONFIDENCE, Estimate, Z, wilson

RIGHT, ASKED = "right", "asked"  # columns of a training's history, see `RightAnswers`


class RightAnswers(NamedTuple):
    """Number of right answers of R models on the same records of P people. Without people every record has its own
    owner.

    Attributes:
        right: int32 (R, P): number of a person's records that each model classifies correctly.
        asked: int32 (P,): number of records per person, at least 1.
    """

    right: np.ndarray
    asked: np.ndarray

    @classmethod
    def of(cls, right: np.ndarray, person: np.ndarray | None = None) -> "RightAnswers":
        """Count right answers, bool (R, n). ``person``, (n,), is the owner of each record; None: all owners differ."""
        if person is None:
            return cls(right.astype(np.int32), np.ones(right.shape[1], np.int32))
        _, own, counts = np.unique(person, return_inverse=True, return_counts=True)
        return cls(np.stack([np.bincount(own, each) for each in right]).astype(np.int32), counts.astype(np.int32))

    @property
    def accuracies(self) -> np.ndarray:
        """Return each model's accuracy, float64 (R,)."""
        return np.asarray(self.right.sum(axis=1) / self.asked.sum())


def covariance(counts: np.ndarray, asked: np.ndarray) -> np.ndarray:
    """Return the variances and covariances of k shares that come from the choice of the people: float64 (k, k).

    The delete-one jackknife over P ≥ 2 people (Efron & Stein 1981).

    Args:
        counts: (k, P): each person's part of each share's numerator.
        asked: (P,): each person's part of the common denominator.
    """
    n, people = asked.sum(), len(asked)
    whole = counts.sum(axis=1, keepdims=True)
    moved = (whole - counts) / (n - asked) - whole / n
    return np.asarray((people - 1) / people * moved @ moved.T)


def over_people(right: np.ndarray, person: np.ndarray) -> Estimate:
    """Return the share of right answers, bool (n,), n ≥ 1, with Wilson's 95 % interval at the number of
    `as_independent`.

    ``person``, int64 (n,), is the owner of each record.
    """
    return wilson(float(right.mean()), as_independent(RightAnswers.of(right[None], person)))


def as_independent(answers: RightAnswers) -> float:
    """Return the number of independent records that would determine a share of right answers equally precisely (Korn &
    Graubard 1998).

    It has the variance of the jackknife over people and is at most the number of records. Student's t, which replaces
    the normal quantile, has one degree of freedom less than the people or, if some have more records than others, the
    effective number of people. Answers without variance give this number. The result is one number for several models.
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
