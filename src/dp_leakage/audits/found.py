"""Result of an audit, and functions shared by all designs."""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from dp_leakage.common.errors import UserError

CONFIDENCE = 0.95


class Audit(NamedTuple):
    """Result of an audit.

    Attributes:
        epsilon: the lower bound on ε, ≥ 0.
        right: right guesses that the bound rests on.
        guesses: guesses that the bound rests on.
    """

    epsilon: float
    right: int
    guesses: int


def corrected(confidence: float, comparisons: int) -> float:
    """Return the confidence that each of several bounds needs, so that all hold together (Bonferroni)."""
    return 1 - (1 - confidence) / comparisons


def guesses_of(coins: int, share: float) -> int:
    """Return the number of guesses: the largest even number up to the ``share`` of the canaries, but at least 2.

    Raises:
        UserError: fewer than 2 coins, or a share that is not in (0, 1].
    """
    if coins < 2:
        raise UserError(f"an audit needs at least 2 canaries, not {coins}")
    if not 0 < share <= 1:
        raise UserError(f"key 'share' is {share:g}; expected a number above 0 and up to 1")
    return 2 * max(int(share * coins / 2), 1)


def right_guesses(scores: np.ndarray, included: np.ndarray, guesses: int) -> int:
    """Count the right guesses among ``guesses``: half of them guess "included", for the highest scores, and half "not
    included".

    Args:
        scores: (m,) numbers, higher for "included". Among equal scores the order in the array decides.
        included: bool (m,), what the coins said.
        guesses: even, from 2 to m.

    Raises:
        UserError: a score is no finite number, or there is not one for every coin.
    """
    scores, included = np.asarray(scores), np.asarray(included, dtype=bool)
    if scores.shape != included.shape or scores.ndim != 1:
        raise UserError(f"scores have shape {scores.shape}, coins {included.shape}; expected one score for every coin")
    if np.isnan(scores).any():
        raise UserError(f"score {int(np.isnan(scores).argmax())} is NaN; expected numbers")
    order, half = np.argsort(scores, kind="stable"), guesses // 2
    return int(included[order[-half:]].sum() + (~included[order[:half]]).sum())


def largest(refuted: Callable[[float], bool], steps: int, most: float) -> float:
    """Return the largest refuted strength up to ``most``, with all smaller ones refuted too; 0 if 0 is not refuted."""
    if not refuted(0.0):
        return 0.0
    low, high = 0.0, 1.0
    while refuted(high):
        low, high = high, 2 * high
        if high > most:
            return low
    for _ in range(steps):
        middle = (low + high) / 2
        low, high = (middle, high) if refuted(middle) else (low, middle)
    return low
