"""Accuracy and accounted ε during training."""

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from dp_leakage.common.errors import UserError, nearest
from dp_leakage.figures.curves import draw_guessing
from dp_leakage.figures.marks import Looks, draw_bands, draw_lines
from dp_leakage.figures.style import canvas, finish, log_axis, sample, styled
from dp_leakage.metrics.rows import CELL
from dp_leakage.table.frames import NUMBERS, OF_CELL, chosen, each_series, in_order, listed, panels, unprinted
from dp_leakage.table.looks import INK, Look, look
from dp_leakage.table.notes import own_notes
from dp_leakage.table.numbers import cell_words

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

FIGURE = {
    "caption": "Accuracy during training, on the training records (dashed) and on new records (solid), with the "
    "accounted ε so far. Lines are means over the repeats, bands are 95 % intervals (Student's t).",
    "needs": "training",
    "settings": {
        "defense": {
            "type": ["null", "string", "array"],
            "minLength": 1,
            "items": {"type": "string", "minLength": 1},
            "default": None,
            "description": "Cells that are drawn, by the name of their defense; null for all, if they are few "
            "enough to follow.",
        },
        "best": {"type": "boolean", "default": False, "description": "Whether each curve's best epoch is ringed."},
    },
}

ACCURACIES = {"train_accuracy": (3, 2), "test_accuracy": ()}  # metric: dashes
MOST = 6  # lines per panel that an eye can follow
FILLS = ("full", "top", "left", "bottom", "right")


@styled
def draw(
    metrics: pd.DataFrame, settings: dict[str, Any], published: pd.DataFrame | None
) -> "tuple[Figure, pd.DataFrame]":
    """Draw for each (data set, model) the accuracies and, below, the accounted ε so far if known.

    Args:
        metrics: histories of all cells: repeat, epoch, loss, train_accuracy, test_accuracy, the cells' columns and,
            optionally, ``epsilon_spent``: the ε after that epoch.
        settings: ``defense``: names of the cells to draw (None: all, if they are few enough to distinguish); ``best``:
            ring the epoch of each cell's highest test accuracy.
        published: not used; papers print no such numbers.

    Raises:
        UserError: the defense does not exist, or there are too many to distinguish.
    """
    history = chosen(metrics, settings)
    wanted = listed(settings["defense"])
    for defense in wanted:
        if defense not in set(history["defense"]):
            known = nearest(defense, set(history["defense"]))
            raise UserError(f"figure setting 'defense': no cell is called '{defense}'; {known}")
    history = history[history["defense"].isin(wanted)] if wanted else history
    many = history.groupby(["dataset", "model"])["defense"].nunique().max()
    if many > MOST:
        raise UserError(f"figure setting 'defense': {many} in one panel cannot be distinguished; name up to {MOST}")
    rows = _curves(history)
    looks = _looks(rows)
    parts = panels(rows)
    has_budget = (rows["metric"] == "epsilon_spent").any()
    figure, axes = canvas(1 + has_budget, len(parts), sharey="row")
    for column, (heading, part) in enumerate(parts):
        axes[0][column].set_title(heading, loc="left")
        _panel(axes[0][column], part, looks)
        if settings["best"]:
            _rings(axes[0][column], part)
        if has_budget:
            _lines(axes[1][column], part[part["metric"] == "epsilon_spent"], looks)
        axes[-1][column].set_xlabel("epoch")
    # Set the shared axes after all panels are drawn, so that no panel is cut to another's range.
    axes[0][0].set_ylim(0, None)
    if has_budget:
        log_axis(axes[1][0], "y", rows.loc[rows["metric"] == "epsilon_spent", "measured"], span=None)
    axes[0][0].set_ylabel("accuracy (fraction right)")
    if has_budget:
        axes[1][0].set_ylabel("ε spent so far")
    guess, beyond_axis = draw_guessing(list(zip(axes[0], (part for _, part in parts), strict=True)))
    notes = ["Solid: new records; dashed: records trained on.", *beyond_axis]
    if settings["best"]:
        found = ", ".join(f"{heading} {best_epoch(part)}" for heading, part in parts)
        notes.append(f"Ring: the epoch of the highest accuracy on new records: {found}.")
    return finish(
        figure, [*map(sample, looks.values()), *guess], [*notes, *own_notes(settings)], settings.get("title")
    ), rows


