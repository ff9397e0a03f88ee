"""Precision of the most confident attribute guesses, and closeness of guessed numbers.

A mean over all guesses hides an attacker who knows about which few people the guesses are right. So the most confident
guesses are measured separately: the positive predictive value of the top share (Jayaraman & Evans 2022).
"""

from collections.abc import Mapping

import numpy as np
import pandas as pd

from dp_leakage.metrics.intervals import Influences, crossed
from dp_leakage.metrics.rows import row
from dp_leakage.metrics.runs import ALL, by_repeat

TOP = 0.1  # share of the guesses about members that are the surest


def measure_guesses(frame: pd.DataFrame, attack: str) -> list[dict]:
    """Return rows of one attribute inference attack and of imputation, about members and over all repeats.

    Args:
        frame: as `attacks.attributes.guessing.guessed` makes it.
        attack: its name.

    Returns:
        attribute_ppv, the share of right guesses among the surest (`TOP`), and attribute_r2 of numbers that are guessed
        by intervals, both ``by=attack`` and ``by=imputation``; attribute_ppv_added and attribute_r2_added, their
        differences.
    """
    own = {"attack": attack, "of": "members"}
    columns = ["truth", "guess", "confidence", "imputed", "imputed_confidence"]
    (truth, guess, sure, imputed, imputed_sure), member = _by_feature(frame, columns)
    both = [right_of_surest(guess == truth, sure, member), right_of_surest(imputed == truth, imputed_sure, member)]
    rows = _beside("attribute_ppv", both, (0.0, 1.0), own | {"top": TOP})
    numbers = frame[frame["value"].notna()]
    if len(numbers):
        (true, guess, imputed), member = _by_feature(numbers, ["value", "guess_value", "imputed_value"])
        both = [explained(true, guess, member), explained(true, imputed, member)]
        rows += _beside("attribute_r2", both, None, own)
    return rows


def _by_feature(frame: pd.DataFrame, columns: list[str]) -> tuple[list[np.ndarray], np.ndarray]:
    """Return columns as (R, n, F), and members as bool (R, n); for fixed members only these."""
    found, member = by_repeat(frame, columns, ["record", "feature"])
    features = frame["feature"].nunique()
    arrays = [one.reshape(len(one), -1, features) for one in found]
    member = member.reshape(*member.shape[:-1], -1, features)[..., 0]
    if member.ndim == 1:
        arrays, member = [one[:, member] for one in arrays], member[member]
    return arrays, np.broadcast_to(member, arrays[0].shape[:2])


def _beside(
    metric: str, both: list[Influences], limits: tuple[float, float] | None, own: Mapping[str, object]
) -> list[dict]:
    """Return rows of a number for the attack, for imputation, and for their difference on the same records."""
    attack, imputed = both
    rows = [
        row(metric, ALL, crossed(found, limits), **own, by=by)
        for by, found in (("attack", attack), ("imputation", imputed))
    ]
    blocks = tuple(a - b for a, b in zip(attack.blocks, imputed.blocks, strict=True))
    fewest = min((found.judged for found in both if found.judged is not None), default=None)
    difference = Influences(attack.value - imputed.value, blocks, judged=fewest)
    added = crossed(difference, None if limits is None else (-1.0, 1.0))
    return [*rows, row(f"{metric}_added", ALL, added, **own)]


def right_of_surest(right: np.ndarray, confidence: np.ndarray, member: np.ndarray, top: float = TOP) -> Influences:
    """Return the share of right guesses among the most confident ones about members.

    Args:
        right: bool (R, n, F), of F features of n records by R models.
        confidence: float (R, n, F), the higher, the surer; guesses that are as sure as the last one count too.
        member: bool (R, n).
        top: the share of the guesses about each model's members, in (0, 1].

    The limit that makes a guess one of the surest counts as given. The number rests on the records of these guesses
    alone: ten that are all right say little about a hundred.
    """
    chosen = np.zeros(right.shape, bool)
    for r, inside in enumerate(member):
        about = confidence[r][inside]
        least = np.sort(about.ravel())[-max(round(top * about.size), 1)]
        chosen[r] = (confidence[r] >= least) & inside[:, None]
    counts = chosen.sum(axis=(1, 2))
    each = (chosen & right).sum(axis=(1, 2)) / counts
    moved = (chosen * (right - each[:, None, None])).sum(axis=2) * (right.shape[1] / counts)[:, None]
    judged = int(chosen.any(axis=(0, 2)).sum())
    return Influences(float(each.mean()), (moved + (each - each.mean())[:, None],), judged=judged)


def explained(true: np.ndarray, guess: np.ndarray, member: np.ndarray) -> Influences:
    """Return R², the mean over the features: 1 for exact guesses, 0 for always guessing the members' mean, below 0 for
    worse.

    Args:
        true, guess: float (R, n, F), numbers; the members' values of each feature and model are not all equal.
        member: bool (R, n).

    The members' mean and spread of a feature are treated as known (delta method for the ratio of squares).
    """
    inside = member[..., None]
    count = member.sum(axis=1)
    mean = np.where(inside, true, 0.0).sum(axis=1, keepdims=True) / count[:, None, None]
    error, spread = (np.where(inside, part**2, 0.0) for part in (true - guess, true - mean))
    total = spread.sum(axis=1, keepdims=True)
    each = 1 - error.sum(axis=1, keepdims=True) / total  # (R, 1, F)
    moved = np.where(inside, (1 - each) * spread - error, 0.0) / total * true.shape[1]
    value = each.mean(axis=(1, 2))
    return Influences(float(value.mean()), (moved.mean(axis=2) + (value - value.mean())[:, None],))
