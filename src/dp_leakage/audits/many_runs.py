"""Many trainings, each with one fair coin that decides whether the canary is in it."""

from functools import lru_cache

import numpy as np
from scipy.special import bdtrc, betaincinv

from dp_leakage.audits.claims import Claim
from dp_leakage.audits.found import CONFIDENCE, Audit, guesses_of, largest, right_guesses

SHARE = 1.0  # of the coins that are guessed: all (measured: within a tenth of the best share for Gaussian noise)
NODES = 64  # of the quadrature over how sure the guesses can be


def many_runs_bound(
    scores: np.ndarray,
    included: np.ndarray,
    claim: Claim,
    confidence: float = CONFIDENCE,
    share: float = SHARE,
) -> Audit:
    """Lower bound on ε from one score of each of n trainings, whose noise and coins are independent.

    The trainings of highest score are guessed to hold the canary, as many of lowest score not to. No threshold is
    chosen, so no training is spent on choosing it.

    Args:
        scores: (n,) higher for "included"; each may depend on its own training alone.
        included: bool (n,), each training's fair coin, tossed before it.
        claim: that is tested.
        confidence: of the bound.
        share: of the trainings that are guessed about, in (0, 1], fixed before the scores are seen. Where the claim is
            (ε, δ)-DP alone, 0.25 finds more than 1: then only sure guesses are of use.

    Raises:
        UserError: fewer than 2 trainings, a share outside (0, 1], or scores that do not fit the coins.
    """
    guesses = guesses_of(len(scores), share)
    right = right_guesses(scores, included, guesses)
    return Audit(_bound(len(scores), guesses, right, claim, confidence), right, guesses)


def many_runs_reach(n: int, claim: Claim, confidence: float = CONFIDENCE, share: float = SHARE) -> float:
    """The largest ε that `many_runs_bound` can show with n trainings: every guess right."""
    guesses = guesses_of(n, share)
    return _bound(n, guesses, guesses, claim, confidence)


def many_runs_p_value(n: int, guesses: int, right: int, claim: Claim, strength: float) -> float:
    """Most that the claim can make the probability of so many right guesses among n independent coins.

    Whatever obeys the claim's curve is a function of the pair of distributions that has this curve (Blackwell 1953).
    Given that pair's n outcomes, the coins are independent, and no guesses do better, in the sense of stochastic order,
    than the likelier value of the coins of which it is surest. With U the share of outcomes that are as sure as the
    least sure of the k guessed, U ~ Beta(k + 1, n − k), the right ones are Binomial(k, accuracy(U)).
    """
    curve = claim.curve(strength)
    if guesses == n:
        return float(bdtrc(right - 1, n, curve.accuracy(np.array(1.0))))
    nodes, weights = np.polynomial.legendre.leggauss(NODES)
    share = betaincinv(guesses + 1, n - guesses, (nodes + 1) / 2)
    return float(weights @ bdtrc(right - 1, guesses, curve.accuracy(share)) / 2)


@lru_cache(maxsize=4096)
def _bound(n: int, guesses: int, right: int, claim: Claim, confidence: float) -> float:
    if right == 0:
        return 0.0
    found = largest(
        lambda at: many_runs_p_value(n, guesses, right, claim, at) <= 1 - confidence, claim.steps, claim.most
    )
    return claim.epsilon(found)
