"""Marks: short functions that draw rows into a panel with seaborn, and return the panel.

seaborn draws lines, points and heat maps in the looks of `style`. It averages nothing and computes no interval: the
rows hold each point once and its 95 % interval as ``low`` and ``high``, which `draw_bands` and `draw_bars` draw.

Rows have a column, usually ``series``, whose values are the keys of ``looks`` and decide the style.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd
import seaborn as sns
from matplotlib.axes import Axes
from matplotlib.markers import MarkerStyle
from matplotlib.transforms import Affine2D

from dp_leakage.table.frames import series_of
from dp_leakage.table.looks import Look, look, order

Looks = Mapping[str, Look]
HOLLOW = {"markersize": 7.5, "markerfacecolor": "none", "zorder": 4}  # of what a paper prints


def with_series(rows: pd.DataFrame) -> pd.DataFrame:
    """Return the rows with the label of their series in a column ``series``."""
    return rows.assign(series=[look(series).label for series in series_of(rows)])


def looks_of(rows: pd.DataFrame) -> dict[str, Look]:
    """Return the styles of all series of the rows by label, in the order of legends."""
    return {look(series).label: look(series) for series in sorted(set(series_of(rows)), key=order)}


def draw_lines(
    ax: Axes, rows: pd.DataFrame, x: str, y: str, looks: Looks, by: str = "series", *, named: bool = False, **style: Any
) -> Axes:
    """Draw a line with markers for each name of ``looks``, in the order of ``x``.

    Args:
        ax: the panel.
        rows: rows to draw; rows without finite ``x`` and ``y`` are left out.
        x: column on the horizontal axis.
        y: column on the vertical axis.
        looks: style of each value of the column ``by``.
        by: the column that decides the style.
        named: whether `labels` writes the names at the ends of the lines.
        style: keywords of all lines.
    """
    rows = rows[np.isfinite(rows[x]) & np.isfinite(rows[y])]
    if rows.empty:  # seaborn would warn that there is nothing to color
        return ax
    before, said = len(ax.lines), {"xlabel": ax.get_xlabel(), "ylabel": ax.get_ylabel()}
    marked = all(one.marker for one in looks.values())
    semantics = {
        "palette": {name: one.color for name, one in looks.items()},
        "markers": marked and {name: _marker(one) for name, one in looks.items()},
        "dashes": {name: one.dashes or "" for name, one in looks.items()},
    }
    fixed = {"estimator": None, "errorbar": None, "legend": False, "zorder": 3}
    edges = {"markeredgecolor": "auto", "markerfacecoloralt": "white", "markeredgewidth": 0.9}
    orders = {"hue_order": list(looks), "style_order": list(looks)}
    sns.lineplot(rows, x=x, y=y, ax=ax, **{"hue": by, "style": by} | fixed | edges | orders | semantics | style)
    ax.set(**said)  # seaborn has written the names of the columns
    drawn = set(rows[by])
    for line, one in zip(ax.lines[before:], (looks[name] for name in looks if name in drawn), strict=True):
        line.set_label(one.label if named else "")
        if one.thin and "linewidth" not in style:
            line.set_linewidth(0.8)
    return ax


def _marker(one: Look) -> MarkerStyle:
    return MarkerStyle(one.marker, one.fill, Affine2D().scale(1.75 if one.marker == "*" else 1))


def draw_points(ax: Axes, rows: pd.DataFrame, x: str, y: str, looks: Looks, by: str = "series", **style: Any) -> Axes:
    """Draw the markers alone; `seaborn.scatterplot` has no half-filled ones, and no hollow ones in several colors."""
    return draw_lines(ax, rows, x, y, looks, by, **{"linestyle": "none", "dashes": False} | style)


def draw_bands(ax: Axes, rows: pd.DataFrame, x: str, looks: Looks, by: str = "series") -> Axes:
    """Draw the 95 % intervals along the line of each name."""
    for name, line in rows.sort_values(x, kind="stable").groupby(by, sort=False):
        ax.fill_between(line[x], line["low"], line["high"], color=looks[str(name)].color, alpha=0.16, linewidth=0)
    return ax


def draw_bars(
    ax: Axes,
    rows: pd.DataFrame,
    x: str,
    y: str,
    looks: Looks,
    by: str = "series",
    *,
    upward: Sequence[str] = ("low", "high"),
    across: Sequence[str] = (),
    **style: Any,
) -> Axes:
    """Draw the 95 % intervals of single points; ``upward`` and ``across`` name the columns of the vertical and
    horizontal ones.
    """
    for name, points in rows.groupby(by, sort=False):
        reach = {
            error: np.nan_to_num(np.clip([points[middle] - points[ends[0]], points[ends[1]] - points[middle]], 0, None))
            for error, middle, ends in (("xerr", x, across), ("yerr", y, upward))
            if ends
        }
        color = looks[str(name)].color
        ax.errorbar(points[x], points[y], fmt="none", ecolor=color, **{"elinewidth": 1, "zorder": 2} | reach | style)
    return ax


def draw_measured(
    ax: Axes, rows: pd.DataFrame, x: str, looks: Looks, joined: "pd.Series[bool]", by: str = "series"
) -> Axes:
    """Draw measured and printed values: a line and a band through ``joined`` points, bars on the others.

    A single joined point gets a bar too.
    """
    joined = joined & (joined.groupby(rows[by]).transform("sum") > 1)
    draw_bands(ax, rows[joined], x, looks, by)
    draw_lines(ax, rows[joined], x, "measured", looks, by, named=True)
    draw_bars(ax, rows[~joined], x, "measured", looks, by, capsize=2)
    draw_points(ax, rows[~joined], x, "measured", looks, by, named=True)
    return draw_points(ax, rows, x, "published", looks, by, **HOLLOW)


def draw_heat_map(
    ax: Axes, tiles: pd.DataFrame, texts: pd.DataFrame, styles: pd.DataFrame | None = None, **heat: Any
) -> Axes:
    """Draw a heat map with a text in each cell, in a color that is legible on its shade.

    Args:
        ax: the panel.
        tiles: numbers ≥ 0; NaN for no tile.
        texts: text of each tile.
        styles: keywords for each text, since seaborn has one style for all.
        heat: palette and ``vmax``, as for `seaborn.heatmap`.
    """
    fixed = {"fmt": "", "annot_kws": {"fontsize": 6.5}, "cbar": False, "linewidths": 0.5, "linecolor": "white"}
    before = len(ax.texts)
    sns.heatmap(tiles, annot=texts, ax=ax, vmin=0, **fixed, **heat)
    if styles is not None:
        for text, style in zip(ax.texts[before:], styles.to_numpy()[tiles.notna().to_numpy()], strict=True):
            text.set(**style)
    ax.tick_params(length=0, labelsize=7, rotation=0)
    ax.set(xlabel="", ylabel="")
    ax.grid(visible=False)
    return ax
