"""Reference models: which were trained on a record, and which may judge which target in design ``coins``."""

from dataclasses import replace
from types import ModuleType

import numpy as np

from dp_leakage.attacks.signals import Scores, Signals
from dp_leakage.common.errors import UserError
from dp_leakage.data.roles import population_role


def leave_one_out(attack: ModuleType, target: Signals, reference: Signals, settings: dict, seed: int) -> Scores:
    """What an attack says about each target, using all reference models except the one with the target's number.

    In design ``coins``, repeat r of every cell trains by the same coins, and a target is a repeat of its own cell. A
    fit that included it would only find what it was given. Attacks that cannot leave a model out themselves run once
    per target.

    Args:
        attack: its module.
        target: of R models.
        reference: of the repeats that are references, of the same or another cell.
        settings, seed: of the attack.
    """
    if getattr(attack, "LEAVES_OUT", False) and target.size == reference.size:
        return attack.score(target, replace(reference, left_out=True), settings, seed)
    numbers = np.arange(reference.size)
    said = [
        attack.score(target.models(np.array([r])), reference.models(numbers != r), settings, seed)
        for r in range(target.size)
    ]
    return Scores(*(np.concatenate(parts) for parts in zip(*said, strict=True)))


def population(signals: Signals, attack: str) -> Signals:
    """Signals of the records that no target trained on and that no attack asks about. UserError if there are none."""
    role = population_role(signals.roles)
    others = signals.of(role)
    if not len(others.record):
        raise UserError(f"attack {attack}: role '{role}' has no records; valid is one or more")
    return others


def mean_where(values: np.ndarray, chosen: np.ndarray, left_out: bool = False) -> np.ndarray:
    """Mean of values (K, n) over the chosen ones of K models, for every record; if none is chosen, over all records.

    Returns (n,); with ``left_out`` (K, n), where row k is the mean over all models except k.
    """
    masked = np.where(chosen, values, 0.0)
    sums, counts = masked.sum(axis=0), chosen.sum(axis=0)
    if left_out:
        sums, counts = sums - masked, counts - chosen
    over_all = sums.sum(axis=-1, keepdims=True) / np.maximum(counts.sum(axis=-1, keepdims=True), 1)
    return np.where(counts > 0, sums / np.maximum(counts, 1), over_all)


def require(chosen: np.ndarray, attack: str, what: str) -> None:
    """Raises UserError if no reference model is chosen for any record, (K, n)."""
    if not chosen.any():
        raise UserError(
            f"attack {attack}: no reference model was trained {what} any target record; valid is a reference pool "
            f"{'of other records' if what == 'without' else 'that holds the target records too'}"
        )
