"""Draws one figure from the metrics of its cells: pdf, png, and a csv of exactly what is drawn."""

from importlib import import_module
from pathlib import Path

import pandas as pd

from dp_leakage.figures.style import save
from dp_leakage.files import replacing
from dp_leakage.steps import Json, run
from dp_leakage.steps._metrics import joined, read_part


def main(settings: Json, metrics: list[Path], published: Path | None, pdf: Path, png: Path, csv: Path) -> None:
    """Reads the parts of every cell (cells first, parts within), writes the three files of the figure."""
    names, files = settings["columns"], iter(metrics)
    cells = [
        (dict(zip(names, values, strict=True)), read_part(next(files), *part))
        for values, parts in settings["cells"]
        for part in parts
    ]
    printed = pd.read_csv(published) if published else None
    figure, drawn = import_module(settings["module"]).draw(joined(cells), settings["settings"], printed)
    for path in (pdf, png):
        with replacing(path) as temporary:
            save(figure, temporary)
    with replacing(csv) as temporary:
        drawn.to_csv(temporary, index=False, lineterminator="\n")


if __name__ == "__main__":
    run(main, "published?", "pdf", "png", "csv", lists=("metrics",))
