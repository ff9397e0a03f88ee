"""Measures of use by name: functions of the true classes and a model's probabilities.

`metrics.utility` finds their intervals, losses and tests. This module imports no more than a plan of a study needs.
"""

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from dp_leakage.common.errors import UserError
from dp_leakage.common.user_code import FILES, call

ACCURACY, AUROC = "accuracy", "auroc"

Score = Callable[[np.ndarray, np.ndarray], float]


class Utility(NamedTuple):
    """A measure of use, from 0 to 1; more is better.

    Attributes:
        label: as in "loses 5 % of the LABEL".
        score: function of true classes, int64 (n,), and probabilities, float64 (n, classes). Of two classes, 1 is the
            class with fewer training records.
    """

    label: str
    score: Score


def _balanced_accuracy(labels: np.ndarray, probabilities: np.ndarray) -> float:
    """Return the mean over the classes of the share of right answers."""
    right = probabilities.argmax(axis=1) == labels
    return float(np.mean([right[labels == one].mean() for one in np.unique(labels)]))


def _f1(labels: np.ndarray, probabilities: np.ndarray) -> float:
    """Return F1, 2 · right / (named + there), for each queried class; 0 for a class that is neither named nor there."""
    named, found = probabilities.argmax(axis=1), []
    for one in _asked(labels, probabilities):
        both = (named == one).sum() + (labels == one).sum()
        found.append(2 * ((named == one) & (labels == one)).sum() / max(both, 1))
    return float(np.mean(found))


def _ranking(score: Callable[[np.ndarray, np.ndarray], float], labels: np.ndarray, told: np.ndarray) -> float:
    """Return the mean of a ranking's score over the queried classes, each against all others.

    It is NaN if there is only one class.
    """
    if len(np.unique(labels)) < 2:
        return float("nan")
    return float(np.mean([score(labels == one, told[:, one]) for one in _asked(labels, told)]))


def _asked(labels: np.ndarray, told: np.ndarray) -> Sequence[int]:
    """Return class 1 of two classes, otherwise every class that occurs."""
    return [1] if told.shape[1] == 2 else np.unique(labels).tolist()


def _area(positive: np.ndarray, score: np.ndarray) -> float:
    """Return how likely a positive scores higher than another record, a tie counting half (Mann & Whitney 1947)."""
    inside, outside = score[positive], np.sort(score[~positive])
    below, above = (np.searchsorted(outside, inside, side) for side in ("left", "right"))
    return float((below + above).mean() / (2 * len(outside)))


def _average_precision(positive: np.ndarray, score: np.ndarray) -> float:
    """Return Σ (recall − previous recall) · precision over falling thresholds; equal scores count together."""
    order = np.argsort(-score, kind="stable")
    last = np.append(np.diff(score[order]) != 0, True)  # of those with an equal score
    right = np.cumsum(positive[order])[last]
    precision = right / (np.flatnonzero(last) + 1)
    return float((np.diff(right, prepend=0) * precision).sum() / positive.sum())


UTILITIES: dict[str, Utility] = {
    ACCURACY: Utility("accuracy", lambda labels, told: float((told.argmax(axis=1) == labels).mean())),
    "balanced_accuracy": Utility("balanced accuracy", _balanced_accuracy),
    AUROC: Utility("AUROC", partial(_ranking, _area)),
    "average_precision": Utility("average precision", partial(_ranking, _average_precision)),
    "f1": Utility("F1 score", _f1),
}


def own_utility(plugin: str, label: str) -> Utility:
    """Return the measure that a plugin's function ``measure(labels, probabilities)`` computes."""

    def score(labels: np.ndarray, probabilities: np.ndarray) -> float:
        found = call(plugin, "measure", labels.copy(), probabilities.copy())
        try:
            value = float(found)
        except (TypeError, ValueError):
            value = float("nan")
        if not 0 <= value <= 1:
            raise UserError(f"plugin {plugin}: measure must return a number from 0 to 1; got {found!r}")
        return value

    return Utility(label, score)


def label_of(measure: str) -> str:
    """Return a measure's name in a sentence."""
    return UTILITIES[measure].label if measure in UTILITIES else measure


def plugin_files(name: str | None) -> tuple[Any, ...]:
    """Return the file of a plugin's measure."""
    return (FILES[name],) if name in FILES else ()
