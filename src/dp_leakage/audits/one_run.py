"""One training with many canaries, each with a fair coin of its own that decides whether it is in."""

from functools import lru_cache

import numpy as np
from scipy.special import bdtrc, expit, gammaln

from dp_leakage.audits.claims import Claim
from dp_leakage.audits.curves import Curve
from dp_leakage.audits.found import CONFIDENCE, Audit, guesses_of, largest, right_guesses

SHARE = 0.25  # of the canaries that are guessed about


def one_run_bound(
    scores: np.ndarray,
    included: np.ndarray,
    claim: Claim,
    confidence: float = CONFIDENCE,
    share: float = SHARE,
) -> Audit:
    """Lower bound on ε from one training and m canaries, or from several trainings with m canaries in all.

    The canaries of highest score are guessed to be included, as many of lowest score to be not, and the rest is left
    out; the bound is the largest ε under which so many right guesses are too unlikely. Canaries may influence each
    other's scores in any way.

    Args:
        scores: (m,) of the canaries, higher for "included".
        included: bool (m,), each a fair coin of its own, tossed before training.
        claim: that is tested: by theorem 5.2 of Steinke, Nasr & Jagielski 2023 where it is (ε, δ)-DP, else by
            theorem 9 of Mahloujifar, Melis & Chaudhuri 2024 (arXiv 2410.22235).
        confidence: of the bound.
        share: of the canaries that are guessed about, in (0, 1], fixed before the scores are seen: a choice by the
            result would void the confidence.

    Raises:
        UserError: fewer than 2 canaries, a share outside (0, 1], or scores that do not fit the coins.
    """
    guesses = guesses_of(len(scores), share)
    right = right_guesses(scores, included, guesses)
    return Audit(_bound(len(scores), guesses, right, claim, confidence), right, guesses)


def one_run_reach(m: int, claim: Claim, confidence: float = CONFIDENCE, share: float = SHARE) -> float:
    """The largest ε that `one_run_bound` can show with m canaries: every guess right."""
    guesses = guesses_of(m, share)
    return _bound(m, guesses, guesses, claim, confidence)


def one_run_p_value(m: int, guesses: int, right: int, epsilon: float, delta: float) -> float:
    """Most that (ε, δ)-DP can make the probability of ``right`` or more of ``guesses`` right, among m canaries.

    P[B ≥ v] + 2mδ·max_i P[v > B ≥ v − i]/i, with B ~ Binomial(guesses, e^ε/(1 + e^ε)) and v = ``right``.
    """
    if right == 0:
        return 1.0
    q = float(expit(epsilon))
    tail = float(bdtrc(right - 1, guesses, q))
    if delta == 0:
        return tail
    below = np.arange(right - 1, -1, -1)
    log_choose = gammaln(guesses + 1) - gammaln(below + 1) - gammaln(guesses - below + 1)
    mass = np.exp(log_choose - below * np.logaddexp(0, -epsilon) - (guesses - below) * np.logaddexp(0, epsilon))
    steepest = float(np.max(np.cumsum(mass) / np.arange(1, right + 1)))
    return min(tail + 2 * m * delta * steepest, 1.0)


def curve_refuted(curve: Curve, m: int, guesses: int, right: int, error: float) -> bool:
    """Can no mechanism with this curve give ``right`` or more right guesses with a probability of ``error``?

    Among m canaries let V of k guesses be right, p_j = P[V = j]. Changing one canary's coin turns "it is guessed
    rightly, and j in all" into "it is guessed wrongly, and j − 1 in all". So, averaged over canaries, for every j

        H_j = Σ_{i≥j} (i/m) p_i ≤ curve(R_{j−1}),  R_{j−1} = Σ_{i≥j−1} ((k − i)/m) p_i

    If P[V ≥ v] is ``error``, H_v and R_v are least where all of it lies at v, and each further p_j is at least what the
    inequality asks for; more of it asks for more below. The curve is refuted when the probabilities pass 1.
    """
    wrong = error * (guesses - right) / m
    truth = error * right / m
    tpr, fpr = curve.tpr.tolist(), curve.fpr.tolist()
    place = 1
    for j in range(right, 0, -1):
        while place < len(tpr) - 1 and tpr[place] < truth:
            place += 1
        rise = tpr[place] - tpr[place - 1]
        part = (truth - tpr[place - 1]) / rise if rise > 0 else 1.0
        least = max(fpr[place - 1] + max(part, 0.0) * (fpr[place] - fpr[place - 1]), wrong)
        truth += (j - 1) / (guesses - j + 1) * (least - wrong)
        wrong = least
        if truth + wrong > guesses / m:
            return True
    return False


@lru_cache(maxsize=4096)
def _bound(m: int, guesses: int, right: int, claim: Claim, confidence: float) -> float:
    error = 1 - confidence
    if claim.kind == "approximate":
        return largest(lambda at: one_run_p_value(m, guesses, right, at, claim.delta) <= error, claim.steps, claim.most)
    return claim.epsilon(
        largest(lambda at: curve_refuted(claim.curve(at), m, guesses, right, error), claim.steps, claim.most)
    )
