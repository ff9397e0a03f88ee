"""Audit by one training with many canaries, each included at random."""

from functools import lru_cache

import numpy as np
from scipy.special import bdtrc, expit, gammaln

from dp_leakage.audits.claims import Claim
from dp_leakage.audits.curves import Curve
from dp_leakage.audits.found import CONFIDENCE, Audit, guesses_of, largest, right_guesses

SHARE = 0.25  # share of the canaries that are guessed


def one_run_bound(
    scores: np.ndarray,
    included: np.ndarray,
    claim: Claim,
    confidence: float = CONFIDENCE,
    share: float = SHARE,
) -> Audit:
    """Return a lower bound on ε from one training and m canaries, or from several trainings with m canaries in all.

    The canaries with the highest scores are guessed as included, equally many with the lowest scores as not, and the
    rest are left out. The bound is the largest ε under which this many right guesses are too unlikely. Canaries may
    influence each other's scores in any way.

    Args:
        scores: (m,) of the canaries, higher for "included".
        included: bool (m,), each by its own fair coin, tossed before training.
        claim: the tested claim: by theorem 5.2 of Steinke, Nasr & Jagielski 2023 if it is (ε, δ)-DP, otherwise by
            theorem 9 of Mahloujifar, Melis & Chaudhuri 2024 (arXiv 2410.22235).
        confidence: of the bound.
        share: of the canaries that are guessed, in (0, 1], fixed before the scores are seen, since a choice based on
            the result would void the confidence.

    Raises:
        UserError: fewer than 2 canaries, a share outside (0, 1], or scores that do not fit the coins.
    """
    guesses = guesses_of(len(scores), share)
    right = right_guesses(scores, included, guesses)
    return Audit(_bound(len(scores), guesses, right, claim, confidence), right, guesses)


def one_run_reach(m: int, claim: Claim, confidence: float = CONFIDENCE, share: float = SHARE) -> float:
    """Return the largest ε that `one_run_bound` can show with m canaries: every guess right."""
    guesses = guesses_of(m, share)
    return _bound(m, guesses, guesses, claim, confidence)


def one_run_p_value(m: int, guesses: int, right: int, epsilon: float, delta: float) -> float:
    """Return the largest probability, under (ε, δ)-DP, that at least ``right`` of ``guesses`` are right, among m
    canaries.

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
    """Return whether no mechanism with this curve can give at least ``right`` right guesses with probability
    ``error``.

    Among m canaries let V of k guesses be right, and p_j = P[V = j]. Changing one canary's coin turns "its guess is
    right, and j in all" into "its guess is wrong, and j − 1 in all". So, averaged over canaries, for every j

        H_j = Σ_{i≥j} (i/m) p_i ≤ curve(R_{j−1}),  R_{j−1} = Σ_{i≥j−1} ((k − i)/m) p_i

    If P[V ≥ v] is ``error``, H_v and R_v are least when all of it lies at v. Then every further p_j is at least what
    the inequality requires, and a larger p_j requires more below. The curve is refuted when the probabilities exceed
    1.
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
