"""Effect of sampling on a step's Rényi divergence, for any noise.

q is the unit's probability of being in the batch, D_α the divergence of a step whose batch contains the unit.
"""

from collections.abc import Callable
from functools import cache

import numpy as np

Divergence = Callable[[np.ndarray], np.ndarray]


def any_unit(rate: float, orders: np.ndarray, divergence: np.ndarray) -> np.ndarray:
    """Return ln(1 − q + q e^{(α−1)D})/(α−1): joint convexity, for any way to draw batches and any real order.

    Neighbors: replace_one; also add_remove if the steps with and without the unit are at most D apart.
    """
    exponent = (orders - 1) * divergence
    small = exponent < 1
    near = np.log1p(rate * np.expm1(np.where(small, exponent, 0.0)))
    with np.errstate(under="ignore"):
        far = exponent + np.log(rate + (1 - rate) * np.exp(-exponent))
    return np.where(small, near, far) / (orders - 1)


def poisson_unit(rate: float, orders: np.ndarray, divergence: Divergence) -> np.ndarray:
    """Return ln Σ C(α,j) q^j (1−q)^{α−j} e^{(j−1)D_j} / (α−1) at whole orders: Poisson sampling, add_remove.

    The exact divergence of (1−q) P + q Q from P if D_j is the divergence of Q from P (Zhu & Wang 2019, theorem 6), and
    the larger of the two directions if an involution swaps P and Q (Mironov, Talwar & Zhang 2019, theorem 5).
    """
    log_moments = _log_moments(orders, divergence)
    weights = _log_binomials(orders) + _powers(rate, orders) + _powers(1 - rate, orders, reverse=True)
    # The weights over j ≥ 0 sum to 1, so Σ weight·(e^… − 1) is the excess over 1.
    return _log_one_plus_sum(weights + _log_expm1(log_moments)) / (orders - 1)


def wor_unit(rate: float, orders: np.ndarray, divergence: Divergence, pure: float) -> np.ndarray:
    """Bound the divergence for a fixed-size batch without replacement, replace_one (Wang, Balle & Kasiviswanathan 2019,
    theorem 9).

    ln(1 + q² C(α,2) min{4 (e^{D_2}−1), e^{D_2} min{2, (e^{D_∞}−1)²}} + Σ_{j≥3} q^j C(α,j) e^{(j−1)D_j} min{2,
    (e^{D_∞}−1)^j}) / (α−1) at whole orders; ``pure`` is D_∞, which may be infinite.
    """
    log_moments = _log_moments(orders, divergence)
    j = np.arange(2, log_moments.size + 2)
    terms = log_moments + np.minimum(np.log(2), j * _log_expm1(pure))
    terms[0] = min(terms[0], np.log(4) + _log_expm1(log_moments[0]))
    return _log_one_plus_sum(_log_binomials(orders) + _powers(rate, orders) + terms) / (orders - 1)


@cache
def whole_orders(top: int) -> np.ndarray:
    """Whole orders from 2 to ``top`` ≥ 128: each up to 128, then in steps of about 1 %."""
    sparse = np.geomspace(128, top, int(np.log(top / 128) / 0.01) + 1)
    return np.union1d(np.arange(2, 129), np.round(sparse)).astype(float)


def _log_expm1(x: np.ndarray | float) -> np.ndarray:
    """ln(e^x − 1) for x > 0, without overflow."""
    return x + np.log(-np.expm1(-x))


def _log_moments(orders: np.ndarray, divergence: Divergence) -> np.ndarray:
    """(j−1) D_j for j = 2 … the largest order."""
    j = np.arange(2.0, orders.max() + 1)
    return (j - 1) * divergence(j)


def _log_binomials(orders: np.ndarray) -> np.ndarray:
    """ln C(α, j) for each order α (rows) and j = 2 … (columns); −inf beyond α."""
    log_factorial = np.concatenate(([0.0], np.cumsum(np.log(np.arange(1, orders.max() + 1)))))
    alpha = orders.astype(int)[:, None]
    j = np.arange(2, alpha.max() + 1)
    rest = np.maximum(alpha - j, 0)
    return np.where(j <= alpha, log_factorial[alpha] - log_factorial[j] - log_factorial[rest], -np.inf)


def _powers(base: float, orders: np.ndarray, reverse: bool = False) -> np.ndarray:
    """ln base^j, or with ``reverse`` ln base^{α−j}, in the layout of ``_log_binomials``."""
    alpha = orders[:, None]
    j = np.arange(2, orders.max() + 1)
    power = np.maximum(alpha - j, 0) if reverse else j[None, :]
    return np.where(power > 0, power * np.log(base), 0.0) if base > 0 else np.where(power > 0, -np.inf, 0.0)


def _log_one_plus_sum(log_terms: np.ndarray) -> np.ndarray:
    """Return ln(1 + Σ e^term) over the last axis, accurate for small sums."""
    top = log_terms.max(axis=-1)
    with np.errstate(under="ignore"):
        log_sum = top + np.log(np.exp(log_terms - top[..., None]).sum(axis=-1))
    return np.logaddexp(0.0, log_sum)
