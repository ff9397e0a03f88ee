"""Metrics of many cells as one frame."""

from collections.abc import Iterable
from pathlib import Path

import numpy as np
import pandas as pd

from dp_leakage.attacks.signals import Signals
from dp_leakage.files import read_arrays, read_table
from dp_leakage.metrics import (
    measure_attribute,
    measure_inversion,
    measure_membership,
    measure_ranks,
    measure_reconstruction,
    measure_strongest,
)
from dp_leakage.metrics.audit import measure_audit
from dp_leakage.metrics.coin_audit import measure_coins
from dp_leakage.steps import Json
from dp_leakage.steps._claims import claim_of

NOISE = ("noise_multiplier", "kappa")
MEASURES = {
    "attribute": measure_attribute,
    "model_inversion": measure_inversion,
    "inversion": measure_reconstruction,
    "reconstruction": measure_reconstruction,
    "utility": measure_ranks,
}


def read_part(
    path: Path, part: str, identity: str, family: str, comparisons: int = 1, claim: Json | None = None
) -> pd.DataFrame:
    """Rows of one part of a cell: read as they are, or measured from the scores of an attack of a ``family``.

    Membership attacks are measured together (`read_cell`).

    Args:
        path: the part's file.
        part: ``training``, ``curve``, ``audit``, ``coins`` or an attack.
        identity: of the file.
        family: of the attack; "" for what is read as it is, ``scores`` for scores as they are.
        comparisons: bounds that the audits of all cells state together.
        claim: of part ``coins``: δ, and between which ``neighbours`` a coin decides.

    Raises:
        UserError: the file is damaged, or made by other settings than its identity says.
    """
    if family == "coins":
        said = Signals(**read_arrays(path, identity)[0])
        return pd.DataFrame(measure_coins(said, comparisons=comparisons, **(claim or {})))
    frame, made = read_table(path, identity)
    if family == "audit":
        return pd.DataFrame(_audited(frame, made, comparisons))
    if family == "scores":
        return frame.assign(attack=part)
    return pd.DataFrame(MEASURES[family](frame, part)) if family else frame


def read_cell(paths: Iterable[Path], parts: list[list]) -> pd.DataFrame:
    """Rows of several parts of one cell: of each as `read_part` has them, and of all its membership attacks together.

    Args:
        paths: a file for each part.
        parts: the further arguments of `read_part`, for each.
    """
    frames, scores = [], {}
    for path, (part, made, family, *more) in zip(paths, parts, strict=True):
        if family == "membership":
            scores[part], _ = read_table(path, made)
            frames.append(pd.DataFrame(measure_membership(scores[part], part)))
        else:
            frames.append(read_part(path, part, made, family, *more))
    together = [pd.DataFrame(measure_strongest(scores))] if scores else []
    return pd.concat([*frames, *together], ignore_index=True)


def _audited(frame: pd.DataFrame, made: Json, comparisons: int) -> list[Json]:
    settings = made["settings"]
    return measure_audit(
        frame, settings["designs"], lambda design: claim_of(design, made), comparisons, settings["seed"]
    )


def read_metrics(paths: list[Path], identities: list[str]) -> pd.DataFrame:
    """Rows of all ``metrics.parquet`` files, each with the columns of its cell beside. Raises as ``read_part``."""
    read = [read_table(path, identity) for path, identity in zip(paths, identities, strict=True)]
    return joined([(made["settings"]["columns"], frame) for frame, made in read])


def joined(cells: list[tuple[Json, pd.DataFrame]]) -> pd.DataFrame:
    """Rows of all frames, each with the columns of its cell (dataset, model, mechanism, epsilon, σ, …) beside."""
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
