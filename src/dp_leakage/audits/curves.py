"""Trade-off curves as concave polygons: the largest true positive rate at each false positive rate.

A polygon represents a pair of distributions over finitely many outcomes, its sides. The slope of a side gives the odds
of "included" for that outcome. So an audit can compute everything about a claim from the sides.
"""

from collections.abc import Callable
from functools import cached_property

import numpy as np
from scipy.special import ndtr

TAIL, SPACING = 12.0, 0.01  # in deviations: where a Gaussian curve is cut off, and the distance of its points
# Rates at which a curve given as a function is evaluated, including small ones, where a large ε shows.
FPR = np.concatenate([
    [0.0], np.geomspace(1e-60, 1e-12, 1000), np.geomspace(1e-12, 0.1, 600)[1:], np.linspace(0.1, 0.9, 801)[1:-1],
    1 - np.geomspace(0.1, 1e-12, 600), [1.0],
])  # fmt: skip


class Curve:
    """A concave polygon from (0, t) to (1, 1).

    Attributes:
        fpr, tpr: (p,) its vertices, both increasing; the first fpr is 0, the last of both 1.
    """

    def __init__(self, fpr: np.ndarray, tpr: np.ndarray) -> None:
        self.fpr, self.tpr = np.asarray(fpr, dtype=float), np.asarray(tpr, dtype=float)

    @cached_property
    def _surest(self) -> tuple[np.ndarray, np.ndarray]:
        """Return shares of outcomes under random inclusion, the surest first, and the share of right guesses up to
        each.
        """
        absent, present = np.diff(self.fpr, prepend=0.0), np.diff(self.tpr, prepend=0.0)
        mass, right = (absent + present) / 2, np.maximum(absent, present) / 2
        kept = mass > 0
        mass, right = mass[kept], right[kept]
        order = np.argsort(-right / mass, kind="stable")
        share, truth = (np.concatenate([[0.0], np.cumsum(part[order])]) for part in (mass, right))
        return share / share[-1], truth / share[-1]

    def accuracy(self, share: np.ndarray) -> np.ndarray:
        """Return the probability that a guess is right if only the surest ``share`` of outcomes, in (0, 1], is
        guessed.
        """
        shares, truth = self._surest
        return np.clip(np.interp(share, shares, truth) / share, 0.5, 1.0)


def outer(fpr: np.ndarray, tpr: np.ndarray) -> Curve:
    """Return the vertices of a concave upper bound on the curve through the points.

    Between two points no concave curve rises above the extended chords on either side, so their intersection is a
    vertex.

    Args:
        fpr, tpr: (p,) points of the curve, both increasing, the last one (1, 1); fpr begins with 0.
    """
    jump, (across, up) = tpr[0], (np.diff(fpr), np.diff(tpr))
    with np.errstate(divide="ignore", invalid="ignore"):
        slope = np.where(across > 0, up / across, np.inf)
    steep, flat = np.concatenate([[np.inf], slope[:-1]]), np.concatenate([slope[1:], [0.0]])
    steep = np.maximum(steep, slope)
    flat = np.minimum(flat, slope)
    with np.errstate(invalid="ignore", divide="ignore"):
        first = np.where(steep > flat, (up - flat * across) / (steep - flat), across)  # width of the steep part
    first = np.where(np.isfinite(steep), np.clip(np.nan_to_num(first), 0.0, across), 0.0)
    rise = np.clip(up - np.where(np.isfinite(flat), flat, 0.0) * (across - first), 0.0, up)
    runs = np.stack([first, across - first], axis=1).ravel()
    rises = np.stack([rise, up - rise], axis=1).ravel()
    found_fpr = np.concatenate([[0.0], np.cumsum(runs)])
    found_tpr = jump + np.concatenate([[0.0], np.cumsum(rises)])
    return Curve(np.minimum(found_fpr / found_fpr[-1], 1.0), np.minimum(found_tpr, 1.0))


def sampled(tpr: Callable[[np.ndarray], np.ndarray]) -> Curve:
    """Return a polygon around a concave curve given as a function."""
    return outer(FPR, np.maximum.accumulate(np.maximum(tpr(FPR), FPR)))


def sampled_epsilon(tpr: Callable[[np.ndarray], np.ndarray], delta: float) -> float:
    """Return the ε ≥ 0 that points of such a curve prove at ``delta``, which never exceeds the curve's own."""
    fpr = FPR[1:]
    return float(np.log(max(np.max((tpr(fpr) - delta) / fpr), 1.0)))


def gaussian_curve(mu: float) -> Curve:
    """Return a polygon around Φ(Φ⁻¹(FPR) + μ) (Dong, Roth & Su 2022)."""
    threshold = np.arange(mu + TAIL, -TAIL, -SPACING)
    fpr, tpr = ndtr(-threshold), ndtr(mu - threshold)
    return outer(np.concatenate([[0.0], fpr, [1.0]]), np.concatenate([[0.0], tpr, [1.0]]))


def approximate_curve(epsilon: float, delta: float) -> Curve:
    """Return min(1, δ + e^ε FPR, 1 − e^−ε (1 − δ − FPR)) (Kairouz, Oh & Viswanath 2015)."""
    corner = (1 - delta) / (1 + np.exp(min(epsilon, 700.0)))
    return Curve(np.array([0.0, corner, 1 - delta, 1.0]), np.array([delta, 1 - corner, 1.0, 1.0]))


DIAGONAL = Curve(np.array([0.0, 1.0]), np.array([0.0, 1.0]))  # nothing can be distinguished
