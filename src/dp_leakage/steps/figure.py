"""Draws one figure from the metrics of its cells: pdf, png, and a csv of exactly what is drawn."""

from pathlib import Path
from typing import Any

import pandas as pd

from dp_leakage.common.identity import identity
from dp_leakage.figures import drawn_by
from dp_leakage.figures.files import NUMBERS, RECORDS, write_figure
from dp_leakage.figures.published import read_published
from dp_leakage.steps import Json, run
from dp_leakage.steps._metrics import joined, read_cell, read_images

IMAGES = "images"  # the reader of figures that show pictures


def main(settings: Json, metrics: list[Path], published: Path | None, pdf: Path, png: Path, csv: Path) -> None:
    """Reads the parts of every cell (cells first, parts within), writes the three files of the figure."""
    names, files = settings["columns"], iter(metrics)
    cells = [
        (dict(zip(names, values, strict=True)), [next(files) for _ in parts], parts)
        for values, parts in settings["cells"]
        if parts
    ]
    shown: pd.DataFrame | list[Any]
    images = any(reader == IMAGES for _, _, parts in cells for _, _, reader, *_ in parts)
    if images:
        shown = [(columns, *found) for columns, paths, parts in cells for found in read_images(paths, parts)]
    else:
        shown = joined([(columns, read_cell(paths, parts, settings["repeats"])) for columns, paths, parts in cells])
    printed = read_published(published) if published else None
    figure, drawn = drawn_by(settings["module"], shown, settings["settings"], printed)
    write_figure(figure, drawn, pdf, png, csv, identity(settings), RECORDS if images else NUMBERS)


if __name__ == "__main__":
    run(main, "published?", "pdf", "png", "csv", lists=("metrics",))
