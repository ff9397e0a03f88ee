"""Learning rate of a cell, tuned with the cell's own steps on records that none of its models trains on.

A rate that suits undefended training seldom suits a noisy one, so each cell has its own. A trial has the same number of
steps, batch size and noise as the cell's training. Only the records differ, and are fewer, so each is used more often.
"""

from dataclasses import replace
from math import ceil

import numpy as np

from dp_leakage.training.settings import TrainingSettings

FOLDS = 2  # folds of the records set apart: models train on all folds but one and are judged on that one


def folds(rows: np.ndarray, count: int = FOLDS) -> tuple[np.ndarray, np.ndarray]:
    """Return the rows on which each of ``count`` models trains, int64 (count, m), and is evaluated, int64 (count, n //
    count).

    >>> train, judge = folds(np.array([7, 8, 9, 4, 5]))
    >>> train.tolist(), judge.tolist()
    ([[9, 4], [7, 8]], [[7, 8], [9, 4]])
    """
    parts = rows[: len(rows) // count * count].reshape(count, -1)
    return np.stack([np.delete(parts, k, axis=0).ravel() for k in range(count)]), parts


def same_steps(
    training: TrainingSettings, records: int, members: int, available: int, *, by_groups: bool = False
) -> TrainingSettings:
    """Return a cell's training settings for other records: as many steps, with equally large batches, evaluated at the
    end.

    Args:
        training: the cell's own.
        records: number of records behind its batch rate and its steps.
        members: number of those that its models actually train on; half of them by coins.
        available: number of the other records.
        by_groups: batches are drawn by (sub)classes, so that their rate stays, not their size.
    """
    steps = training.epochs * ceil(records / training.batch_size)
    share = training.batch_size / records
    size: float = share * available if by_groups else max(1, round(share * members))
    epochs = max(1, round(steps / ceil(available / size)))
    warmup = min(training.warmup_epochs, epochs - 1)
    return replace(training, batch_size=size, epochs=epochs, evaluate_every=epochs, warmup_epochs=warmup)


def with_rate(training: TrainingSettings, rate: float) -> TrainingSettings:
    """Return training settings with another learning rate. A schedule keeps its shape."""
    last = training.final_learning_rate
    last = None if last is None else last * rate / training.learning_rate
    return replace(training, learning_rate=rate, final_learning_rate=last)
