"""Audit by many trainings, each including the canary at random."""

from functools import lru_cache

import numpy as np
from scipy.special import bdtrc, betaincinv

from dp_leakage.audits.claims import Claim
from dp_leakage.audits.found import CONFIDENCE, Audit, guesses_of, largest, right_guesses

SHARE = 1.0  # share of the coins that are guessed: all (measured: within a tenth of the best share for Gaussian noise)
NODES = 64  # points of the quadrature over how sure the guesses can be


def many_runs_bound(
    scores: np.ndarray,
    included: np.ndarray,
    claim: Claim,
    confidence: float = CONFIDENCE,
    share: float = SHARE,
) -> Audit:
    """Return a lower bound on ε from one score of each of n trainings, whose noise and inclusion are independent.

    The trainings with the highest scores are guessed to include the canary, and equally many with the lowest scores
    not to. There is no threshold, so no training is needed to choose one.

    Args:
        scores: (n,) higher for "included"; each may depend only on its own training.
        included: bool (n,), each training's random inclusion, drawn before it.
        claim: the tested claim.
        confidence: of the bound.
        share: of the trainings that are guessed, in (0, 1], fixed before the scores are seen. If the claim is only (ε,
            δ)-DP, 0.25 gives larger bounds than 1, since then only sure guesses help.

    Raises:
        UserError: fewer than 2 trainings, a share outside (0, 1], or scores of another length.
    """
    guesses = guesses_of(len(scores), share)
    right = right_guesses(scores, included, guesses)
    return Audit(_bound(len(scores), guesses, right, claim, confidence), right, guesses)


def many_runs_reach(n: int, claim: Claim, confidence: float = CONFIDENCE, share: float = SHARE) -> float:
    """Return the largest ε that `many_runs_bound` can show with n trainings: every guess right."""
    guesses = guesses_of(n, share)
    return _bound(n, guesses, guesses, claim, confidence)


def many_runs_p_value(n: int, guesses: int, right: int, claim: Claim, strength: float) -> float:
    """Return the largest probability, under the claim, of this many right guesses among n independent inclusions.

    Anything that obeys the claim's curve is a function of the pair of distributions with this curve (Blackwell 1953).
    Given the n outcomes of this pair, the inclusions are independent. In stochastic order, the best guesses are the
    likelier values of the most certain inclusions. Let U be the share of outcomes that are at least as certain as the
    least certain of the k guesses. Then U ~ Beta(k + 1, n − k), and the number of right guesses is Binomial(k,
    accuracy(U)).
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
