"""Accuracy against leakage of different types of models, undefended and private, in one figure."""

from typing import TYPE_CHECKING, Any

import pandas as pd

from dp_leakage.figures.curves import draw_guessing
from dp_leakage.figures.marks import Looks, draw_bars, draw_lines, draw_points
from dp_leakage.figures.pareto import drawn_points, label_axes, label_budgets, use_columns
from dp_leakage.figures.style import finish, panel_grid, sample, styled
from dp_leakage.table.frames import chosen, is_private
from dp_leakage.table.looks import COLORS, GRAY, INK, told_apart
from dp_leakage.table.notes import remarks, spent_notes, threshold_notes
from dp_leakage.table.words import name

if TYPE_CHECKING:
    from matplotlib.artist import Artist
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

FIGURE = {
    "caption": "Accuracy (or the study's measure of use) against leakage for different kinds of models. "
    "Open marks are undefended models, filled marks are private models of the same kind with their accounted ε. Bottom "
    "right is best: useful, and nothing leaks. Leakage is the advantage of the strongest attack on each model.",
    "settings": {"attack": {"$ref": "#/$defs/attack"}},
}

COLORED = (*COLORS[:6], INK, *COLORS[6:])
MARKERS = "os^DvPXph<"  # one with each color


@styled
def draw(
    metrics: pd.DataFrame, settings: dict[str, Any], published: pd.DataFrame | None
) -> "tuple[Figure, pd.DataFrame]":
    """Draw one panel per data set, a color and mark per model: open undefended, filled private with its ε.

    Settings:
        attack: attack whose advantage is shown; None: the strongest in each cell, corrected for the choice.
    """
    from matplotlib.lines import Line2D

    frame = chosen(metrics, settings)
    rows, meaning = drawn_points(frame, settings["attack"], published, ["best"])
    looks = told_apart({model: name(model) for model in frame["model"]}, COLORED, MARKERS)
    parts = [(name(str(dataset)), part) for dataset, part in rows.groupby("dataset", sort=False)]
    figure, grid = panel_grid(parts, 2, (5.2, 4.2), sharex=False, sharey=False)
    for ax, part in grid:
        ax.axhline(0, color=GRAY, linewidth=0.7)
        _panel(ax, part, looks)
        label_axes(ax, rows, settings["attack"])
    entries: list[Artist] = [sample(one, linestyle="none") for one in looks.values()]
    entries += [
        Line2D([], [], color=GRAY, marker="o", markerfacecolor="white", linestyle="none", label="undefended"),
        Line2D([], [], color=GRAY, marker="o", label="private, with the ε that it spent"),
    ]
    guess, beyond_axis = draw_guessing(grid, "x")
    notes = [
        "Bars: 95 % intervals.",
        *beyond_axis,
        *meaning,
        *threshold_notes(rows),
        *remarks(frame),
        *spent_notes(rows, settings),
    ]
    finish(figure, [*entries, *guess], notes, settings.get("title"))
    figure.draw_without_rendering()  # labels need the final places of the points
    for ax, part in grid:
        label_budgets(ax, part, looks, "model")
    return figure, rows


def _panel(ax: "Axes", part: pd.DataFrame, looks: Looks) -> None:
    part = part.sort_values(["epsilon", "epsilon_spent"], na_position="last")
    use, low, high = use_columns(part)
    to_draw = (use, "measured", looks, "model")
    draw_bars(ax, part, *to_draw, across=(low, high), elinewidth=0.6, alpha=0.4)
    draw_lines(ax, part, *to_draw, sort=False, markers=False, linewidth=0.9, alpha=0.6, zorder=2)
    draw_points(ax, part[is_private(part)], *to_draw, markersize=6)
    draw_points(ax, part[~is_private(part)], *to_draw, markersize=6, markerfacecolor="white")
