"""Metrics of many cells as one frame."""

from collections.abc import Callable, Iterable
from pathlib import Path

import numpy as np
import pandas as pd

from dp_leakage.attacks.signals import Signals
from dp_leakage.metrics import (
    measure_attribute,
    measure_inversion,
    measure_membership,
    measure_ranks,
    measure_reconstruction,
    measure_strongest,
)
from dp_leakage.metrics.coin_audit import measure_coins
from dp_leakage.metrics.runs import ALL
from dp_leakage.provenance.files import read_arrays, read_table
from dp_leakage.steps import Json

NOISE = ("noise_multiplier", "kappa")
MEMBERSHIP = "membership"  # attacks of this family are also measured together


def _measured(measure: Callable[[pd.DataFrame, str], list[Json]]) -> Callable[..., pd.DataFrame]:
    """A reader that measures the scores of an attack."""
    return lambda path, part, identity: pd.DataFrame(measure(read_table(path, identity)[0], part))


def _coins(path: Path, part: str, identity: str, comparisons: int, claim: Json) -> pd.DataFrame:
    """What guesses of coins prove, for ``comparisons`` bounds at once, and δ and ``neighbours`` of the claim."""
    said = Signals.held_by(read_arrays(path, identity)[0], path)
    return pd.DataFrame(measure_coins(said, comparisons=comparisons, **claim))


# A part's reader (`study.parts.Part.reader`) → the rows of the part, from its path, name, identity and further
# arguments.
READERS: dict[str, Callable[..., pd.DataFrame]] = {
    "": lambda path, part, identity: read_table(path, identity)[0],
    "scores": lambda path, part, identity: read_table(path, identity)[0].assign(attack=part),
    "coins": _coins,
    "attribute": _measured(measure_attribute),
    "model_inversion": _measured(measure_inversion),
    "decoder_inversion": _measured(measure_reconstruction),
    "gradient_reconstruction": _measured(measure_reconstruction),
    "utility": _measured(measure_ranks),
}


def read_cell(paths: Iterable[Path], parts: list[list], repeats: bool = True) -> pd.DataFrame:
    """Rows of several parts of one cell, and of all its membership attacks together.

    Args:
        paths: a file for each part.
        parts: for each, its name, the identity of its file, its reader, and further arguments of the reader.
        repeats: whether metrics of every single repeat are wanted too, or only those over all of them.

    Raises:
        UserError: a file is damaged, or made by other settings than its identity says.
    """
    frames, scores = [], {}
    for path, (part, made, reader, *told) in zip(paths, parts, strict=True):
        if reader == MEMBERSHIP:
            scores[part], _ = read_table(path, made)
            frames.append(pd.DataFrame(measure_membership(scores[part], part, repeats)))
        else:
            frames.append(READERS[reader](path, part, made, *told))
    if scores:
        frames.append(pd.DataFrame(measure_strongest(scores, repeats)))
    if not repeats:  # a training's history has no metrics, and keeps its repeats
        frames = [frame[frame["repeat"] == ALL] if "metric" in frame else frame for frame in frames]
    return pd.concat(frames, ignore_index=True)


def read_images(paths: Iterable[Path], parts: list[list]) -> list[tuple[str, dict[str, np.ndarray]]]:
    """The pictures of several attacks on one cell, by attack: name → array. Arguments and errors of `read_cell`."""
    return [(part, read_arrays(path, made)[0]) for path, (part, made, *_) in zip(paths, parts, strict=True)]


def read_metrics(paths: list[Path], identities: list[str]) -> pd.DataFrame:
    """Rows of all ``metrics.parquet`` files, each with the columns of its cell. Raises as `read_cell`."""
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
