"""Power of an audit: the probability of finding a training that protects less than claimed, computed before
training.
"""

import math
from collections.abc import Callable, Mapping
from types import MappingProxyType

import numpy as np
from scipy.special import bdtrc

from dp_leakage.audits.claims import Claim, gaussian_mu
from dp_leakage.audits.curves import Curve, approximate_curve, gaussian_curve
from dp_leakage.audits.found import guesses_of
from dp_leakage.audits.many_runs import many_runs_p_value
from dp_leakage.audits.one_run import curve_refuted, one_run_p_value
from dp_leakage.common.errors import UserError

# A fault of a training → how many times as far as claimed it separates the canary's scores, for Gaussian noise.
# Measured on the bundled digits (100 records, softmax regression, 400 trainings, ε from 1 to 8, canary `optimized`):
# 1.92 to 1.95 and 8.4 to 8.6, where a correct training shows .96 to .97. The values here leave room for other models.
FAULTS: Mapping[str, float] = MappingProxyType({
    "half the claimed noise": 1.8,
    "each batch clipped instead of each record": 4.0,
})  # fmt: skip
ENOUGH = 0.95  # chance to find the least of the faults at which no more models are taken
LEAST, MOST = 100, 10_000  # models of an audit that chooses their number itself


def fewest_right(design: str, coins: int, claim: Claim, epsilon: float, confidence: float, share: float) -> int | None:
    """Return the fewest right guesses with which an audit refutes a claimed ε; None if no number does.

    Args:
        design: ``many_runs`` or ``one_run``.
        coins: number of canaries, ≥ 2.
        claim: (ε, δ)-DP or Gaussian DP, whose strength is ε itself.
        epsilon: claimed, > 0.
        confidence: of the bound.
        share: of the coins that are guessed, in (0, 1].

    Raises:
        UserError: another design or claim.
    """
    if claim.kind == "curve" or design not in ("many_runs", "one_run"):
        raise UserError(f"no power is computed for design {design!r} and the claim of {claim.name}")
    guesses, error = guesses_of(coins, share), 1 - confidence

    def refutes(right: int) -> bool:
        if design == "many_runs":
            return many_runs_p_value(coins, guesses, right, claim, epsilon) <= error
        if claim.kind == "approximate":
            return one_run_p_value(coins, guesses, right, epsilon, claim.delta) <= error
        return curve_refuted(claim.curve(epsilon), coins, guesses, right, error)

    return _first(refutes, guesses)


def power(
    design: str, coins: int, claim: Claim, epsilon: float, confidence: float, share: float, worse: Curve
) -> float:
    """Return the probability that an audit refutes a claimed ε if the scores separate like a pair with the curve
    ``worse``.

    Guesses are then independently right, with the accuracy of the most confident ``share`` of that pair's outcomes.
    Other arguments and errors are those of `fewest_right`.
    """
    right = fewest_right(design, coins, claim, epsilon, confidence, share)
    if right is None:
        return 0.0
    guesses = guesses_of(coins, share)
    return float(bdtrc(right - 1, guesses, worse.accuracy(np.array(guesses / coins))))


def faulty(epsilon: float, delta: float, times: float) -> Curve:
    """Return the curve of a training whose noise separates a canary ``times`` as far as Gaussian noise of (ε, δ).

    For δ = 0 there is no Gaussian noise; the faulty training then has a multiple of ε.
    """
    if delta == 0:
        return approximate_curve(times * epsilon, 0.0)
    return gaussian_curve(times * gaussian_mu(epsilon, delta))


def chances(design: str, coins: int, claim: Claim, epsilon: float, confidence: float, share: float) -> dict[str, float]:
    """Return fault → the probability that the audit finds it. Arguments and errors are those of `fewest_right`."""
    return {
        fault: power(design, coins, claim, epsilon, confidence, share, faulty(epsilon, claim.delta, times))
        for fault, times in FAULTS.items()
    }


def models_for(claim: Claim, epsilon: float, confidence: float, share: float) -> int:
    """Return the fewest models, to within a tenth, that find every fault with probability `ENOUGH` (design
    ``many_runs``).

    At least `LEAST` and at most `MOST`. Faults that even `MOST` models would miss are ignored, e.g. half the noise
    below ε = 0.38 (Gaussian, δ = 1e-5).
    """

    def found(models: int) -> dict[str, float]:
        return chances("many_runs", models, claim, epsilon, confidence, share)

    in_reach = [fault for fault, chance in found(MOST).items() if chance >= ENOUGH]
    models = LEAST
    while models < MOST and min((found(models)[fault] for fault in in_reach), default=0.0) < ENOUGH:
        models = min(10 * math.ceil(0.11 * models), MOST)
    return models


def _first(holds: Callable[[int], bool], most: int) -> int | None:
    """Return the smallest number up to ``most`` that satisfies a monotone condition."""
    if not holds(most):
        return None
    low, high = 0, most
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if holds(middle) else (middle, high)
    return high
