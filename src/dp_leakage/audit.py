"""Lower bounds on ε that are statements: each holds with the stated confidence for any mechanism of the kind it names.

All of them test the claim "this training is (ε, δ)-DP" and return the largest ε that the evidence refutes; 0 refutes
nothing. The neighbouring relation is that of the game: a canary present or absent is add/remove, a canary in the place
of another record is replace-one. Two designs are valid, and there is no other here:

* many models, trained independently, half of them with the canary (`trials_bound`): each gives one score, and the
  threshold is chosen on models that are not counted;
* one model, many canaries, each included by its own fair coin (`one_run_bound`): Steinke, Nasr & Jagielski 2023.

Where several bounds are compared with their claims, `corrected` keeps the chance of a single false alarm.
"""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from scipy.special import bdtrc, betaincinv, expit, gammaln, ndtri

from dp_leakage.errors import UserError

CONFIDENCE = 0.95
STEPS = 60  # of bisection: far below any rounding that matters


class Audit(NamedTuple):
    """What an audit found.

    Attributes:
        epsilon: the lower bound on ε, ≥ 0.
        threshold: the score from on which a model was said to hold the canary; NaN for a one-run audit.
        right: right guesses that the bound rests on.
        guesses: guesses that the bound rests on.
    """

    epsilon: float
    threshold: float
    right: int
    guesses: int


Bound = Callable[[np.ndarray, int, np.ndarray, int, float, float], np.ndarray]


def rates_bound(
    true_positives: np.ndarray,
    positives: int,
    false_positives: np.ndarray,
    negatives: int,
    delta: float,
    confidence: float = CONFIDENCE,
) -> np.ndarray:
    """Lower bound on ε from how often a test with a fixed rule says "present", rightly and wrongly.

    (ε, δ)-DP forces TPR ≤ e^ε FPR + δ and 1 − FPR ≤ e^ε (1 − TPR) + δ (Kairouz, Oh & Viswanath 2015). TPR is bounded
    from below and FPR from above by Clopper–Pearson, each at half the error, so both inequalities hold together.

    Args:
        true_positives: of ``positives`` independently trained models with the canary, how many the test flags; int or
            an array, for which the bound is computed elementwise.
        false_positives: of ``negatives`` models without it, the same.
        delta: in [0, 1).
        confidence: of the bound.
    """
    tpr, fpr = _end_rates(true_positives, positives, false_positives, negatives, confidence)
    with np.errstate(divide="ignore", invalid="ignore"):
        ratios = np.stack([(tpr - delta) / fpr, (1 - fpr - delta) / (1 - tpr)])
        return np.log(np.maximum(ratios.max(axis=0), 1.0))


def gaussian_bound(
    true_positives: np.ndarray,
    positives: int,
    false_positives: np.ndarray,
    negatives: int,
    delta: float,
    confidence: float = CONFIDENCE,
) -> np.ndarray:
    """Lower bound on ε at δ of a mechanism that is claimed to be Gaussian differentially private (Nasr et al. 2023).

    μ-GDP forces Φ⁻¹(TPR) − Φ⁻¹(FPR) ≤ μ (Dong, Roth & Su 2022), and μ gives ε(δ) exactly. It is tighter than
    `rates_bound` and holds for that kind of mechanism only: unsampled Gaussian noise, composed.

    Args and result: as `rates_bound`, with δ > 0.
    """
    from dp_accounting import get_epsilon_gaussian  # not our accountants': a figure must not depend on their code

    tpr, fpr = _end_rates(true_positives, positives, false_positives, negatives, confidence)
    mu = np.atleast_1d(np.maximum(ndtri(tpr) - ndtri(fpr), 0.0))
    epsilon = np.array([get_epsilon_gaussian(1 / m, delta) if m > 0 else 0.0 for m in mu.ravel()])
    return np.maximum(epsilon, 0.0).reshape(np.shape(tpr))


