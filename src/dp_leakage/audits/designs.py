"""Audit designs by name: each one's bound, its best possible bound, and the number of canaries for more."""

import math
from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from dp_leakage.audits.claims import Claim
from dp_leakage.audits.found import Audit
from dp_leakage.audits.many_runs import many_runs_bound, many_runs_reach
from dp_leakage.audits.one_run import one_run_bound, one_run_reach
from dp_leakage.audits.trials import trials_bound, trials_reach

MOST_COINS = 1 << 22  # the largest number of coins worth trying


class Design(NamedTuple):
    """Bound of an audit design: the two functions below, without the name of the design."""

    bound: Callable[[np.ndarray, np.ndarray, Claim, float, float, int], Audit]
    reach: Callable[[int, Claim, float, float], float]


DESIGNS = {
    "one_run": Design(
        lambda scores, held, claim, confidence, share, _: one_run_bound(scores, held, claim, confidence, share),
        one_run_reach,
    ),
    "many_runs": Design(
        lambda scores, held, claim, confidence, share, _: many_runs_bound(scores, held, claim, confidence, share),
        many_runs_reach,
    ),
    "trials": Design(
        lambda scores, held, claim, confidence, _, seed: trials_bound(
            scores[held], scores[~held], claim, seed, confidence
        ),
        lambda coins, claim, confidence, _: trials_reach(coins // 2, coins - coins // 2, claim, confidence),
    ),
}


def bound(
    design: str, scores: np.ndarray, held: np.ndarray, claim: Claim, confidence: float, share: float, seed: int
) -> Audit:
    """Return the lower bound of a design from scores and inclusion, both (coins,). ``seed`` splits those of
    ``trials``.
    """
    return DESIGNS[design].bound(scores, held, claim, confidence, share, seed)


def reach(design: str, coins: int, claim: Claim, confidence: float, share: float) -> float:
    """Return the largest ε that a design can show: with perfect scores and half of the canaries included."""
    return DESIGNS[design].reach(coins, claim, confidence, share)


def coins_for(epsilon: float, reached: Callable[[int], float], least: int) -> int | None:
    """Return the fewest canaries, to within a tenth, with which a design reaches ε; None if no number up to a limit
    does.
    """
    high = max(least, 4)
    while reached(high) < epsilon:
        high *= 2
        if high > MOST_COINS:
            return None
    low = max(high // 2, 4)
    while high > max(1.1 * low, low + 1):
        middle = max(math.isqrt(low * high), low + 1)
        low, high = (low, middle) if reached(middle) >= epsilon else (middle, high)
    return high


def shortfall(
    epsilon: float, design: str, coins: int, claim: Claim, stated: int, share: float, confidence: float
) -> str | None:
    """Return one sentence on why a design cannot reach a claimed ε and what would help; None if it can.

    Args:
        epsilon: the claimed ε.
        design: one of `DESIGNS`.
        coins: number of canaries.
        claim: the claim that it tests.
        stated: number of bounds that hold together.
        share: the share of coins that are guessed.
        confidence: of all bounds together.
    """

    def reached(n: int, together: int = stated) -> float:
        return reach(design, n, claim, 1 - (1 - confidence) / together, share)

    if (best := reached(coins)) >= epsilon:
        return None
    needed = coins_for(epsilon, reached, coins)
    ways = [] if needed is None else [f"{needed} coins"]
    if stated > 1 and reached(coins, 1) >= epsilon:
        fewest = max(n for n in range(1, stated) if reached(coins, n) >= epsilon)
        ways.append(f"{fewest} of the {stated} bounds")
    return f"reaches at most ε = {best:.3g} of the claimed {epsilon:g} with {coins} coins; " + (
        f"{' or '.join(ways)} would reach it" if ways else "no number of coins reaches it under this claim"
    )
