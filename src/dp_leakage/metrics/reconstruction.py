"""Distance of reconstructed images of decoders or gradient attacks from the originals: from score
files to metric rows.
"""

from collections.abc import Callable, Iterator
from typing import Any, TypeAlias

import numpy as np
import pandas as pd
from scipy.special import bdtrik

from dp_leakage.metrics.intervals import CONFIDENCE, Estimate, crossed, influences_of_mean, over_repeats
from dp_leakage.metrics.rows import row
from dp_leakage.metrics.runs import ALL

# column → metric, and its range
MEASURED = {
    "mse": ("mse", (0.0, np.inf)),
    "mse_standardized": ("mse_standardized", (0.0, np.inf)),
    "ssim": ("ssim", (-1.0, 1.0)),
    "distance": ("mia_distance", (0.0, np.inf)),
}
WHICH = ("repeat", "target", "restart", "gradient")
RECOGNIZED = ("candidates", "recognized", "recognized_proven")
TAIL = (1 - CONFIDENCE) / 2
Statistic: TypeAlias = Callable[[np.ndarray, np.ndarray, tuple[float, float]], Estimate]


def measure_reconstruction(frame: pd.DataFrame, attack: str) -> list[dict]:
    """Return rows mse, mse_standardized, ssim and mia_distance (those in the frame) of one attack on one cell.

    Args:
        frame: repeat, target, restart, some of ``mse``, ``mse_standardized``, ``ssim`` and ``distance``, and the
            attack's own columns, which are of `rows.QUALIFIERS` (``layer``, ``variant``). Each of their values is
            measured separately. Perhaps also ``gradient``, the number of the gradient from which the target was rebuilt
            together with others: targets of one gradient come out, or do not, together, so only gradients count as
            independent. And perhaps those of `RECOGNIZED`: how many candidates there were, the chance that the record
            is recognized among them, and how often any attack can be right.
        attack: its name.

    Returns:
        ``statistic=mean`` and ``statistic=median`` over targets, after averaging a target's restarts, with a 95 %
        interval over targets (or gradients) and, for all together, also over repeats (`intervals.crossed`). The
        interval is NaN for a single target, and for a median of fewer than six effective targets. With candidates also
        recognized, the mean chance of a right guess with its interval, and recognized_proven, the most that it can be.

    Raises:
        UserError: one of the attack's own columns is no qualifier.
    """
    own = [column for column in frame.columns if column not in (*WHICH, *MEASURED, *RECOGNIZED)]
    groups = frame.groupby(own, sort=True) if own else [((), frame)]
    return [row for key, part in groups for row in _rows(part, attack, dict(zip(own, key, strict=True)))]


def _rows(part: pd.DataFrame, attack: str, own: dict) -> Iterator[dict]:
    origin = part.groupby("target")["gradient" if "gradient" in part else "target"].first()
    for column, (metric, limits) in MEASURED.items():
        if column not in part:
            continue
        for name, block, owner in _blocks(part, column, origin):
            for statistic, of in STATISTICS.items():
                found = _within(of, block, owner, limits)
                yield row(metric, name, found, attack=attack, statistic=statistic, **own)
    if set(RECOGNIZED) <= set(part):
        candidates, most = (float(part[column].iloc[0]) for column in ("candidates", "recognized_proven"))
        own = {"attack": attack, "candidates": candidates} | own
        limits = (0.0, 1.0)
        for name, block, owner in _blocks(part, "recognized", origin):
            found = _within(_mean, block, owner, limits)
            yield row("recognized", name, found, **own)
        yield row("recognized_proven", ALL, Estimate(most, np.nan, np.nan), **own)


def _blocks(part: pd.DataFrame, column: str, origin: "pd.Series[Any]") -> Iterator[tuple[str, np.ndarray, np.ndarray]]:
    """Yield repeat, values and origins: of single repeats, (1, targets), and of all, (R, targets).

    Origins are the gradients from which the targets were rebuilt, numbered from 0, int64 (targets,).

    Args:
        part: rows of one attack.
        column: of the values.
        origin: target → its gradient, or itself.
    """
    pivoted = part.pivot_table(index="repeat", columns="target", values=column, aggfunc="mean")
    values, owner = pivoted.to_numpy(), pd.factorize(origin.loc[pivoted.columns])[0]
    yield from ((str(r), values[r : r + 1], owner) for r in range(len(values)))
    yield ALL, values, owner


def _within(of: Statistic, values: np.ndarray, owner: np.ndarray, limits: tuple[float, float]) -> Estimate:
    """Return a statistic with an interval in the metric's range; NaN for fewer than two numbers."""
    if not values.size:
        return Estimate(np.nan, np.nan, np.nan)
    estimate = of(values, owner, limits)
    if np.count_nonzero([np.bincount(owner, known) for known in np.isfinite(values)]) < 2:
        return Estimate(estimate.value, np.nan, np.nan)
    return Estimate(estimate.value, *np.clip(estimate[1:], *limits).tolist())


def _mean(values: np.ndarray, owner: np.ndarray, limits: tuple[float, float]) -> Estimate:
    return crossed(influences_of_mean(values).of(owner), limits if np.isfinite(limits).all() else None)


def _median(values: np.ndarray, owner: np.ndarray, limits: tuple[float, float]) -> Estimate:
    """Return the median with the interval between two of the ordered values, exact by the binomial (Thompson 1936).

    The number of n independent targets below the true median is Binomial(n, ½). Repeats share the targets, and targets
    from one gradient are one. A target whose repeats lie on both sides of the median carries less information, so n is
    reduced to the effective number with the same spread. `over_repeats` adds the spread of the repeats' medians. With
    fewer than six targets, even the least and the largest value do not bound the median.
    """
    median = float(np.nanmedian(values))
    there = ~np.isnan(values).all(axis=0)
    values, owner = values[:, there], pd.factorize(owner[there])[0]
    each = np.nanmean((1 - np.sign(values - median)) / 2, axis=0)
    shares = np.bincount(owner, each) / np.bincount(owner)
    spread = float(np.var(shares))
    most = len(values) * shares.size
    coins = min(max(0.25 * shares.size / spread, shares.size), most) if spread > 0 else most
    if 0.5**coins > TAIL:
        return Estimate(median, np.nan, np.nan)
    below = bdtrik(TAIL, coins, 0.5)  # the chance of at most this many heads, continued between whole numbers
    share = (np.floor(below) if len(values) == 1 else below) / (coins - 1)
    low = float(np.nanquantile(values, share, method="lower"))
    high = float(np.nanquantile(values, 1 - share, method="higher"))
    medians = np.nanmedian(values[~np.isnan(values).all(axis=1)], axis=1)
    return over_repeats(Estimate(median, low, high), medians, limits)


STATISTICS = {"mean": _mean, "median": _median}