def trials_bound(
    present: np.ndarray,
    absent: np.ndarray,
    delta: float,
    seed: int,
    confidence: float = CONFIDENCE,
    bound: Bound = rates_bound,
) -> Audit:
    """Lower bound on ε from the canary's score in independently trained models.

    The models are halved at random. The threshold that gives the best `rates_bound` on the first half is used on the
    second, whose counts alone enter the bound.

    Args:
        present: (T,) one score of each model trained with the canary, higher for "present"; T ≥ 2.
        absent: (T',) the same of models trained without it; T' ≥ 2.
        delta: in [0, 1).
        seed: draws the halves.
        confidence: of the bound.
        bound: `rates_bound`, or `gaussian_bound` where the claim is of that kind.

    Raises:
        UserError: fewer than two models on a side.
    """
    if min(len(present), len(absent)) < 2:
        raise UserError(
            f"an audit needs at least 2 models with and 2 without the canary, not {len(present)} and {len(absent)}"
        )
    rng = np.random.default_rng(seed)
    (chosen_in, counted_in), (chosen_out, counted_out) = (
        np.array_split(rng.permutation(scores), [len(scores) // 2]) for scores in (present, absent)
    )
    candidates = np.unique(np.concatenate([chosen_in, chosen_out]))
    hits, alarms = (_at_least(scores, candidates) for scores in (chosen_in, chosen_out))
    best = np.argmax(rates_bound(hits, len(chosen_in), alarms, len(chosen_out), delta, confidence))
    threshold = candidates[best]
    true_positives, false_positives = (int((scores >= threshold).sum()) for scores in (counted_in, counted_out))
    epsilon = bound(true_positives, len(counted_in), false_positives, len(counted_out), delta, confidence)
    right = true_positives + len(counted_out) - false_positives
    return Audit(float(epsilon), float(threshold), right, len(counted_in) + len(counted_out))


def one_run_bound(
    scores: np.ndarray,
    included: np.ndarray,
    delta: float,
    guesses: int,
    confidence: float = CONFIDENCE,
) -> Audit:
    """Lower bound on ε from one model and m canaries (Steinke, Nasr & Jagielski 2023, theorem 5.2 and appendix D).

    The ``guesses``/2 canaries of highest score are guessed to be included, as many of lowest score to be not, and the
    rest is left out; the bound is the largest ε under which so many right guesses are too unlikely.

    Args:
        scores: (m,) of the canaries, from the trained model alone, higher for "included".
        included: bool (m,), each a fair coin of its own, tossed before training.
        delta: in [0, 1).
        guesses: even, ≤ m, fixed before the scores are seen: a choice by the result would void the confidence.
        confidence: of the bound.

    Raises:
        UserError: ``guesses`` is odd, or not in 2 … m.
    """
    m = len(scores)
    if guesses % 2 or not 2 <= guesses <= m:
        raise UserError(f"key 'guesses' is {guesses}; valid is an even number from 2 to {m}, the number of canaries")
    order = np.argsort(scores, kind="stable")
    half = guesses // 2
    right = int(included[order[-half:]].sum() + (~included[order[:half]]).sum())
    epsilon = _largest(lambda e: one_run_p_value(m, guesses, right, e, delta) <= 1 - confidence)
    return Audit(epsilon, float("nan"), right, guesses)


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


def corrected(confidence: float, comparisons: int) -> float:
    """The confidence that each of several bounds needs for all of them to hold together (Bonferroni)."""
    return 1 - (1 - confidence) / comparisons


def _end_rates(
    true_positives: np.ndarray, positives: int, false_positives: np.ndarray, negatives: int, confidence: float
) -> tuple[np.ndarray, np.ndarray]:
    """The smallest TPR and the largest FPR that the counts allow together; exact one-sided bounds."""
    error = (1 - confidence) / 2
    hits, alarms = np.asarray(true_positives, dtype=float), np.asarray(false_positives, dtype=float)
    with np.errstate(invalid="ignore"):
        tpr = np.where(hits > 0, betaincinv(np.maximum(hits, 1), positives - hits + 1, error), 0.0)
        room = np.maximum(negatives - alarms, 1)
        fpr = np.where(alarms < negatives, betaincinv(alarms + 1, room, 1 - error), 1.0)
    return tpr, fpr


def _at_least(scores: np.ndarray, thresholds: np.ndarray) -> np.ndarray:
    return len(scores) - np.searchsorted(np.sort(scores), thresholds, side="left")


def _largest(refuted: Callable[[float], bool]) -> float:
    """The largest ε ≥ 0 that is refuted, where refutation holds up to some ε; 0 where even that is not."""
    if not refuted(0.0):
        return 0.0
    low, high = 0.0, 1.0
    while refuted(high):
        low, high = high, 2 * high
    for _ in range(STEPS):
        middle = (low + high) / 2
        low, high = (middle, high) if refuted(middle) else (low, middle)
    return low
