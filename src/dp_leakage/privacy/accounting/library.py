"""Functions of dp-accounting: exact Gaussian composition, and privacy loss distributions."""

from math import inf, sqrt
from typing import Any

import numpy as np

from dp_leakage.privacy.accounting import losses, renyi
from dp_leakage.privacy.accounting.loss_grids import gaussian_step, masses
from dp_leakage.privacy.accounting.losses import LINES, MOST_STEPS, VANISHED, rounding

FINEST = 1e-6  # grid spacing below which the library's rounding shows in δ
GRIDS = (1e3, 4e3, 1.6e4, 6.4e4)  # points per ε, tried in turn
MOST_POINTS = 150_000  # points in one step's distribution
AGREEMENT = 2e-4
HUGE = 1e5  # for this ε a grid would be so coarse that the library overflows
PER_STEP, MOST_TOTAL = (5_000, 40_000), 1_000_000  # points of a curve: for one step, tried in turn, and for all steps
HEAVY = 20.0  # relative variance of a step's likelihood ratio above which its losses have a heavy tail
ENDS = [float(1.3**k) for k in range(-52, 25)]  # candidates for those ε: from 1e-6 to 500
AT_ONCE = 1 << 16
"""The most steps that are composed at once. The library's range for a composition grows without limit with their
number; composed in turns, it stays near the distribution's own range.
"""
VAST = 1e8


def gaussian_epsilon(sigma: float, delta: float, uses: int) -> float:
    """Return the exact ε of ``uses`` Gaussian mechanisms without sampling: one with σ/√uses (Balle & Wang 2018).

    σ is relative to how far neighboring data sets' sums can lie apart.
    """
    from dp_accounting import get_epsilon_gaussian

    with np.errstate(divide="ignore"):  # silences an intermediate ln 0, which the library handles
        return float(get_epsilon_gaussian(sigma / sqrt(uses), delta))


def gaussian_sigma(epsilon: float, delta: float, uses: int) -> float:
    """Return the inverse of ``gaussian_epsilon``.

    For a vast ε the library's search returns NaN, so a safe asymptote is used: with μ = 1/σ, δ(ε) is at most Φ(μ/2 −
    ε/μ), so ε = μ²/2 + μ Φ⁻¹(1 − δ) suffices. From ``VAST`` on it is within 1e-6 of the exact value.
    """
    if epsilon > VAST:
        from scipy.special import ndtri

        quantile = -float(ndtri(delta))
        return sqrt(uses) / (sqrt(quantile**2 + 2 * epsilon) - quantile)
    from dp_accounting import get_sigma_gaussian

    with np.errstate(divide="ignore"):  # as above
        return float(get_sigma_gaussian(epsilon, delta) * sqrt(uses))


def pld_epsilon(rate: float, sigma: float, delta: float, steps: int, neighbors: str, beside: float = 0.0) -> float:
    """Return ε of the Poisson-sampled Gaussian from its privacy loss distribution; a bound, tight to about 1e-3.

    Without sampling (q = 1) it is the exact ε of ``gaussian_epsilon``.

    The library rounds losses up to a grid, so every grid gives a bound. The grid starts at a thousandth of the Rényi
    bound and is refined until ε settles, which takes about a second at most. The result is the least bound, including
    the Rényi bound.

    Args:
        rate: q in (0, 1].
        sigma: relative to the clipping norm, also for ``replace_one``.
        delta: in (0, 1).
        steps: T.
        neighbors: ``add_remove`` or ``replace_one``.
        beside: ρ = Δ²/2σ² ≥ 0 of a Gaussian mechanism without sampling that is composed with the steps.
    """
    replace = neighbors == "replace_one"
    apart = 2 if replace else 1
    if rate == 1:
        return gaussian_epsilon(1 / sqrt(steps * (apart / sigma) ** 2 + 2 * beside), delta, 1)
    best = bound = renyi.sampled_gaussian_epsilon(rate, sigma / apart, replace, steps, delta, "tight", beside)
    if bound == 0 or bound > HUGE or steps > MOST_STEPS:
        return bound
    finest = max(FINEST, _largest_loss(rate, sigma / apart) / MOST_POINTS)
    previous = inf
    for points in GRIDS:
        spacing = max(bound / points, finest)
        step = gaussian_step(sigma, spacing, rate, replaced=replace)
        with np.errstate(all="ignore"):  # infinite losses, which the library handles
            total = _composed(step, steps)
            if beside:
                total = total.compose(gaussian_step(sqrt(0.5 / beside), spacing))
            left = delta - _lost(total, steps)
            epsilon = total.get_epsilon_for_delta(left) if left > 0 else inf
        best = min(best, epsilon)
        if epsilon == inf or abs(previous - epsilon) <= AGREEMENT * epsilon or spacing == finest:
            break
        previous = epsilon
    return float(best)


