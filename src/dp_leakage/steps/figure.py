"""Draws one figure from the metrics of its cells: pdf, png, and a csv of exactly what is drawn."""

from pathlib import Path
from typing import Any

import pandas as pd

from dp_leakage.attacks import ATTACKS
from dp_leakage.common.identity import identity
from dp_leakage.figures import drawn_by
from dp_leakage.figures.files import NUMBERS, RECORDS, is_current, write_figure
from dp_leakage.figures.origin import beware, with_origin
from dp_leakage.figures.published import read_published, without
from dp_leakage.metrics.runs import ALL
from dp_leakage.provenance.files import read_arrays, read_table
from dp_leakage.steps import Json, log, run
from dp_leakage.steps._metrics import joined


def main(settings: Json, metrics: list[Path], published: Path | None, pdf: Path, png: Path, csv: Path) -> None:
    """Reads the parts of every cell (cells first, parts within), writes the three files of the figure.

    If these are there and of the same settings, they are kept: parts that were made again have come out equal.
    """
    if is_current(pdf, png, csv, identity(settings)):
        log.info("kept: %s", png)
        return
    names, needs, files = settings["columns"], settings["needs"], iter(metrics)
    parts = [
        (dict(zip(names, values, strict=True)), name, next(files), made)
        for values, own in settings["cells"]
        for name, made in own
    ]
    shown: pd.DataFrame | list[Any]
    if needs == "images":
        shown = [(columns, name, read_arrays(path, made)[0]) for columns, name, path, made in parts]
    else:
        shown = joined([(columns, _rows(path, name, made, needs)) for columns, name, path, made in parts])
    printed = without(read_published(published), settings["made_up"]) if published else None
    figure, drawn = drawn_by(settings["module"], shown, settings["settings"], printed)
    seen = settings["scale"], settings["sources"], settings["made_up"]
    shows = RECORDS if needs == "images" else NUMBERS
    write_figure(figure, with_origin(drawn, *seen), pdf, png, csv, identity(settings), shows, beware(*seen))


def _rows(path: Path, name: str, made: str, needs: str) -> pd.DataFrame:
    """A part's metrics over all repeats, its history, or an attack's scores."""
    frame, _ = read_table(path, made)
    if needs == "scores" and name in ATTACKS:
        return frame.assign(attack=name)
    return frame[frame["repeat"] == ALL] if "metric" in frame else frame


if __name__ == "__main__":
    run(main, "published?", "pdf", "png", "csv", lists=("metrics",))
