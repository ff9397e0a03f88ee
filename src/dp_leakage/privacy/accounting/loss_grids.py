"""Privacy loss distribution of one sampled Gaussian step on a grid, equal to dp-accounting's.

The library solves for each loss separately, in Python, which takes nine tenths of its time. Here all losses are solved
at once; everything else is the library's.
"""

from math import ceil, exp, floor, inf, log, log1p
from typing import Any

import numpy as np


def gaussian_step(sigma: float, spacing: float, rate: float = 1.0, *, replaced: bool = False) -> Any:
    """Return the distribution of one step's privacy loss, rounded up to a grid by connected dots (Doroshenko et al.
    2022).

    Args:
        sigma: relative to the clipping norm, > 0.
        spacing: of the grid of losses, > 0.
        rate: q of Poisson sampling, in (0, 1]; 1: no sampling.
        replaced: replace_one neighbors; otherwise add_remove.

    Returns:
        A `dp_accounting` ``PrivacyLossDistribution``, equal to that of its ``from_gaussian_mechanism``.
    """
    from dp_accounting.pld.privacy_loss_distribution import PrivacyLossDistribution
    from dp_accounting.pld.privacy_loss_mechanism import AdjacencyType

    if replaced:
        return PrivacyLossDistribution(_on_grid(sigma, spacing, rate, AdjacencyType.REPLACE))
    removed = _on_grid(sigma, spacing, rate, AdjacencyType.REMOVE)
    if rate == 1:
        return PrivacyLossDistribution(removed)
    return PrivacyLossDistribution(removed, _on_grid(sigma, spacing, rate, AdjacencyType.ADD))


def masses(total: Any) -> list[np.ndarray]:
    """Return a `dp_accounting` ``PrivacyLossDistribution``'s masses at finite losses, of each direction,
    float64 (n,).
    """
    found = [getattr(total, name).to_dense_pmf()._probs for name in ("_pmf_remove", "_pmf_add")]
    return [np.asarray(p) for p in found]


def _on_grid(sigma: float, spacing: float, rate: float, direction: Any) -> Any:
    from dp_accounting.pld.pld_pmf import create_pmf_pessimistic_connect_dots_fixed_gap
    from dp_accounting.pld.privacy_loss_mechanism import GaussianPrivacyLoss

    pair = GaussianPrivacyLoss(sigma, sampling_prob=rate, adjacency_type=direction)
    bounds = pair.connect_dots_bounds()
    first, last = floor(bounds.epsilon_lower / spacing), ceil(bounds.epsilon_upper / spacing)
    epsilon = np.arange(first, last + 1) * spacing
    with np.errstate(all="ignore"):  # losses that are never reached, or always
        delta = np.zeros_like(epsilon) if direction.name == "ADD" else -np.expm1(epsilon)
        inside, reached = _reached(epsilon, sigma, rate, direction.name)
        delta[inside] = pair.mu_upper_cdf(reached) - np.exp(epsilon[inside] + pair.mu_lower_log_cdf(reached))
    return create_pmf_pessimistic_connect_dots_fixed_gap(spacing, first, last, np.clip(delta, 0, 1))


def _reached(epsilon: np.ndarray, sigma: float, rate: float, direction: str) -> tuple[np.ndarray, np.ndarray]:
    """Return which losses ε occur at all, and the largest output of each; losses decrease as outputs increase."""
    if direction == "REPLACE":
        return np.ones(len(epsilon), dtype=bool), _reached_by_replacing(epsilon, sigma, rate)
    sign = 1 if direction == "REMOVE" else -1
    loss = sign * epsilon
    inside = np.ones(len(loss), dtype=bool) if rate == 1 else loss > log1p(-rate)
    unsampled = loss = loss[inside]
    if rate < 1:  # ln(1 + (e^loss − 1) / q), in the library's order of operations
        scaled = loss + np.log(1 / rate)
        unsampled = scaled + np.log1p(-np.exp(np.log(1 / rate - 1) - scaled))
        unsampled[loss == 0] = np.log(1 / rate + (1 - 1 / rate))
        unsampled[np.isclose(loss, log(1 - rate), rtol=1e-9, atol=0)] = -np.inf
    reached = -0.5 - sign * unsampled * sigma**2
    return inside, reached if sign == 1 else 1 + reached


def _reached_by_replacing(epsilon: np.ndarray, sigma: float, rate: float) -> np.ndarray:
    """As `_reached` for the pair (1−q) N(0) + q N(−1), (1−q) N(0) + q N(1)."""
    if rate == 1:
        return -epsilon * sigma**2 / 2
    size = np.abs(epsilon) / 2
    # As the library, by Python's own functions: NumPy's differ in the last bit.
    log_sinh = size + [log1p(-exp(-2 * half)) if half else -inf for half in size.tolist()] - log(2)
    scaled = 0.5 * (1 / sigma) ** 2 + log1p(-rate) - log(rate) + log_sinh
    asinh = -np.sign(epsilon) * np.logaddexp(0.5 * np.logaddexp(0, 2 * scaled), scaled)
    return sigma**2 * (np.where(epsilon == 0, 0.0, asinh) - epsilon / 2)
