"""Accuracy of always predicting the most frequent class, the minimum that a model must exceed."""

import numpy as np


def guessing(trained: np.ndarray, tested: np.ndarray) -> float:
    """Return the accuracy of naming the most frequent class of training, or of any class by chance if that is more.

    Args:
        trained: classes of the records trained on, (m,).
        tested: classes of the records that the accuracy is over, (n,).
    """
    named = constant_answers(trained, tested)
    return 1 / len(np.unique(trained)) if named is None else float(named.mean())


def constant_answers(trained: np.ndarray, tested: np.ndarray) -> np.ndarray | None:
    """Return on which tested records the most frequent class of training is right, bool (n,).

    None where `guessing` is naming any class by chance.
    """
    named = np.asarray(tested == np.bincount(trained).argmax())
    return named if float(named.mean()) > 1 / len(np.unique(trained)) else None
