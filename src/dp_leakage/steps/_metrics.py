"""Metrics of many cells as one frame."""

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from dp_leakage.metrics.rows import completed
from dp_leakage.provenance.files import read_table
from dp_leakage.steps import Json

NOISE = ("noise_multiplier", "kappa")


def read_rows(paths: Iterable[Path], identities: Iterable[str]) -> pd.DataFrame:
    """Read the rows of several files as one frame.

    Raises:
        UserError: a file is damaged, or made by other settings than its identity says.
    """
    frames = [read_table(path, made)[0] for path, made in zip(paths, identities, strict=True)]
    return pd.concat(frames, ignore_index=True)


def read_metrics(paths: list[Path], identities: list[str]) -> pd.DataFrame:
    """Return rows of all ``metrics.parquet`` files, each with the columns of its cell. Raises as `read_rows`."""
    read = [read_table(path, identity) for path, identity in zip(paths, identities, strict=True)]
    return joined([(made["settings"]["columns"], frame) for frame, made in read])


def joined(cells: list[tuple[Json, pd.DataFrame]]) -> pd.DataFrame:
    """Return rows of all frames, each with the columns of its cell (dataset, model, mechanism, epsilon, σ, …).

    The columns are added to all rows at once: one by one to each of hundreds of frames took half of a figure's time.
    """
    noise = {
        (_key(columns), name): _value(frame, name) for columns, frame in cells for name in NOISE if _has(frame, name)
    }
    told = [{**columns, **{name: noise.get((_key(columns), name), np.nan) for name in NOISE}} for columns, _ in cells]
    rows = pd.concat([frame for _, frame in cells], ignore_index=True)
    rows = completed(rows) if "metric" in rows else rows
    cell = np.repeat(np.arange(len(cells)), [len(frame) for _, frame in cells])
    added = {
        name: _column([one.get(name) for one in told]).take(cell).reset_index(drop=True)
        for name in dict.fromkeys(name for one in told for name in one)
    }
    return pd.concat([rows, pd.DataFrame(added)], axis=1)


def _column(values: list[Any]) -> pd.Series:
    """Return a column with one value per cell, without NaN."""
    return pd.Series([np.nan if value is None else value for value in values])


def _key(columns: Json) -> tuple[str, ...]:
    return columns["dataset"], columns["model"], columns["defense"]


def _has(frame: pd.DataFrame, metric: str) -> bool:
    return "metric" in frame and bool((frame["metric"] == metric).any())


def _value(frame: pd.DataFrame, metric: str) -> float:
    return float(frame.loc[frame["metric"] == metric, "value"].iloc[0])
