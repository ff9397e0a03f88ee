"""ε and trade-off curve of a training as it ran, for each neighboring relation."""

from collections import Counter
from collections.abc import Sequence
from math import exp, inf
from typing import Any, Literal, NamedTuple

import numpy as np

from dp_leakage.privacy.accounting import library, tradeoff
from dp_leakage.privacy.accounting.loss_grids import gaussian_step
from dp_leakage.privacy.accounting.tradeoff import TradeOff

Relation = Literal["add_remove", "replace_one"]
MOST_GROUPS = 32  # different steps; of more the noise is rounded down, which is safe
SPACING, MOST_POINTS = 1e-3, 150_000  # of the loss grid of steps that differ
HEADS = 401  # points of δ(ε) of steps that differ


class Steps(NamedTuple):
    """A number of equal steps.

    Attributes:
        noise_multiplier: σ, relative to the clipping norm, > 0.
        rate: of Poisson sampling, in (0, 1].
        number: of steps, ≥ 1.
    """

    noise_multiplier: float
    rate: float
    number: int


def grouped(steps: Sequence[tuple[float, float]]) -> list[Steps]:
    """Group steps (σ, q) that are equal, into at most `MOST_GROUPS` and never with more noise."""
    if len({round(sigma, 9) for sigma, _ in steps}) > MOST_GROUPS:
        levels = np.quantile([sigma for sigma, _ in steps], np.linspace(0, 1, MOST_GROUPS))
        lower = [float(levels[max(int(np.searchsorted(levels, sigma, "right")) - 1, 0)]) for sigma, _ in steps]
        steps = [(sigma, rate) for sigma, (_, rate) in zip(lower, steps, strict=True)]
    counts = Counter((round(sigma, 9), rate) for sigma, rate in steps)
    return [Steps(sigma, rate, count) for (sigma, rate), count in counts.items()]


def epsilon_of(groups: Sequence[Steps], delta: float, relation: Relation) -> float:
    """Return ε of Poisson-sampled Gaussian steps at δ in (0, 1), from their privacy loss distribution: an upper bound.

    ``add_remove`` is also the ε of ``zero_out``. Infinite if a step has no noise.
    """
    if any(group.noise_multiplier <= 0 for group in groups):
        return inf
    if len(groups) == 1:
        sigma, rate, count = groups[0]
        return float(library.pld_epsilon(rate, sigma, delta, count, relation))
    return float(_composed(groups, relation).get_epsilon_for_delta(delta))


def curve_of(groups: Sequence[Steps], relation: Relation) -> TradeOff | None:
    """Return the largest TPR of any attack at each FPR; None if a step has no noise or no grid fits its losses."""
    if any(group.noise_multiplier <= 0 for group in groups):
        return None
    if len(groups) == 1:
        sigma, rate, count = groups[0]
        apart = 2 if relation == "replace_one" else 1
        if rate == 1:
            return tradeoff.gaussian(apart * count**0.5 / sigma)
        profile = library.loss_profile(rate, sigma / apart, relation == "replace_one", count)
        return tradeoff.profile(*profile) if profile else None
    total = _composed(groups, relation)
    epsilons = 20 * np.linspace(0, 1, HEADS) ** 2
    return tradeoff.profile(epsilons, [min(total.get_delta_for_epsilon(float(e)), 1.0) for e in epsilons])


def unamplified(noise_multiplier: float, uses: int, delta: float, relation: Relation) -> float:
    """Return the ε of a record that takes part in ``uses`` steps, for an observer who knows all batches."""
    if noise_multiplier <= 0:
        return inf
    return library.gaussian_epsilon(noise_multiplier / (2 if relation == "replace_one" else 1), delta, max(uses, 1))


def recounted(accountant: Any, groups: Sequence[Steps], delta: float) -> float:
    """Return the ε of these steps by an accountant of Opacus."""
    other = type(accountant)()
    other.history = [tuple(group) for group in groups]
    return float(other.get_epsilon(delta))


def _composed(groups: Sequence[Steps], relation: Relation) -> Any:
    largest = max(float(np.log1p(rate * (exp(min((10 + 0.5 / s) / s, 700.0)) - 1))) for s, rate, _ in groups)
    spacing, total = max(SPACING, largest / MOST_POINTS), None
    with np.errstate(all="ignore"):  # infinite losses, which the library handles
        for sigma, rate, count in groups:
            part = gaussian_step(sigma, spacing, rate, replaced=relation == "replace_one").self_compose(count)
            total = part if total is None else total.compose(part)
    return total
