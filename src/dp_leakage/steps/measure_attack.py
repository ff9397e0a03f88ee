"""Compute metrics with intervals from one attack's results on a cell, or from all membership attacks together."""

from collections.abc import Callable, Mapping
from pathlib import Path

import numpy as np
import pandas as pd

from dp_leakage.attacks.signals import Signals, positions
from dp_leakage.metrics import (
    measure_attribute,
    measure_inversion,
    measure_membership,
    measure_ranks,
    measure_reconstruction,
    measure_strongest,
)
from dp_leakage.metrics.runs import by_repeat
from dp_leakage.metrics.sources import Asked, measure_sources
from dp_leakage.provenance.files import read_arrays, read_table
from dp_leakage.steps import Json, provenance
from dp_leakage.steps._rows import write_rows

# Family of attacks → its rows, from the scores and the attack's name.
MEASURES: dict[str, Callable[[pd.DataFrame, str], list[Json]]] = {
    "membership": measure_membership,
    "attribute": measure_attribute,
    "model_inversion": measure_inversion,
    "decoder_inversion": measure_reconstruction,
    "gradient_reconstruction": measure_reconstruction,
    "utility": measure_ranks,
}


def main(
    settings: Json,
    found: list[Path],
    rows: Path,
    data: Path | None = None,
    signals: Path | None = None,
    references: Path | None = None,
) -> None:
    """Read the scores of each attack, in the order of the settings, and write metrics.

    For all attacks together, if members and non-members come from two sources, also read the records and the outputs
    of the models and of any reference models.
    """
    scores = {attack: read_table(path, made)[0] for path, (attack, made) in zip(found, settings["reads"], strict=True)}
    if "family" in settings:
        measured = MEASURES[settings["family"]](scores[settings["part"]], settings["part"])
    else:
        measured = measure_strongest(scores)
    if "sources" in settings and data is not None and signals is not None:
        measured += _from_two_sources(scores, settings["sources"], data, signals, references)
    write_rows(rows, measured, provenance(settings))


def _from_two_sources(
    scores: Mapping[str, pd.DataFrame], made: Json, data: Path, signals: Path, references: Path | None
) -> list[Json]:
    read = {attack: by_repeat(frame, ["score", "record"], ["record"]) for attack, frame in scores.items()}
    (_, record), member = next(iter(read.values()))
    rows, others = record[0], {}
    if references is not None:
        said = _answered(references, made["references"], rows)
        others = {"others": said.mean_margin(), "seen": said.trained_on, "alike": made["alike"]}
    x = read_arrays(data, made["data"])[0]["x"][rows] if made["features"] else None
    own = _answered(signals, made["signals"], rows)
    asked = Asked(member, own.y, x, own.mean_margin(), **others)
    return measure_sources({attack: np.asarray(arrays[0]) for attack, (arrays, _) in read.items()}, asked)


def _answered(path: Path, made: str, rows: np.ndarray) -> Signals:
    """Return the models' outputs on these records."""
    said = Signals.held_by(read_arrays(path, made)[0], path)
    return said.records(positions(rows, said.record))
