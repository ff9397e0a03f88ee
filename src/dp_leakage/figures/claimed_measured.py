"""Target, accounted and lower-bound ε of every cell, side by side."""

from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from dp_leakage.common.errors import UserError
from dp_leakage.figures.style import canvas, finish, log_axis, styled
from dp_leakage.metrics.rows import CELL
from dp_leakage.metrics.spent import compared, contradicted, spent
from dp_leakage.table.frames import chosen, drawn_numbers, each_cell, panels
from dp_leakage.table.looks import ALARM, GRAY, INK
from dp_leakage.table.notes import own_notes, remarks
from dp_leakage.table.numbers import cell_label
from dp_leakage.table.words import name

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

FIGURE = {
    "cells": "bounded",
    "caption": "Target ε of each defense, accounted ε of its training (blue), and the lower bound proven by an audit "
    "(orange). A red bound, to the right of the accounted ε, proves an error. The blue mark is missing if the "
    "training is not private, or if no valid accountant covers the neighbors that the axis names. In the second "
    "case, the bound is compared with an ε for other neighbors, converted.",
}

MEASURED = "#d55e00"
CLAIMED = {"marker": "o", "markersize": 5, "markerfacecolor": "none", "markeredgecolor": INK, "linestyle": "none"}
SPENT = {"marker": "|", "markersize": 10, "markeredgewidth": 1.6, "markeredgecolor": "#0072b2", "linestyle": "none"}
PROVED = {"marker": ">", "markersize": 5, "color": MEASURED, "linewidth": 2}


@styled
def draw(
    metrics: pd.DataFrame, settings: dict[str, Any], published: pd.DataFrame | None
) -> "tuple[Figure, pd.DataFrame]":
    """Draw one panel per (data set, model), one line per defense and budget; the largest bound of each
    cell is drawn.
    """
    from matplotlib.lines import Line2D

    frame = chosen(metrics, settings)
    bounds = frame[frame["metric"] == "epsilon_lower_bound"]
    if bounds.empty:
        raise UserError("figure of kind 'claimed_measured': no cell was audited; expected a study with key 'audit'")
    bounds = bounds[bounds["neighbors"] != "presence"]  # the same guesses, said of other neighbors
    best = bounds.sort_values("value", kind="stable").drop_duplicates(CELL, keep="last")
    relations = best["neighbors"].unique()
    if len(relations) > 1:
        of = [f"{name(one)} of {', '.join(best.loc[best['neighbors'] == one, 'defense'])}" for one in relations]
        words = "have no common axis; select cells of one kind (key select), or a figure for each"
        raise UserError(f"figure of kind 'claimed_measured': bounds for different neighbors ({'; '.join(of)}) {words}")
    tight = spent(frame, relations[0])
    broken = contradicted(frame)
    best = best.merge(tight, how="left", on=CELL).merge(
        broken[CELL].drop_duplicates().assign(broken=True), how="left", on=CELL
    )
    best = best.assign(broken=best["broken"].notna())
    rows = drawn_numbers(best, published, extra=["epsilon_spent", "spent_accountant", "broken"])
    parts = panels(rows)
    longest = max(len(part) for _, part in parts)
    figure, axes = canvas(len(parts), 1, panel=(6.2, 0.75 + 0.17 * longest), sharex=True, sharey=False)
    seen = pd.concat([rows["epsilon"], rows["epsilon_spent"], rows["measured"]])
    for (ax,), (heading, part) in zip(axes, parts, strict=True):
        ax.set_title(heading, loc="left")
        _panel(ax, part, seen)
    axes[-1][0].set_xlabel(f"ε (for {name(relations[0])} neighbors, but for the claimed)")
    handles = [
        Line2D([], [], label="claimed (as its accountant means it)", **CLAIMED),
        Line2D([], [], label="spent, smallest valid bound", **SPENT),
        Line2D([], [], label="measured: at least", **PROVED),
    ]
    wrong = int(rows["broken"].sum())
    verdict = f"{wrong} above what was spent, in red: an error." if wrong else _fine(frame, best)
    notes = [
        f"Measured: lower bounds of audits; all in the study hold together with 95 % confidence. {verdict}",
        *remarks(frame),
        *own_notes(settings),
    ]
    return finish(figure, handles, notes, settings.get("title")), rows


def _fine(frame: pd.DataFrame, best: pd.DataFrame) -> str:
    """State that no lower bound exceeds the accounted ε, among those that can be compared."""
    known = compared(frame)
    known = set(known.loc[known["allowed"].notna(), CELL].itertuples(index=False, name=None))
    unknown = sum(key not in known for key in best[CELL].itertuples(index=False, name=None))
    if not unknown:
        return "None exceeds what was spent."
    if unknown == len(best):
        return "What was spent is known of none for these neighbors, so none can be compared."
    return f"None exceeds what was spent, which for {unknown} of {len(best)} is not known for these neighbors."


def _panel(ax: "Axes", part: pd.DataFrame, seen: pd.Series) -> None:
    log_axis(ax, "x", [value for value in seen if np.isfinite(value)], span=(0.1, 100))
    labels: list[str] = []
    left = ax.get_xlim()[0]
    for place, (series, cell) in enumerate(each_cell(part)):
        (row,) = cell.itertuples()
        labels.append(cell_label(series, row))
        ax.plot([row.epsilon], [place], zorder=3, **CLAIMED)
        ax.plot([row.epsilon_spent], [place], zorder=4, **SPENT)
        if row.measured > left:
            style = {**PROVED, "color": ALARM if row.broken else MEASURED, "markevery": [1]}
            ax.plot([left, row.measured], [place, place], zorder=2, **style)
    ax.set(ylim=(len(labels) - 0.5, -0.5))
    ax.set_yticks(range(len(labels)), labels, fontsize=7)
    ax.tick_params(axis="y", length=0)
    ax.axvline(left, color=GRAY, linewidth=0.7)
