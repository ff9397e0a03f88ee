"""Accounting for von Mises–Fisher noise, which no library has.

A draw around the unit vector μ in Rᵈ has density C_d(κ) e^{κ⟨μ,x⟩}. Around μ' it differs by a factor of at
most e^{κ‖μ−μ'‖} ≤ e^{2κ}: pure 2κ-DP for replacing μ. m independent blocks cost 2κm (directional2023's
corollary 1 says 2κ√m, which is wrong: take antipodal vectors in every block).
"""

from collections import Counter
from functools import lru_cache
from math import exp, expm1, log, log1p

import numpy as np

from dp_leakage.privacy.accounting import losses
from dp_leakage.privacy.accounting.case import Case
from dp_leakage.privacy.accounting.losses import FINEST, LARGEST, MOST_POINTS, NOTHING, How, Pair
from dp_leakage.privacy.accounting.renyi import epsilon_from_renyi
from dp_leakage.privacy.accounting.sampling import any_unit, poisson_unit, whole_orders, wor_unit

RECURRENCE = 100  # steps; an even number makes A_d an upper bound, right to 1e-6 or better
ORDERS = 1 + np.geomspace(1e-2, 1e5, 400)
RESOLVED = 32  # points of a grid in a block's typical loss
SHARPEST = 2e10  # κ + d beyond which a draw's distribution would need millions of nodes
PANELS = 2  # Gauss rules over the width of a draw's distribution
_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(8)


def pure_epsilon(kappa: float, case: Case) -> float:
    """Return ε = 2κm for each step that a unit can take part in, δ = 0; always a bound.

    Neighbors: replace_one; add_remove too for Poisson batches of summed gradients. If the batch without the unit is
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
    """Return ε from the closed-form Rényi divergence, composed and converted; at most ``pure_epsilon``.

    Neighbors and amplification: any sampler, replace_one: the step's divergence D becomes at most ln(1 − q + q
    e^{(α−1)D})/(α−1) by joint convexity, since with probability 1−q the two data sets' batches are the same. If
    shuffled, each unit is in one batch an epoch. ``wor``, replace_one: also the bound of Wang, Balle & Kasiviswanathan
    (2019), theorem 9. ``poisson``, add_remove, summed gradients only: the binomial expansion (Zhu & Wang 2019; Mironov,
    Talwar & Zhang 2019), in which the reverse direction is the smaller one because a reflection swaps the two draws.
    """
    if kappa == 0:
        return 0.0
    spent = [epsilon_from_renyi(o, case.uses * d, case.delta, case.conversion) for o, d in divergences(kappa, case)]
    return min([pure_epsilon(kappa, case), *spent])


def pld_epsilon(kappa: float, case: Case) -> float:
    """ε from the privacy loss distribution of the worst pair (``worst_pair``), composed; at most ``renyi_epsilon``.

    Neighbors and amplification: see ``sampled_how``.
    """
    bound = renyi_epsilon(kappa, case)
    if bound == 0:
        return bound
    rate, how = sampled_how(case)
    pair = worst_pair(kappa, case.blocks)
    return bound if pair is None else min(bound, losses.epsilon(pair, rate, how, case.uses, case.delta))


def loss_profile(kappa: float, case: Case, beside: float) -> tuple[np.ndarray, np.ndarray] | None:
    """Return δ(ε) of the training, κ > 0; arguments and result as for `losses.profile`."""
    rate, how = sampled_how(case)
    pair = worst_pair(kappa, case.blocks)
    return None if pair is None else losses.profile(pair, rate, how, case.uses, beside)


def sampled_how(case: Case) -> tuple[float, How]:
    """Return a unit's probability of being in a step, and how sampling amplifies the step: see `losses.one_step`.

    Shuffled: each unit is in one batch per epoch, which is not amplified. Fixed size: another unit takes the unit's
    place, so the step without the unit is also dominated by the pair. The same holds for summed gradients in Poisson
    batches, because an empty sum also has a direction. Otherwise the output reveals the absence of the unit.
    """
    if case.sampler == "shuffle":
        return 1.0, "shown"
    if case.neighbors == "add_remove" and case.rate < 1:
        return case.rate, "added"
    return case.rate, "replaced" if case.sampler == "wor" or case.summed else "shown"


def divergences(kappa: float, case: Case) -> list[tuple[np.ndarray, np.ndarray]]:
    """Return bounds on one step's divergence as (orders, divergence), κ > 0; ``renyi_epsilon`` names their sources."""
    return _step_bounds(kappa, case.rate, case.sampler, case.neighbors, case.blocks)


def printed_epsilon(kappa: float) -> float:
    """Return ε = 2κ: directional2023's budget "in each update", for one unit vector (corollary 2)."""
    return 2 * kappa