def _curves(history: pd.DataFrame) -> pd.DataFrame:
    """Return the mean and 95 % interval over the repeats for every cell, epoch and metric."""
    numbers = [metric for metric in (*ACCURACIES, "epsilon_spent") if metric in history]
    long = history.melt([*OF_CELL, "repeat", "epoch"], numbers, "metric", "value").dropna(subset="value")
    groups = long.groupby([*OF_CELL, "epoch", "metric"], dropna=False, sort=False)["value"]
    found = groups.agg(measured="mean", spread="std", repeats="size").reset_index()
    reach = _student(found["repeats"]) * found["spread"] / np.sqrt(found["repeats"])
    rows = found.assign(low=found["measured"] - reach, high=found["measured"] + reach)
    guessing = ["guessing"] if "guessing" in history else []
    if guessing:
        guesses = history.drop_duplicates(CELL)[[*CELL, *guessing]].assign(metric="test_accuracy")
        rows = rows.merge(guesses, how="left", on=[*CELL, "metric"])
    return in_order(unprinted(rows))[[*OF_CELL, "epoch", *guessing, *NUMBERS]]


def _student(repeats: pd.Series) -> np.ndarray:
    """Return Student's t quantiles for 95 %; NaN for a single repeat, which has no spread."""
    from scipy.special import stdtrit

    degrees = repeats.to_numpy(dtype=float) - 1
    return np.where(degrees > 0, stdtrit(np.maximum(degrees, 1), 0.975), np.nan)


def best_epoch(part: pd.DataFrame) -> str:
    """Return the first epoch with the highest test accuracy, for each cell in turn."""
    return ", ".join(str(row.epoch) for row in _best(part).itertuples())


def _best(part: pd.DataFrame) -> pd.DataFrame:
    on_new = part[part["metric"] == "test_accuracy"].sort_values("epoch")
    return on_new.loc[on_new.groupby("defense", sort=False)["measured"].idxmax()]


def _rings(ax: "Axes", part: pd.DataFrame) -> None:
    for row in _best(part).itertuples():
        ax.plot([row.epoch], [row.measured], "o", markersize=11, markerfacecolor="none", color=INK, zorder=4)


def _panel(ax: "Axes", part: pd.DataFrame, looks: Looks) -> None:
    for metric, dashes in ACCURACIES.items():
        rows = part[part["metric"] == metric]
        _lines(ax, rows, {defense: replace(one, dashes=dashes) for defense, one in looks.items()}, named=not dashes)
        draw_bands(ax, rows, "epoch", looks, "defense")


def _lines(ax: "Axes", rows: pd.DataFrame, looks: Looks, named: bool = False) -> None:
    """Draw the lines of a metric, with a few markers."""
    every = max(1, rows["epoch"].nunique() // 6)
    draw_lines(ax, rows, "epoch", "measured", looks, "defense", named=named, markevery=every)


def _looks(rows: pd.DataFrame) -> dict[str, Look]:
    """Return defense → its series' style; further budgets are thinner, with partly filled markers."""
    looks: dict[str, Look] = {}
    for series, line in each_series(rows.drop_duplicates("defense")):
        for place, row in enumerate(line.itertuples()):
            label = look(series).label + (f", {cell_words(row)}" if series.accountant else "")
            fill = FILLS[place % len(FILLS)]
            looks[row.defense] = replace(look(series), label=label, dashes=(), fill=fill, thin=place > 0)
    return looks
