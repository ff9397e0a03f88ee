"""Simultaneous intervals of one metric in many settings, for a choice among them.

The setting that looks best among many owes this partly to chance, so an interval for a single number is too narrow for
it. With K comparisons each interval here has level 1 − 0.05/K (Bonferroni), so all K hold with 95 % confidence, even
for a setting chosen by looking at all of them.
"""

from collections.abc import Sequence

import numpy as np
from scipy.special import ndtri, stdtrit

from dp_leakage.metrics.intervals import CONFIDENCE, FEWEST_REPEATS, Estimate, Z


def simultaneous(
    estimate: Estimate, comparisons: int, limits: tuple[float, float], repeats: Sequence[float] = ()
) -> Estimate:
    """Return an interval of one of several numbers, wide enough that all hold together with 95 % confidence.

    Args:
        estimate: the number with its own 95 % interval.
        comparisons: number of intervals that must hold together, at least 1; 1 leaves the interval unchanged.
        limits: the ends of the number's range.
        repeats: its value in each repeat, as far as known. Their variance has few degrees of freedom, so its quantiles
            are Student's, much farther out than normal ones.

    Returns:
        Wilson's interval at the effective size of the given one and at the farther quantile, so that it stays in the
            limits and is valid near them; it always contains the given one.
    """
    value, low, high = estimate
    if comparisons <= 1 or not np.isfinite([value, low, high]).all() or not high > low:
        return estimate
    start, span = limits[0], limits[1] - limits[0]
    share, half = min(max((value - start) / span, 0.0), 1.0), (high - low) / 2 / span
    quantile = Z * farther(half * span, comparisons, np.asarray(repeats, dtype=float))
    spread = share * (1 - share)
    # Wilson's half-width is half² (1 + s)² = s · spread + s²/4 with s = z²/n: solved for s, then n.
    least = min(half, 0.5 - 1e-12) ** 2
    a, b = least - 0.25, 2 * least - spread
    s = (-b - np.sqrt(max(b * b - 4 * a * least, 0.0))) / (2 * a)
    shrink = s * (quantile / Z) ** 2
    center = (share + shrink / 2) / (1 + shrink)
    reach = np.sqrt(shrink * spread + shrink**2 / 4) / (1 + shrink)
    ends = start + span * np.clip([center - reach, center + reach], 0.0, 1.0)
    return Estimate(value, float(min(ends[0], low)), float(max(ends[1], high)))


def farther(half: float, comparisons: float, repeats: np.ndarray) -> float:
    """Return the factor by which a 95 % half-width > 0 grows so that this many intervals hold together.

    The part of the variance that the ``repeats``' values (R,) show has few degrees of freedom. As in
    `intervals.crossed`, the root of the mean square of Satterthwaite's half-width and MOVER's is used.
    """
    level = level_of(comparisons)
    far = float(ndtri(level))
    n = len(repeats)
    if n < FEWEST_REPEATS or not np.isfinite(repeats).all():
        return far / Z
    near = float(stdtrit(n - 1, (1 + CONFIDENCE) / 2))
    between = min(float(np.var(repeats, ddof=1)) / n, half**2 / near**2)
    within = max(half**2 - near**2 * between, 0.0) / Z**2
    return max(half_width(within, [(between, n - 1)], level) / half, far / Z)


def level_of(comparisons: float) -> float:
    """Return the probability below the upper end of each of several simultaneous two-sided intervals."""
    return 1 - (1 - CONFIDENCE) / 2 / comparisons


def half_width(within: float, between: Sequence[tuple[float, int]], level: float) -> float:
    """Return the half-width of the interval of a number whose variance has several components.

    Args:
        within: the part that is known well.
        between: parts that groups of repeats show, each with its degrees of freedom.
        level: in (½, 1).
    """
    far, total = float(ndtri(level)), within + sum(part for part, _ in between)
    squares = sum(part**2 / freedom for part, freedom in between)
    if not squares > 0:
        return far * float(np.sqrt(within))
    satterthwaite = float(stdtrit(total**2 / squares, level)) ** 2 * total
    mover = far**2 * within + sum(float(stdtrit(freedom, level)) ** 2 * part for part, freedom in between)
    return float(np.sqrt((satterthwaite + mover) / 2))
