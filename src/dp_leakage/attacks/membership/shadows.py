"""Outputs of shadow models on their training records and on other records."""

from collections.abc import Iterator

import numpy as np

from dp_leakage.attacks.signals import Signals
from dp_leakage.common.errors import UserError

POOL = "shadow_pool"


def shadow_examples(models: Signals, rng: np.random.Generator) -> Iterator[tuple[np.ndarray, np.ndarray, np.ndarray]]:
    """Yield for each shadow model: probabilities float32 (n, C), classes (n,), and membership in its training set (n,).

    Each shadow model contributes equally many members and non-members. Non-members are drawn from the rest of
    ``shadow_pool``. If the rest is smaller than the training set, it limits both numbers.

    Raises:
        UserError: a shadow model was trained on the whole pool.
    """
    assert models.probability is not None  # such attacks declare that they read probabilities
    for model, trained_on in enumerate(models.trained_on):
        inside, rest = np.flatnonzero(trained_on), np.flatnonzero(~trained_on & (models.role == POOL))
        if not len(rest):
            raise UserError(
                f"attack with shadow models: model {model} was trained on all {len(inside)} records of "
                f"'{POOL}'; set 'shadow.size' below the pool's size"
            )
        size = min(len(inside), len(rest))
        rows = np.concatenate([_drawn(inside, size, rng), _drawn(rest, size, rng)])
        yield models.probability[model, rows], models.y[rows], np.repeat([1, 0], size)


def _drawn(rows: np.ndarray, size: int, rng: np.random.Generator) -> np.ndarray:
    return rows if size == len(rows) else rng.choice(rows, size, replace=False)
