"""What dp-accounting computes: exact Gaussian composition, and privacy loss distributions."""

from math import inf, sqrt

import numpy as np

from dp_leakage.privacy.accounting import renyi

FINEST = 1e-6  # grid spacing below which the library's rounding shows in δ
GRIDS = (1e3, 4e3, 1.6e4, 6.4e4)  # points per ε, tried in turn
MOST_POINTS = 150_000  # in one step's distribution; the library takes some 4 µs for each
AGREEMENT = 2e-4
HUGE = 1e5  # an ε for which a grid would be so coarse that the library overflows
ROUNDING = 1e-13  # of δ in the library's Fourier transforms, on the safe side


def gaussian_epsilon(sigma: float, delta: float, uses: int) -> float:
    """Exact ε of ``uses`` Gaussian mechanisms without sampling: one with σ/√uses (Balle & Wang 2018).

    σ is relative to how far neighbouring data sets' sums can lie apart.
    """
    from dp_accounting import get_epsilon_gaussian

    with np.errstate(divide="ignore"):  # ln 0 on the way, which the library takes care of
        return float(get_epsilon_gaussian(sigma / sqrt(uses), delta))


def gaussian_sigma(epsilon: float, delta: float, uses: int) -> float:
    """The inverse of ``gaussian_epsilon``."""
    from dp_accounting import get_sigma_gaussian

    return float(get_sigma_gaussian(epsilon, delta) * sqrt(uses))


def pld_epsilon(rate: float, sigma: float, delta: float, steps: int, neighbours: str, beside: float = 0.0) -> float:
    """ε of the Poisson-sampled Gaussian from its privacy loss distribution; a bound, tight to about 1e-3.

    The library rounds losses up to a grid, so every grid gives a bound. The grid starts at a thousandth of
    the Rényi bound and is refined until ε settles, at a cost of about a second at most; the result is the
    least bound, the Rényi bound included.

    Args:
        rate: q in (0, 1].
        sigma: relative to the clipping norm, also for ``replace_one``.
        delta: in (0, 1).
        steps: T.
        neighbours: ``add_remove`` or ``replace_one``.
        beside: ρ = Δ²/2σ² ≥ 0 of a Gaussian mechanism without sampling that is composed with the steps.
    """
    from dp_accounting import NeighboringRelation
    from dp_accounting.pld.privacy_loss_distribution import from_gaussian_mechanism

    relation = {
        "add_remove": NeighboringRelation.ADD_OR_REMOVE_ONE,
        "replace_one": NeighboringRelation.REPLACE_ONE,
    }[neighbours]
    replace = neighbours == "replace_one"
    apart = 2 if replace else 1
    best = bound = renyi.sampled_gaussian_epsilon(rate, sigma / apart, replace, steps, delta, "tight", beside)
    if bound == 0 or bound > HUGE or delta <= 2 * ROUNDING:
        return bound
    finest = max(FINEST, _largest_loss(rate, sigma / apart) / MOST_POINTS)
    previous = inf
    for points in GRIDS:
        spacing = max(bound / points, finest)
        step = from_gaussian_mechanism(
            sigma,
            value_discretization_interval=spacing,
            sampling_prob=rate,
            neighboring_relation=relation,
        )
        with np.errstate(all="ignore"):  # infinite losses, of which the library takes care
            total = step.self_compose(steps)
            if beside:
                total = total.compose(
                    from_gaussian_mechanism(sqrt(0.5 / beside), value_discretization_interval=spacing)
                )
            epsilon = total.get_epsilon_for_delta(delta - ROUNDING)
        best = min(best, epsilon)
        if abs(previous - epsilon) <= AGREEMENT * epsilon or spacing == finest:
            break
        previous = epsilon
    return float(best)


def _largest_loss(rate: float, sigma: float) -> float:
    """The largest loss of one step that the library resolves: ten standard deviations out, 1e-22 of the mass."""
    return float(np.logaddexp(0.0, np.log(rate) + (10 + 0.5 / sigma) / sigma))
