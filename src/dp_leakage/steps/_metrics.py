"""Metrics of many cells as one frame."""

from collections.abc import Iterable
from pathlib import Path

import numpy as np
import pandas as pd

from dp_leakage.provenance.files import read_table
from dp_leakage.steps import Json

NOISE = ("noise_multiplier", "kappa")


def read_rows(paths: Iterable[Path], identities: Iterable[str]) -> pd.DataFrame:
    """The rows of several files as one frame.

    Raises:
        UserError: a file is damaged, or made by other settings than its identity says.
    """
    frames = [read_table(path, made)[0] for path, made in zip(paths, identities, strict=True)]
    return pd.concat(frames, ignore_index=True)


def read_metrics(paths: list[Path], identities: list[str]) -> pd.DataFrame:
    """Rows of all ``metrics.parquet`` files, each with the columns of its cell. Raises as `read_rows`."""
    read = [read_table(path, identity) for path, identity in zip(paths, identities, strict=True)]
    return joined([(made["settings"]["columns"], frame) for frame, made in read])


def joined(cells: list[tuple[Json, pd.DataFrame]]) -> pd.DataFrame:
    """Rows of all frames, each with the columns of its cell (dataset, model, mechanism, epsilon, σ, …)."""
    noise = {
        (_key(columns), name): _value(frame, name) for columns, frame in cells for name in NOISE if _has(frame, name)
    }
    frames = [
        frame.assign(
            **{key: np.nan if value is None else value for key, value in columns.items()},
            **{name: noise.get((_key(columns), name), np.nan) for name in NOISE},
        )
        for columns, frame in cells
    ]
    return pd.concat(frames, ignore_index=True)


def _key(columns: Json) -> tuple[str, ...]:
    return columns["dataset"], columns["model"], columns["defense"]


def _has(frame: pd.DataFrame, metric: str) -> bool:
    return "metric" in frame and bool((frame["metric"] == metric).any())


def _value(frame: pd.DataFrame, metric: str) -> float:
    return float(frame.loc[frame["metric"] == metric, "value"].iloc[0])