def vmf_divergence(dimension: int, kappa: float, orders: np.ndarray) -> np.ndarray:
    """Return the Rényi divergence between draws around antipodal vectors, the worst pair.

    ∫ p^α q^{1−α} = C_d(κ)/C_d(κr) with r = ‖αμ + (1−α)μ'‖ ≤ 2α−1, and d ln C_d(t)/dt = −A_d(t), so
    D_α = 1/(α−1) · ∫ A_d(t) dt from κ to κ(2α−1). The difference of two ln C_d would lose all digits at
    large d; the integral of the positive, smooth A_d loses none: eight Gauss nodes between neighboring
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
    """Return A_d(t) = I_{d/2}(t)/I_{d/2−1}(t), never below it, for d from 2 to 1e6 and t from 0 to 1e10.

    By the recurrence A_ν = t/(2ν + t A_{ν+1}), in descending order, from Amos' (1974) upper bound
    t/(ν − ½ + √((ν−½)² + t²)): each step reverses the side of the error and shrinks it.
    """
    nu = dimension / 2 + RECURRENCE
    ratio = t / (nu - 0.5 + np.hypot(nu - 0.5, t))
    for k in range(RECURRENCE - 1, -1, -1):
        ratio = t / (dimension + 2 * k + t * ratio)
    return ratio


def vmf_pair(dimension: int, kappa: float) -> Pair:
    """Return the losses between draws around antipodal vectors, the worst pair at every ε, from either side.

    For unit vectors μ, μ' the loss κ⟨μ − μ', x⟩ exceeds ε on a cap around e, the direction of μ − μ'. If the two move
    further apart along the same circle, μ comes closer to e and μ' leaves it. A draw falls into a cap around e the more
    often, the closer its mean is to e: reflect one mean to the other, and of each two mirrored points the one on the
    side of the closer mean is both the likelier for it and the closer to e. So the divergence E_e^ε, the maximum of
    P(S) − e^ε Q(S) over sets S, which this cap attains, grows with the angle up to π.

    There the loss is 2κt with t = ⟨μ, x⟩ = sin φ. The angle φ has a density in proportion to e^{κ sin φ} cos^{d−2} φ,
    which is analytic: eight Gauss nodes between neighboring angles leave rounding alone.

    Args:
        dimension: d ≥ 2.
        kappa: κ > 0.
    """

    def log_density(angle: np.ndarray) -> np.ndarray:
        sine = np.sin(angle)
        if dimension == 2:
            return kappa * sine
        with np.errstate(divide="ignore"):
            return kappa * sine + (dimension - 2) / 2 * np.log1p(-sine * sine)

    half = dimension / 2 - 1
    peak = log_density(np.arcsin(kappa / (half + np.hypot(half, kappa))))
    panels = np.linspace(-np.pi / 2, np.pi / 2, int(np.pi * PANELS * np.sqrt(kappa + dimension)) + 2)

    def within(angles: np.ndarray) -> np.ndarray:
        """Return the mass between neighboring angles, times a constant."""
        width = np.diff(angles) / 2
        nodes = angles[:-1, None] + width[:, None] * (1 + _NODES)
        with np.errstate(under="ignore"):
            return width * (np.exp(log_density(nodes) - peak) @ _WEIGHTS)

    mass = within(panels)
    total = mass.sum()
    above = np.cumsum(mass[::-1])[::-1] > NOTHING * total
    reach = 2 * kappa * float(np.sin(panels[1:][above][-1]))

    def of_p(limits: np.ndarray) -> np.ndarray:
        ends = np.arcsin(np.clip(limits / (2 * kappa), -1, 1))
        angles = np.union1d(panels, ends)
        cell = np.searchsorted(ends, angles[1:], side="left") - 1
        inside = (cell >= 0) & (cell < len(ends) - 1)
        return np.bincount(cell[inside], within(angles)[inside], len(ends) - 1) / total

    def masses(limits: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        return of_p(limits), of_p(-limits[::-1])[::-1]

    return Pair(masses, reach)


@lru_cache(maxsize=8)
def worst_pair(kappa: float, blocks: tuple[int, ...]) -> Pair | None:
    """Return the losses of one step between antipodal vectors in every block, with independent noise.

    Args:
        kappa: κ > 0.
        blocks: the dimension of each unit vector, at least one.

    Returns:
        None if the losses are too small, or the distributions too sharp, for a grid.
    """
    if kappa + max(blocks) > SHARPEST:
        return None
    counts = Counter(blocks)
    pairs = {dimension: vmf_pair(dimension, kappa) for dimension in counts}
    if len(blocks) == 1:
        return pairs[blocks[0]]
    largest = max(pair.reach for pair in pairs.values())
    if largest < FINEST * RESOLVED:
        return None
    square = sum(count * losses.variance(pairs[d]) for d, count in counts.items()) / len(blocks)
    spacing = max(square**0.5 / RESOLVED, min(largest, LARGEST) / MOST_POINTS)
    if spacing < FINEST:
        return None
    product = None
    for dimension, count in counts.items():
        (one,) = losses.one_step(pairs[dimension], 1.0, "shown", spacing)
        part = one.repeated(count)
        if part is None:
            return None
        product = part if product is None else product.plus(part)
    return None if product is None else losses.on_grid(product)


@lru_cache(maxsize=64)
def _step_bounds(
    kappa: float, rate: float, sampler: str, neighbors: str, blocks: tuple[int, ...]
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
    if neighbors == "add_remove":
        bounds.append((whole, poisson_unit(rate, whole, divergence)))
    elif sampler == "wor":
        bounds.append((whole, wor_unit(rate, whole, divergence, 2 * kappa * len(blocks))))
    return bounds
