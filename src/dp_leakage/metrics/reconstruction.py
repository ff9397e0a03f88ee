"""How close the pictures of an inversion or reconstruction attack come: from score files to metric rows."""

from collections.abc import Callable, Iterator

import numpy as np
import pandas as pd

# column → metric
MEASURED = {"mse": "mse", "mse_standardised": "mse_standardised", "ssim": "ssim", "distance": "mia_distance"}
WHICH = ("repeat", "target", "restart")
RESAMPLES = 2000
NUMBERS_AT_ONCE = 1 << 22  # of resampled values: 32 MB
STATISTICS = {"mean": np.mean, "median": np.median}
STATISTICS_WITH_GAPS = {"mean": np.nanmean, "median": np.nanmedian}  # much slower, so only where values are missing


def measure_reconstruction(frame: pd.DataFrame, attack: str) -> list[dict]:
    """Rows mse, mse_standardised, ssim and mia_distance (those that the frame has) of one attack on one cell.

    Args:
        frame: repeat, target, restart, some of ``mse``, ``mse_standardised``, ``ssim`` and ``distance``, and the
            attack's own columns (which layer, which variant): numbers are judged apart for each of their values.
        attack: its name, written into ``setting``.

    Returns:
        ``statistic=mean`` and ``statistic=median`` over targets, a target's restarts averaged first, with a 95 %
        percentile bootstrap interval over targets (and, for all together, over repeats too); the same bytes each time.
    """
    own = [column for column in frame.columns if column not in (*WHICH, *MEASURED)]
    groups = frame.groupby(own, sort=True) if own else [((), frame)]
    return [row for key, part in groups for row in _rows(part, attack, dict(zip(own, key, strict=True)))]


def _rows(part: pd.DataFrame, attack: str, own: dict) -> Iterator[dict]:
    for column, metric in MEASURED.items():
        if column not in part:
            continue
        values = part.pivot_table(index="repeat", columns="target", values=column, aggfunc="mean").to_numpy()
        for name, block in [*((str(r), values[r : r + 1]) for r in range(len(values))), ("all", values)]:
            for statistic, of in (STATISTICS_WITH_GAPS if np.isnan(block).any() else STATISTICS).items():
                low, high = _interval(block, of)
                setting = ";".join(
                    f"{k}={v}" for k, v in sorted({"attack": attack, "statistic": statistic, **own}.items())
                )
                yield {
                    "metric": metric,
                    "repeat": name,
                    "value": float(of(block)),
                    "low": low,
                    "high": high,
                    "setting": setting,
                }


def _interval(values: np.ndarray, statistic: Callable[..., np.ndarray]) -> tuple[float, float]:
    """Percentile bootstrap of a statistic of (R, n) values that resamples rows and columns, as they are crossed."""
    rng = np.random.default_rng(0)
    repeats, targets = values.shape
    at_once = max(1, NUMBERS_AT_ONCE // values.size)
    drawn = []
    for start in range(0, RESAMPLES, at_once):
        size = min(at_once, RESAMPLES - start)
        rows = rng.integers(repeats, size=(size, repeats, 1))
        columns = rng.integers(targets, size=(size, 1, targets))
        drawn.append(statistic(values[rows, columns], axis=(1, 2)))
    low, high = np.nanpercentile(np.concatenate(drawn), [2.5, 97.5])
    middle = float(statistic(values))
    return min(float(low), middle), max(float(high), middle)
