"""Accounting for von Mises–Fisher noise, which no library has.

A draw around the unit vector μ in Rᵈ has density C_d(κ) e^{κ⟨μ,x⟩}. Around μ' it differs by a factor of at
most e^{κ‖μ−μ'‖} ≤ e^{2κ}: pure 2κ-DP for replacing μ. m independent blocks cost 2κm (directional2023's
corollary 1 says 2κ√m, which is wrong: take antipodal vectors in every block).
"""

from collections import Counter
from functools import lru_cache
from math import exp, expm1, log, log1p

import numpy as np

from dp_leakage.privacy.accounting.case import Case
from dp_leakage.privacy.accounting.renyi import epsilon_from_renyi
from dp_leakage.privacy.accounting.sampling import any_unit, poisson_unit, whole_orders, wor_unit

RECURRENCE = 100  # steps; an even number makes A_d an upper bound, right to 1e-6 or better
ORDERS = 1 + np.geomspace(1e-2, 1e5, 400)
_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(8)


def pure_epsilon(kappa: float, case: Case) -> float:
    """ε = 2κm for each step that a unit can take part in, δ = 0; always a bound.

    Neighbours: replace_one; add_remove too for Poisson batches of summed gradients. If the batch without the unit is
    within 2κm, sampling amplifies a step to ln(1 + q(e^{2κm} − 1)) (Balle, Barthe & Gaboardi 2018). That is always so
    without replacement, since another unit is in its place. Under Poisson sampling it is so only for summed gradients,
    since otherwise the unit's presence in a batch shows.
    """
    step = 2 * kappa * len(case.blocks)
    if case.sampler == "wor" or (case.sampler == "poisson" and case.summed):
        q = case.rate
        step = log1p(q * expm1(step)) if step < 1 else step + log(q + (1 - q) * exp(-step))
    return case.uses * step


def renyi_epsilon(kappa: float, case: Case) -> float:
    """ε from the closed-form Rényi divergence, composed and converted; at most ``pure_epsilon``.

    Neighbours and amplification: any sampler, replace_one: the step's divergence D becomes at most ln(1 − q + q
    e^{(α−1)D})/(α−1) by joint convexity, since with probability 1−q the two data sets' batches are the same. If
    shuffled, each unit is in one batch an epoch. ``wor``, replace_one: also the bound of Wang, Balle & Kasiviswanathan
    (2019), theorem 9. ``poisson``, add_remove, summed gradients only: the binomial expansion (Zhu & Wang 2019; Mironov,
    Talwar & Zhang 2019), in which the reverse direction is the smaller one because a reflection swaps the two draws.
    """
    if kappa == 0:
        return 0.0
    spent = [epsilon_from_renyi(o, case.uses * d, case.delta, case.conversion) for o, d in divergences(kappa, case)]
    return min([pure_epsilon(kappa, case), *spent])


def divergences(kappa: float, case: Case) -> list[tuple[np.ndarray, np.ndarray]]:
    """Bounds on one step's divergence as (orders, divergence), κ > 0; ``renyi_epsilon`` names their sources."""
    return _step_bounds(kappa, case.rate, case.sampler, case.neighbours, case.blocks)


def printed_epsilon(kappa: float) -> float:
    """ε = 2κ: directional2023's budget "in each update", for one unit vector (corollary 2)."""
    return 2 * kappa


def vmf_divergence(dimension: int, kappa: float, orders: np.ndarray) -> np.ndarray:
    """Rényi divergence between draws around antipodal vectors, the worst pair.

    ∫ p^α q^{1−α} = C_d(κ)/C_d(κr) with r = ‖αμ + (1−α)μ'‖ ≤ 2α−1, and d ln C_d(t)/dt = −A_d(t), so
    D_α = 1/(α−1) · ∫ A_d(t) dt from κ to κ(2α−1). The difference of two ln C_d would lose all digits at
    large d; the integral of the positive, smooth A_d loses none: eight Gauss nodes between neighbouring
    orders.

    Args:
        dimension: d ≥ 2.
        kappa: κ ≥ 0.
        orders: float64 (n,), each > 1.

    Returns:
        float64 (n,), at most 2κ.
    """
    panels = np.union1d(ORDERS[orders.max() > ORDERS], orders)
    ends = kappa * (2 * panels - 1)
    starts = np.concatenate(([kappa], ends[:-1]))
    half = (ends - starts) / 2
    nodes = starts[:, None] + half[:, None] * (1 + _NODES)
    integral = np.cumsum(half * (bessel_ratio(dimension, nodes) @ _WEIGHTS))
    return integral[np.searchsorted(panels, orders)] / (orders - 1)


def bessel_ratio(dimension: int, t: np.ndarray) -> np.ndarray:
    """A_d(t) = I_{d/2}(t)/I_{d/2−1}(t), never below it, for d from 2 to 1e6 and t from 0 to 1e10.

    By the recurrence A_ν = t/(2ν + t A_{ν+1}), in descending order, from Amos' (1974) upper bound
    t/(ν − ½ + √((ν−½)² + t²)): each step reverses the side of the error and shrinks it.
    """
    nu = dimension / 2 + RECURRENCE
    ratio = t / (nu - 0.5 + np.hypot(nu - 0.5, t))
    for k in range(RECURRENCE - 1, -1, -1):
        ratio = t / (dimension + 2 * k + t * ratio)
    return ratio


@lru_cache(maxsize=64)
def _step_bounds(
    kappa: float, rate: float, sampler: str, neighbours: str, blocks: tuple[int, ...]
) -> list[tuple[np.ndarray, np.ndarray]]:
    """Orders, and bounds on one step's divergence at these orders. Each bound is the smallest one at some orders."""
    dimensions = Counter(blocks)

    def divergence(orders: np.ndarray) -> np.ndarray:
        each = (count * vmf_divergence(d, kappa, orders) for d, count in dimensions.items())
        return sum(each, np.zeros_like(orders, dtype=np.float64))

    if sampler == "shuffle":
        return [(ORDERS, divergence(ORDERS))]
    bounds = [(ORDERS, any_unit(rate, ORDERS, divergence(ORDERS)))]
    whole = whole_orders(2**10)
    if neighbours == "add_remove":
        bounds.append((whole, poisson_unit(rate, whole, divergence)))
    elif sampler == "wor":
        bounds.append((whole, wor_unit(rate, whole, divergence, 2 * kappa * len(blocks))))
    return bounds
