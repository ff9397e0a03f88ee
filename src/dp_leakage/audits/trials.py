"""Audit by many trainings with and without the canary: half of them choose the threshold, the other half tests it."""

import numpy as np
from scipy.special import betaincinv, ndtri

from dp_leakage.audits.claims import Claim, gaussian_epsilon
from dp_leakage.audits.found import CONFIDENCE, Audit
from dp_leakage.common.errors import UserError


def trials_bound(
    present: np.ndarray, absent: np.ndarray, claim: Claim, seed: int, confidence: float = CONFIDENCE
) -> Audit:
    """Return a lower bound on ε from the canary's score in independently trained models.

    The models are halved at random. The threshold with the best bound on the first half is used on the second half,
    and only the counts of the second half enter the bound. `many_runs_bound` needs no models for a threshold, but makes
    equally many guesses on either side. The present bound also finds a difference on only one side.

    Args:
        present: (T,) one score of each model trained with the canary, higher for "present"; T ≥ 2.
        absent: (T',) one score of each model trained without the canary; T' ≥ 2.
        claim: (ε, δ)-DP or Gaussian DP.
        seed: draws the halves.
        confidence: of the bound.

    Raises:
        UserError: fewer than two models on a side, or another claim.
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
    best = np.argmax(rates_bound(hits, len(chosen_in), alarms, len(chosen_out), claim, confidence))
    threshold = candidates[best]
    true_positives, false_positives = (int((scores >= threshold).sum()) for scores in (counted_in, counted_out))
    epsilon = rates_bound(true_positives, len(counted_in), false_positives, len(counted_out), claim, confidence)
    right = true_positives + len(counted_out) - false_positives
    return Audit(float(epsilon), right, len(counted_in) + len(counted_out))


def trials_reach(present: int, absent: int, claim: Claim, confidence: float = CONFIDENCE) -> float:
    """Return the largest ε that `trials_bound` can show with this many models, if the test is always right."""
    counted_in, counted_out = (-(-models // 2) for models in (present, absent))
    return float(rates_bound(counted_in, counted_in, 0, counted_out, claim, confidence))


def rates_bound(
    true_positives: np.ndarray | int,
    positives: int,
    false_positives: np.ndarray | int,
    negatives: int,
    claim: Claim,
    confidence: float = CONFIDENCE,
) -> np.ndarray:
    """Return a lower bound on ε from the counts of right and wrong decisions "present" by a fixed rule.

    TPR is bounded from below and FPR from above by Clopper–Pearson, each at half the error, so both hold together. (ε,
    δ)-DP forces TPR ≤ e^ε FPR + δ and 1 − FPR ≤ e^ε (1 − TPR) + δ (Kairouz, Oh & Viswanath 2015), μ-GDP forces
    Φ⁻¹(TPR) − Φ⁻¹(FPR) ≤ μ (Dong, Roth & Su 2022; Nasr et al. 2023).

    Args:
        true_positives: of ``positives`` independently trained models with the canary, how many the test flags; int or
            an array, for which the bound is computed elementwise.
        false_positives: of ``negatives`` models without it, the same.
        claim: (ε, δ)-DP or Gaussian DP.
        confidence: of the bound.

    Raises:
        UserError: another claim.
    """
    tpr, fpr = _end_rates(true_positives, positives, false_positives, negatives, confidence)
    if claim.kind == "approximate":
        with np.errstate(divide="ignore", invalid="ignore"):
            ratios = np.stack([(tpr - claim.delta) / fpr, (1 - fpr - claim.delta) / (1 - tpr)])
            return np.log(np.maximum(ratios.max(axis=0), 1.0))
    if claim.kind != "gaussian":
        raise UserError(f"trials test (ε, δ)-DP or Gaussian DP, not {claim.name}; use design many_runs or one_run")
    mu = np.maximum(ndtri(tpr) - ndtri(fpr), 0.0)
    # ε grows with μ, so one table serves all elements.
    distinct, where = np.unique(mu, return_inverse=True)
    return np.array([gaussian_epsilon(value, claim.delta) for value in distinct])[where].reshape(np.shape(mu))


def _end_rates(
    true_positives: np.ndarray | int,
    positives: int,
    false_positives: np.ndarray | int,
    negatives: int,
    confidence: float,
) -> tuple[np.ndarray, np.ndarray]:
    """Return the smallest TPR and the largest FPR that the counts allow together, by exact one-sided bounds."""
    error = (1 - confidence) / 2
    hits, alarms = np.asarray(true_positives, dtype=float), np.asarray(false_positives, dtype=float)
    with np.errstate(invalid="ignore"):
        tpr = np.where(hits > 0, betaincinv(np.maximum(hits, 1), positives - hits + 1, error), 0.0)
        room = np.maximum(negatives - alarms, 1)
        fpr = np.where(alarms < negatives, betaincinv(alarms + 1, room, 1 - error), 1.0)
    return tpr, fpr


def _at_least(scores: np.ndarray, thresholds: np.ndarray) -> np.ndarray:
    return len(scores) - np.searchsorted(np.sort(scores), thresholds, side="left")
