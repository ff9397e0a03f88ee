"""Effect of other settings on reproduction: one row per setting, as in ``controls.csv``.

A control is a run with one setting changed. It is compared with every printed number that it covers: numbers that our
setting misses and the control reproduces, and the reverse.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import pandas as pd

from dp_leakage.table.published import keys_of, map_published

COLUMNS = ["paper", "setting", "file", "prints", "missed", "gained", "held", "lost"]
APART = ("seed", "attacked model", "weight")  # columns of a csv that holds several runs; what tells them apart
CELL = {
    "none": {"mechanism": "none"},
    "gaussian": {"mechanism": "gaussian", "accountant": "rdp", "unit": "example", "block": "whole", "bound": "clip"},
    "vmf": {"mechanism": "vmf", "accountant": "per_step", "unit": "example", "block": "row", "bound": "normalize"},
}
CELL["step"] = CELL["gaussian"]  # noise of ε for a single step
STATISTICS = {"ssim": "mean", "mse_standardized": "median"}


def tried(
    published: pd.DataFrame,
    rows: pd.DataFrame,
    controls: Sequence[Mapping[str, str]],
    frames: Mapping[str, pd.DataFrame],
) -> pd.DataFrame:
    """Return a row with ``COLUMNS`` for each run with another setting.

    Args:
        published: one paper's printed rows, as `read_published` gives them.
        rows: their outcomes (`prints.outcomes`), in the same order.
        controls: ``file`` and ``setting`` of each, of this paper.
        frames: file → its csv.

    ``missed`` counts prints that our own setting misses, ``gained`` the part of these that the control reproduces;
    ``held`` counts prints that our own setting reproduces, ``lost`` the part of these that the control misses. Prints
    of smaller runs are among them.
    """
    mapped = map_published(published).drop_duplicates("row")
    named = pd.Series(mapped["row"].to_numpy(), index=pd.Index(keys_of(mapped), tupleize_cols=False))
    places = named[~named.index.duplicated()].to_dict()  # of a number that is printed twice the first print counts
    half = mapped.set_index("row")["half_unit"]
    judged = rows.set_axis(published.index)
    judged = judged[judged["inside"].notna()]
    found = []
    for control in controls:
        for told, frame in _runs(frames[control["file"]]):
            holds = {
                places[key]: one["low"] <= judged.at[places[key], "print"] + half[places[key]]
                and judged.at[places[key], "print"] - half[places[key]] <= one["high"]
                for key, one in zip(keys_of(frame), frame.to_dict("records"), strict=True)
                if places.get(key) in judged.index
            }
            if holds:
                ours = judged.loc[list(holds), "inside"].astype(bool)
                theirs = pd.Series(holds).astype(bool)
                counts = (len(ours), (~ours).sum(), (~ours & theirs).sum(), ours.sum(), (ours & ~theirs).sum())
                words = control["setting"] + (f" ({told})" if told else "")
                found.append([rows["paper"].iloc[0], words, control["file"], *map(int, counts)])
    return pd.DataFrame(found, columns=COLUMNS)


def _runs(frame: pd.DataFrame) -> Iterator[tuple[str, pd.DataFrame]]:
    """Yield the runs of a csv file, each with the label that distinguishes it, "" for a single run."""
    rows = _of_cells(frame) if "cell" in frame else frame
    rows = rows.dropna(subset=["low"])
    if "counting" not in rows and "members_exposed" in set(rows["metric"]):
        counted = (rows["metric"] == "members_exposed") & (rows["mechanism"] != "none")
        rows = rows.assign(counting=counted.map({True: "all_runs", False: ""}))
    apart = [name for name in APART if name in rows and rows[name].nunique() > 1]
    if not apart:
        yield "", rows
        return
    for values, part in rows.groupby(apart, sort=False):
        yield ", ".join(f"{name} {value}" for name, value in zip(apart, values, strict=True)), part


def _of_cells(frame: pd.DataFrame) -> pd.DataFrame:
    """Return the reconstruction rows of a cell named in short (``gaussian=50``), one for each measure."""
    found: list[dict[str, Any]] = []
    for row in frame.to_dict("records"):
        name, _, epsilon = str(row["cell"]).partition("=")
        for metric, column, ends in _measures(row):
            found.append(
                {
                    **{"attacked model": row.get("weights", "initial"), "weight": row["total_variation"]},
                    **{"dataset": row["dataset"], "model": str(row["model"]).removesuffix("_strided")},
                    **CELL[name],
                    "epsilon": float(epsilon) if epsilon else float("nan"),
                    **{"metric": metric, "attack": "iga", "statistic": STATISTICS[metric], "weights": "initial"},
                    **{"measured": row[column], "low": row[f"{ends}_low"], "high": row[f"{ends}_high"]},
                }
            )
    return pd.DataFrame(found)


def _measures(row: Mapping[str, Any]) -> list[tuple[str, str, str]]:
    """Return the metric, its column, and the beginning of its interval's columns."""
    if "ssim_standardized" in row:
        return [
            (metric, column, column) for metric, column in (("ssim", "ssim_standardized"), ("mse_standardized",) * 2)
        ]
    return [("ssim", "ssim", "ssim"), ("mse_standardized", "mse_standardized", "mse")]
