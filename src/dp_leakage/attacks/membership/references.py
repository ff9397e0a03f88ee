"""Reference models: their training sets, and which may judge which target in design ``coins``."""

from dataclasses import replace
from itertools import accumulate
from types import ModuleType
from typing import NamedTuple

import numpy as np

from dp_leakage.attacks.signals import Scores, Signals
from dp_leakage.common.errors import UserError
from dp_leakage.data.roles import population_role


def leave_one_out(attack: ModuleType, target: Signals, reference: Signals, settings: dict, seed: int) -> Scores:
    """Attack each target with all reference models except the one with the target's number.

    In design ``coins``, repeat r of every cell has the same members, and a target is a repeat of its own cell. A
    reference set with this repeat would contain the answer. Attacks that cannot leave a model out themselves run once
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
    """Return signals of the records that no target trained on and no attack queries. Raises UserError if there are
    none.
    """
    role = population_role(signals.roles)
    others = signals.of(role)
    if not len(others.record):
        raise UserError(f"attack {attack}: role '{role}' has no records; expected one or more")
    return others


class Moments(NamedTuple):
    """Number, mean and sum of squared deviations of some models' values for every record, float64 (n,) each.

    All are 0 for records without a value. With a leading axis of models, (K, n), row k covers all models except model
    k.
    """

    number: np.ndarray
    mean: np.ndarray
    squares: np.ndarray


def moments(values: np.ndarray, chosen: np.ndarray, left_out: bool = False) -> Moments:
    """Return moments of the chosen ones of K models' values (K, n), for every record.

    With ``left_out``, row k is a function of the *other* models' values and choices alone, to the last bit: models
    before and after k are merged (Chan, Golub & LeVeque 1983), and nothing is subtracted. A rounding error would
    otherwise reveal whether k itself was chosen, which is what an attack tries to infer.
    """
    masked = np.where(chosen, values, 0.0)
    if not left_out:
        count = chosen.sum(axis=0).astype(np.float64)
        mean = masked.sum(axis=0) / np.maximum(count, 1)
        return Moments(count, mean, (np.where(chosen, values - mean, 0.0) ** 2).sum(axis=0))
    nothing = np.zeros(masked.shape[1])
    alone = [Moments(own.astype(np.float64), value, nothing) for own, value in zip(chosen, masked, strict=True)]
    others = list(accumulate(alone[:-1], _merged, initial=Moments(nothing, nothing, nothing)))
    after = others[0]
    for k in reversed(range(len(alone))):
        others[k], after = _merged(others[k], after), _merged(alone[k], after)
    return Moments(*(np.stack(part) for part in zip(*others, strict=True)))


def _merged(a: Moments, b: Moments) -> Moments:
    """Merge two sets of moments; equal values have squares of exactly 0."""
    count, step = a.number + b.number, b.mean - a.mean
    share = b.number / np.maximum(count, 1)
    return Moments(count, a.mean + step * share, a.squares + b.squares + step**2 * a.number * share)


def mean_of_all(found: Moments) -> np.ndarray:
    """Return the mean over all records' values, (1,) or (K, 1); 0 if there are none."""
    total = found.number.sum(axis=-1, keepdims=True)
    return np.asarray((found.number * found.mean).sum(axis=-1, keepdims=True) / np.maximum(total, 1))


def mean_where(values: np.ndarray, chosen: np.ndarray, left_out: bool = False) -> np.ndarray:
    """Return the mean of values (K, n) over the selected models for each record; over all records if no model is
    selected.

    Returns (n,); with ``left_out`` (K, n), where row k is the mean over all models except k, as in `moments`.
    """
    found = moments(values, chosen, left_out)
    return np.where(found.number > 0, found.mean, mean_of_all(found))


def require(chosen: np.ndarray, attack: str, what: str) -> None:
    """Raise UserError if no reference model is chosen for any record, (K, n)."""
    if not chosen.any():
        raise UserError(
            f"attack {attack}: no reference model was trained {what} any target record; expected a reference pool "
            f"{'of other records' if what == 'without' else 'that holds the target records too'}"
        )
