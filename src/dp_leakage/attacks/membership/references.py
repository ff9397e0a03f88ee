"""Reference models: those that were, or were not, trained on a record; and who may judge whom in design ``coins``."""

from dataclasses import replace
from types import ModuleType

import numpy as np

from dp_leakage.attacks.signals import Scores, Signals
from dp_leakage.common.errors import UserError
from dp_leakage.data.roles import population_role


def leave_one_out(attack: ModuleType, target: Signals, learnt: Signals, settings: dict, seed: int) -> Scores:
    """What an attack says of each target by all reference models but the one of its own number.

    In design ``coins`` repeat r of every cell trains by the same coins, and a target is its own cell's repeat: a fit
    that saw it would find in it what it was told. Attacks that do not leave out by themselves are asked target by
    target.

    Args:
        attack: its module.
        target: of R models.
        learnt: of the repeats that are references, of the same or another cell.
        settings, seed: of the attack.
    """
    if getattr(attack, "LEAVES_OUT", False) and target.size == learnt.size:
        return attack.score(target, replace(learnt, left_out=True), settings, seed)
    numbers = np.arange(learnt.size)
    said = [
        attack.score(target.models(np.array([r])), learnt.models(numbers != r), settings, seed)
        for r in range(target.size)
    ]
    return Scores(*(np.concatenate(parts) for parts in zip(*said, strict=True)))


def population(signals: Signals, attack: str) -> Signals:
    """Of the records that no target trained on and nobody asks about. UserError where there are none."""
    role = population_role(signals.roles)
    others = signals.of(role)
    if not len(others.record):
        raise UserError(f"attack {attack}: role '{role}' has no records; valid is one or more")
    return others


def mean_where(values: np.ndarray, chosen: np.ndarray, left_out: bool = False) -> np.ndarray:
    """Mean over the chosen of K models of values (K, n), for every record; where none is, over all records' chosen.

    Returns:
        (n,); with ``left_out`` (K, n), line k being the mean over all models but k.
    """
    masked = np.where(chosen, values, 0.0)
    sums, counts = masked.sum(axis=0), chosen.sum(axis=0)
    if left_out:
        sums, counts = sums - masked, counts - chosen
    over_all = sums.sum(axis=-1, keepdims=True) / np.maximum(counts.sum(axis=-1, keepdims=True), 1)
    return np.where(counts > 0, sums / np.maximum(counts, 1), over_all)


def require(chosen: np.ndarray, attack: str, what: str) -> None:
    """Raises UserError where not one reference model is chosen for any record, (K, n)."""
    if not chosen.any():
        raise UserError(
            f"attack {attack}: no reference model was trained {what} any target record; valid is a reference pool "
            f"{'of other records' if what == 'without' else 'that holds the target records too'}"
        )
