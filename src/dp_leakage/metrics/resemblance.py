"""Similarity of reference models to the model under attack, by observable statistics of both.

Attacks with references estimate the outputs of a model that was trained in the same way. References that fit their
records less, or more, than the model does give wrong estimates, and the attack then finds less than leaks.
"""

from typing import NamedTuple

import numpy as np
from scipy.special import stdtrit

CONFIDENCE = 0.99  # that references trained as the model was are not called unlike, for each of the two numbers
MATERIAL = 0.05  # the least difference that is worth a warning


class Pair(NamedTuple):
    """One statistic of the model under attack and of the references.

    Attributes:
        target: the model's value (the mean of several models).
        reference: mean over the references.
        spread: standard deviation over the references; NaN if there is one.
        models: number of references.
    """

    target: float
    reference: float
    spread: float
    models: int

    @property
    def differs(self) -> bool:
        """Return whether the model lies outside the references' range of variation, and the difference matters.

        With one reference the spread is unknown, and only the size of the difference counts.
        """
        away = abs(self.target - self.reference)
        if self.models < 2:
            return away > MATERIAL
        reach = float(stdtrit(self.models - 1, (1 + CONFIDENCE) / 2)) * self.spread * np.sqrt(1 + 1 / self.models)
        return bool(away > max(reach, MATERIAL))


class Resemblance(NamedTuple):
    """Accuracy on records that a model was not trained on, and the excess of its training accuracy.

    Attributes:
        accuracy: in [0, 1].
        gap: in [−1, 1]; None if the references were trained on none of these records.
    """

    accuracy: Pair
    gap: Pair | None

    def unlike(self) -> dict[str, Pair]:
        """Return which of ``accuracy`` and ``gap`` differ between references and model."""
        pairs = {"accuracy": self.accuracy, "gap": self.gap}
        return {what: pair for what, pair in pairs.items() if pair is not None and pair.differs}


def resemblance(
    correct: np.ndarray, trained_on: np.ndarray, reference_correct: np.ndarray, reference_trained_on: np.ndarray
) -> Resemblance:
    """Compare the models under attack with the references on the same records.

    Args:
        correct, trained_on: bool (K, n), of the models under attack: right on a record; trained on it.
        reference_correct, reference_trained_on: bool (R, n), the same of the references.

    >>> right, inside = np.array([[True, True, False, False]]), np.array([[True, True, False, False]])
    >>> resemblance(right, inside, ~right, inside).accuracy[:2]
    (0.0, 1.0)
    """
    own, theirs = _held_out(correct, trained_on), _held_out(reference_correct, reference_trained_on)
    if not reference_trained_on.any(axis=1).all():
        # On the same records, since those that the model was not trained on may be harder than the others.
        same = reference_trained_on | trained_on.all(axis=0)
        return Resemblance(_pair(own, _held_out(reference_correct, same)), None)
    accuracy = _pair(own, theirs)
    own_gap = _held_out(correct, ~trained_on) - own
    return Resemblance(accuracy, _pair(own_gap, _held_out(reference_correct, ~reference_trained_on) - theirs))


def _held_out(correct: np.ndarray, trained_on: np.ndarray) -> np.ndarray:
    """Return the accuracy of each model on records outside its training set, (R,)."""
    outside = ~trained_on
    with np.errstate(invalid="ignore"):  # NaN for a model that was trained on all
        return (correct & outside).sum(axis=1) / outside.sum(axis=1)


def _pair(own: np.ndarray, theirs: np.ndarray) -> Pair:
    spread = float(theirs.std(ddof=1)) if len(theirs) > 1 else np.nan
    return Pair(float(own.mean()), float(theirs.mean()), spread, len(theirs))
