"""Claims about a training: for each ε at a δ, the largest trade-off curve that the claim allows."""

from collections.abc import Callable
from functools import lru_cache
from typing import Literal, NamedTuple

import numpy as np
from scipy.optimize import brentq
from scipy.special import log_ndtr, ndtr

from dp_leakage.audits.curves import DIAGONAL, Curve, approximate_curve, gaussian_curve, sampled, sampled_epsilon

LEAST_NOISE = (
    8.0  # an own curve is compared at most with that of an eighth of its noise, since each needs an accountant
)
COARSE = 7  # steps of bisection if each curve takes an accountant seconds: to a hundredth of the claim


class Claim(NamedTuple):
    """A family of privacy promises, one for each strength.

    Attributes:
        name: the claim's name in a table.
        delta: δ at which ε is read, in [0, 1).
        curve: strength ≥ 0 → the largest curve that the claim allows; symmetric (the larger of both directions),
            growing with the strength.
        kind: ``approximate`` and ``gaussian`` have closed forms that some bounds use; ``curve`` is anything else.
        epsilon: strength → ε at ``delta``; by default the strength itself.
        steps: steps of bisection in the search for the largest refuted strength.
        most: the largest strength of that search.
    """

    name: str
    delta: float
    curve: Callable[[float], Curve]
    kind: Literal["approximate", "gaussian", "curve"] = "curve"
    epsilon: Callable[[float], float] = float
    steps: int = 40
    most: float = 1e4


@lru_cache
def approximate_dp(delta: float) -> Claim:
    """Return the claim of (ε, δ)-DP and nothing more."""
    return Claim("(ε, δ)-DP", delta, lambda epsilon: approximate_curve(epsilon, delta), "approximate")


@lru_cache
def gaussian_dp(delta: float) -> Claim:
    """Return the claim of μ-GDP: composed Gaussian noise without sampling. ε is the value for μ at ``delta`` > 0."""
    return Claim("Gaussian DP", delta, lambda epsilon: _gaussian(epsilon, delta), "gaussian")


def own_curves(name: str, delta: float, tpr: Callable[[float], Callable[[np.ndarray], np.ndarray]]) -> Claim:
    """Return the claim of exactly one mechanism, which would have a larger curve with less noise.

    Args:
        name: of the claim.
        delta: at which ε is read off the curves, in (0, 1).
        tpr: strength > 0 → (FPR (n,) → largest TPR (n,)). Strength 1 is the claim, and 2 has half of its noise.
    """

    @lru_cache(maxsize=64)
    def curve(strength: float) -> Curve:
        return sampled(tpr(strength)) if strength > 0 else DIAGONAL

    @lru_cache(maxsize=64)
    def epsilon(strength: float) -> float:
        return sampled_epsilon(tpr(strength), delta) if strength > 0 else 0.0

    return Claim(name, delta, curve, "curve", epsilon, COARSE, LEAST_NOISE)


@lru_cache(maxsize=256)
def _gaussian(epsilon: float, delta: float) -> Curve:
    return gaussian_curve(gaussian_mu(epsilon, delta))


def gaussian_delta(mu: float, epsilon: float) -> float:
    """Return the least δ at which the Gaussian mechanism with μ > 0 is (ε, δ)-DP (Dong, Roth & Su 2022,
    corollary 2.13).
    """
    return float(ndtr(-epsilon / mu + mu / 2) - np.exp(epsilon + log_ndtr(-epsilon / mu - mu / 2)))


def gaussian_mu(epsilon: float, delta: float) -> float:
    """Return μ of the Gaussian mechanism that is exactly (ε, δ)-DP, δ in (0, 1)."""
    high = 1.0
    while gaussian_delta(high, epsilon) < delta:
        high *= 2
    return float(brentq(lambda mu: gaussian_delta(mu, epsilon) - delta, 1e-12, high, xtol=1e-14, rtol=1e-12))


def gaussian_epsilon(mu: float, delta: float) -> float:
    """Return ε ≥ 0 of the Gaussian mechanism with μ ≥ 0 at δ in (0, 1); infinite for an infinite μ."""
    if mu == 0 or gaussian_delta(mu, 0.0) <= delta:
        return 0.0
    if np.isinf(mu):
        return float("inf")
    high = 1.0
    while gaussian_delta(mu, high) > delta:
        high *= 2
    return float(brentq(lambda epsilon: gaussian_delta(mu, epsilon) - delta, 0.0, high, xtol=1e-12, rtol=1e-12))