def fixed_size_epsilon(rate: float, relative: float, delta: float, steps: int, beside: float = 0.0) -> float:
    """Return an upper bound on ε of Gaussian steps with fixed-size batches drawn without replacement; replace_one.

    From the privacy loss distribution of the pair in `losses.one_step`, and at most the Rényi bound.

    Args:
        rate: q in (0, 1].
        relative: σ relative to how far neighboring data sets' sums can lie apart, twice the clipping norm.
        delta, steps, beside: as for ``pld_epsilon``.
    """
    if rate == 1:
        return gaussian_epsilon(1 / sqrt(steps / relative**2 + 2 * beside), delta, 1)
    bound = renyi.sampled_gaussian_epsilon(rate, relative, True, steps, delta, "tight", beside)
    if bound == 0:
        return bound
    return min(bound, losses.epsilon(losses.gaussian(1 / relative), rate, "replaced", steps, delta, beside))


def loss_profile(
    rate: float, sigma: float, replaced: bool, steps: int, beside: float = 0.0
) -> tuple[np.ndarray, np.ndarray] | None:
    """Return δ(ε) ≥ 0 of the Poisson-sampled Gaussian in both directions, from its privacy loss distribution; never too
    small.

    The library connects the dots of the loss distribution (Doroshenko et al. 2022), so every grid gives a bound. This
    grid is a sixteenth of a step's typical loss, which changes the advantage by less than a thousandth and takes about
    0.1 s. For replace_one the pair (1−q) N(0) + q N(1), (1−q) N(0) + q N(−1) is the worst at every ε: if two vectors
    are not opposite, or are shorter, the region in which the likelihood ratio exceeds e^ε holds more of the other one.

    Args:
        rate: q in (0, 1).
        sigma: relative to how far neighboring data sets' sums lie apart if the unit is in the batch.
        replaced: replace_one neighbors; otherwise add_remove.
        steps, beside: as for ``pld_epsilon``.

    Returns:
        ε, float64 (n,), rising from 0, and δ, float64 (n,), at most 1; None if the losses are too large or too small
        for a grid, or there are too many steps.
    """
    largest, spread = _largest_loss(rate, sigma), float(np.expm1(min(sigma**-2, 50.0)))
    typical = rate * sqrt(spread)
    if largest > HUGE or typical < 4 * FINEST or steps > MOST_STEPS:
        return None
    reach = steps * rate * min(largest, spread) + beside  # at least the mean loss
    heavy = spread > HEAVY  # then a few draws have the typical loss, and the other losses are much smaller
    for points in PER_STEP if heavy else PER_STEP[:1]:
        wanted = min(typical / 16, largest / points) if heavy else typical / 16
        spacing = max(FINEST, wanted, (reach + 20 * sqrt(reach) + largest) / MOST_TOTAL)
        with np.errstate(all="ignore"):  # infinite losses, which the library handles
            step = gaussian_step((2 if replaced else 1) * sigma, spacing, rate, replaced=replaced)
            total = _composed(step, steps)
            if beside:
                total = total.compose(gaussian_step(sqrt(0.5 / beside), spacing))
            # One ε at a time, since the library handles many at once by a loop over all losses.
            top = next((e for e in ENDS if total.get_delta_for_epsilon(e) < VANISHED), ENDS[-1])
            epsilon = top * np.linspace(0.0, 1.0, LINES) ** 2  # closest where the curve bends
            delta = np.array([total.get_delta_for_epsilon(e) for e in epsilon.tolist()])
        if delta[0] > 0.99:
            break  # there is little to prove
    return epsilon, np.clip(delta + _lost(total, steps), 0.0, 1.0)


def _composed(step: Any, steps: int) -> Any:
    """Return ``steps`` ≥ 1 compositions of a privacy loss distribution, at most ``AT_ONCE`` at a time."""
    total = None
    while True:
        steps, here = divmod(steps, AT_ONCE)
        if here:
            part = step.self_compose(here)
            total = part if total is None else total.compose(part)
        if not steps:
            return total
        step = step.self_compose(AT_ONCE)


def _lost(total: Any, steps: int) -> float:
    """Bound the rounding error of any δ of a composition of this many steps and one further mechanism."""

    def of_one(p: np.ndarray) -> float:
        # The norm of one power less, by Hölder's inequality.
        norm = np.sqrt(len(p)) * np.linalg.norm(p) ** (1 - 1 / steps)
        return rounding(steps + 1, len(p), float(norm))

    return max(of_one(p) for p in masses(total))


def _largest_loss(rate: float, sigma: float) -> float:
    """Return the largest loss of one step that the library resolves: ten standard deviations out, where 1e-22 of
    the mass is left.
    """
    return float(np.logaddexp(0.0, np.log(rate) + (10 + 0.5 / sigma) / sigma))
