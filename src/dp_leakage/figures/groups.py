"""Leakage by group of records, and the effect of a defense on it."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from dp_leakage.figures.style import finish, panel_grid, sample, styled
from dp_leakage.table.frames import chosen, drawn_numbers, metric_rows, panels
from dp_leakage.table.looks import COLORS, GRAY, INK, told_apart
from dp_leakage.table.notes import own_notes
from dp_leakage.table.numbers import cell_labels
from dp_leakage.table.words import called, name

if TYPE_CHECKING:
    from matplotlib.artist import Artist
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from dp_leakage.figures.marks import Looks

FIGURE = {
    "part": "groups",
    "caption": "Advantage of one attack within each group of records, under each defense: 0 is guessing, 1 is "
    "certainty. The attacker has one threshold for all groups, chosen on other records. Bars are 95 % intervals of "
    "each group alone. Some of many groups differ by chance; the interval in the report accounts for this.",
    "settings": {
        "attack": {
            "$ref": "#/$defs/attack",
            "description": "Attack whose advantage is shown; null for the first that was run.",
        },
        "by": {"$ref": "#/$defs/by"},
        "most": {"$ref": "#/$defs/most"},
    },
}

MARKERS = ("o", "s", "^", "D", "v", "P", "X", "d")


@styled
def draw(
    metrics: pd.DataFrame, settings: dict[str, Any], published: pd.DataFrame | None
) -> "tuple[Figure, pd.DataFrame]":
    """Draw one panel per (data set, model), a line for each group, a mark for each defense.

    Settings:
        attack: attack whose advantage is shown; None: the first that was run.
        by: criterion of the groups, such as ``class`` or a column; None: everything that was measured.
        most: maximum number of groups in a panel: those with the largest advantage under any defense.

    Raises:
        UserError: nothing was measured by group, or not by this attack.
    """
    rows = group_rows(chosen(metrics, settings), "group_advantage", settings)
    looks = told_apart(cell_labels(rows), (INK, *COLORS), MARKERS)
    parts = panels(rows)
    lines = max(part["called"].nunique() for _, part in parts)
    figure, grid = panel_grid(parts, 2, (3.6, 0.7 + 0.22 * lines), sharey=False)
    for ax, part in grid:
        _panel(ax, part, looks)
    legend: list[Artist] = [sample(one, linestyle="none") for one in looks.values()]
    notes = [f"Attack: {name(rows['attack'].iloc[0])}.", *own_notes(settings)]
    return finish(figure, legend, notes, settings.get("title")), rows.drop(columns="called")


def group_rows(frame: pd.DataFrame, metric: str, settings: dict[str, Any]) -> pd.DataFrame:
    """Return the csv rows of a metric of one attack, for the shown groups.

    Columns ``attack``, ``by`` and ``group`` identify the group, ``called`` is its readable name.
    """
    asked = metric_rows(frame, metric, attack=settings["attack"], by=settings["by"])
    asked = asked[asked["attack"] == asked["attack"].iloc[0]]
    asked = asked.assign(called=[called(by, group) for by, group in zip(asked["by"], asked["group"], strict=True)])
    shown = [_most(part, settings["most"]) for _, part in asked.groupby(["dataset", "model"], sort=False)]
    return drawn_numbers(pd.concat(shown), None, extra=["attack", "by", "group", "called"])


def _most(part: pd.DataFrame, most: int) -> pd.DataFrame:
    """Return the rows of the groups with the largest values under any defense."""
    largest = part.groupby("called", sort=False)["value"].max().sort_values(ascending=False, kind="stable")
    return part[part["called"].isin(largest.index[:most])]


def _panel(ax: "Axes", part: pd.DataFrame, looks: "Looks") -> None:
    from dp_leakage.figures.marks import draw_bars, draw_points  # a report imports this module, and draws nothing

    groups = order_of_groups(part)
    defenses = [defense for defense in looks if defense in set(part["defense"])]
    offsets = dict(zip(defenses, np.linspace(-0.3, 0.3, len(defenses)) if len(defenses) > 1 else [0.0], strict=True))
    part = part.assign(at=part["called"].map(groups.index) + part["defense"].map(offsets))
    draw_bars(ax, part, "measured", "at", looks, "defense", upward=(), across=("low", "high"))
    draw_points(ax, part, "measured", "at", looks, "defense")
    ax.axvline(0, color=GRAY, linewidth=0.8, zorder=0)
    ax.set_yticks(range(len(groups)), groups)
    ax.set_ylim(len(groups) - 0.5, -0.5)
    ax.grid(visible=False, axis="y")
    ax.set_xlabel("advantage within the group\n(true − false positive rate)")


def order_of_groups(part: pd.DataFrame) -> Sequence[str]:
    """Sort the groups by criterion, and within one by the largest value first."""
    largest = part.groupby(["by", "called"], sort=False)["measured"].max().reset_index()
    return list(largest.sort_values(["by", "measured"], ascending=[True, False], kind="stable")["called"])
