"""What shadow models show of records that they were trained on, and of records that they were not."""

from collections.abc import Iterator

import numpy as np

from dp_leakage.attacks.signals import logits
from dp_leakage.data.dataset import Dataset
from dp_leakage.errors import UserError
from dp_leakage.models.ensemble import Ensemble


def shadow_examples(
    models: Ensemble, data: Dataset, rng: np.random.Generator
) -> Iterator[tuple[np.ndarray, np.ndarray, np.ndarray]]:
    """Of each shadow: probabilities float32 (n, C), their records (n,), and whether it saw them (n,).

    Each shadow gives as many out as in records, the out ones drawn from the rest of ``shadow_pool`` (where that is
    smaller than its training set, so many of both).

    Raises:
        UserError: a shadow model was trained on the whole pool.
    """
    for model, trained_on in enumerate(models.train_indices.cpu().numpy()):
        rest = np.setdiff1d(data.roles["shadow_pool"], trained_on)
        if not len(rest):
            raise UserError(
                f"attack with shadow models: model {model} was trained on all {len(trained_on)} records of "
                "'shadow_pool'; valid is a key 'shadow.size' below the pool's size"
            )
        size = min(len(trained_on), len(rest))
        record = np.concatenate([_drawn(trained_on, size, rng), _drawn(rest, size, rng)])
        outputs = [z[0].softmax(1).numpy() for _, z in logits(models, data.x[record], data.n_classes, [model])]
        yield np.concatenate(outputs), record, np.repeat([1, 0], size)


def _drawn(rows: np.ndarray, size: int, rng: np.random.Generator) -> np.ndarray:
    return rows if size == len(rows) else rng.choice(rows, size, replace=False)
