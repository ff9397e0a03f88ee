"""Make one figure from the metrics of its cells: an image or tables, and a csv with exactly its numbers."""

from pathlib import Path
from typing import Any

import pandas as pd

from dp_leakage.attacks import ATTACKS
from dp_leakage.common.identity import identity
from dp_leakage.figures import drawn_by
from dp_leakage.figures.files import NUMBERS, RECORDS, is_current, write_figure, write_tables
from dp_leakage.metrics.runs import ALL
from dp_leakage.provenance.files import read_arrays, read_table
from dp_leakage.steps import Json, log, run
from dp_leakage.steps._metrics import joined
from dp_leakage.table.origin import beware, with_origin
from dp_leakage.table.published import read_published, without
from dp_leakage.table.tables import Tables


def main(settings: Json, metrics: list[Path], published: Path | None, figure: list[Path]) -> None:
    """Read the parts of every cell (cells first, parts within), and write the files of the figure.

    If these are there and of the same settings, they are kept: parts that were made again have come out equal.
    """
    to, made_from = {path.suffix[1:]: path for path in figure}, identity(settings)
    if is_current(to, made_from):
        log.info("kept: %s", figure[0])
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
    made, drawn = drawn_by(settings["module"], shown, settings["settings"], printed, settings["table"])
    seen = settings["scale"], settings["sources"], settings["made_up"]
    numbers, banner = with_origin(drawn, *seen), beware(*seen)
    if isinstance(made, Tables):
        write_tables(made, numbers, **to, identity=made_from, banner=banner)
    else:
        shows = RECORDS if needs == "images" else NUMBERS
        write_figure(made, numbers, **to, identity=made_from, shows=shows, banner=banner)


def _rows(path: Path, name: str, made: str, needs: str) -> pd.DataFrame:
    """Return a part's metrics over all repeats, its history, or an attack's scores."""
    frame, _ = read_table(path, made)
    if needs == "scores" and name in ATTACKS:
        return frame.assign(attack=name)
    return frame[frame["repeat"] == ALL] if "metric" in frame else frame


if __name__ == "__main__":
    run(main, "published?", lists=("metrics", "figure"))
