"""Turns what one attack found in a cell into metrics with intervals; all of membership together; guesses of coins."""

from collections.abc import Callable
from pathlib import Path

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
from dp_leakage.provenance.files import read_arrays, read_table
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
    """Reads the scores of each attack (of coins: the models' answers), in the order of the settings."""
    write_rows(rows, _measured(settings, found), provenance(settings))


def _measured(settings: Json, found: list[Path]) -> list[Json]:
    part, reads = settings["part"], list(zip(found, settings["reads"], strict=True))
    if "claim" in settings:
        [(path, (_, made))] = reads
        answers = Signals.held_by(read_arrays(path, made)[0], path)
        return measure_coins(answers, comparisons=settings["comparisons"], **settings["claim"])
    scores = {attack: read_table(path, made)[0] for path, (attack, made) in reads}
    return MEASURES[settings["family"]](scores[part], part) if "family" in settings else measure_strongest(scores)


if __name__ == "__main__":
    run(main, "rows", lists=("found",))
