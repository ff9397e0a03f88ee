"""Which reference models were trained on which records, and means over those that were or were not."""

import numpy as np

from dp_leakage.data.dataset import Dataset
from dp_leakage.errors import UserError
from dp_leakage.models.ensemble import Ensemble


def trained_on(models: Ensemble, record: np.ndarray) -> np.ndarray:
    """Bool (K, n): whether each model's training set holds each of the records (row numbers, (n,))."""
    return np.stack([np.isin(record, rows) for rows in models.train_indices.cpu().numpy()])


def population(data: Dataset, attack: str) -> np.ndarray:
    """Rows, ascending, of records that no target trained on: ``reference_pool``. UserError where there are none."""
    rows = data.roles.get("reference_pool", np.array([], dtype=np.int64))
    if not len(rows):
        raise UserError(f"attack {attack}: role 'reference_pool' has no records; valid is one or more")
    return np.sort(rows)


def mean_where(values: np.ndarray, chosen: np.ndarray) -> np.ndarray:
    """Mean over the chosen of K models, (n,), of values (K, n); where none is, that over all records' chosen ones."""
    sums, counts = np.where(chosen, values, 0.0).sum(axis=0), chosen.sum(axis=0)
    return np.where(counts > 0, sums / np.maximum(counts, 1), sums.sum() / max(counts.sum(), 1))


def require(chosen: np.ndarray, attack: str, what: str) -> None:
    """Raises UserError where not one reference model is chosen for any record, (K, n)."""
    if not chosen.any():
        raise UserError(
            f"attack {attack}: no reference model was trained {what} any target record; valid is a reference pool "
            f"{'of other records' if what == 'without' else 'that holds the target records too'}"
        )
