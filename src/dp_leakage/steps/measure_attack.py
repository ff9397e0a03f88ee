"""Turns what one attack found in a cell into metrics with intervals; or all of membership together."""

from collections.abc import Callable
from pathlib import Path

import pandas as pd

from dp_leakage.metrics import (
    measure_attribute,
    measure_inversion,
    measure_membership,
    measure_ranks,
    measure_reconstruction,
    measure_strongest,
)
from dp_leakage.provenance.files import read_table
from dp_leakage.steps import Json, provenance, run
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


def main(settings: Json, found: list[Path], rows: Path) -> None:
    """Reads the scores of each attack, in the order of the settings."""
    write_rows(rows, _measured(settings, found), provenance(settings))


def _measured(settings: Json, found: list[Path]) -> list[Json]:
    part = settings["part"]
    scores = {attack: read_table(path, made)[0] for path, (attack, made) in zip(found, settings["reads"], strict=True)}
    return MEASURES[settings["family"]](scores[part], part) if "family" in settings else measure_strongest(scores)


if __name__ == "__main__":
    run(main, "rows", lists=("found",))
