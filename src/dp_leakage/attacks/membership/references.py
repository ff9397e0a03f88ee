"""Means over the reference models that were, or were not, trained on a record."""

import numpy as np

from dp_leakage.attacks.signals import POPULATION, Signals
from dp_leakage.errors import UserError


def population(signals: Signals, attack: str) -> Signals:
    """Of the records that no target trained on: ``reference_pool``. UserError where there are none."""
    others = signals.of(POPULATION)
    if not len(others.record):
        raise UserError(f"attack {attack}: role '{POPULATION}' has no records; valid is one or more")
    return others


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
