"""Series over ε (target or accounted) or over the noise, in panels: lines, bands, hollow printed values, a place for
∞.
"""

from collections.abc import Callable, Sequence
from textwrap import fill
from typing import TYPE_CHECKING, Literal

import numpy as np
import pandas as pd

from dp_leakage.common.utilities import label_of
from dp_leakage.figures.marks import draw_measured, draw_points, looks_of, with_series
from dp_leakage.figures.style import EPSILON_RANGE, finish, label_edges, log_axis, panel_grid, sample
from dp_leakage.metrics import utility
from dp_leakage.table.frames import each_series, is_private, panels, series_of
from dp_leakage.table.looks import GRAY, INK, look, order
from dp_leakage.table.words import metric_words

if TYPE_CHECKING:
    from matplotlib.artist import Artist
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

ACCURACIES = {"test_accuracy", "train_accuracy"}
CLAIMED_LABEL = "claimed privacy budget ε  (→ weaker protection)"


def draw_series(
    rows: pd.DataFrame,
    *,
    x: str,
    x_label: str,
    by: Sequence[str] = ("dataset", "model"),
    named: Sequence[str] | None = None,
    span: tuple[float, float] | None = EPSILON_RANGE,
    sharey: bool = True,
    y_max: float | None = None,
    behind: "Callable[[Axes, pd.DataFrame], list[Artist]] | None" = None,
    notes: Sequence[str] = (),
    title: str | None = None,
) -> "Figure":
    """Draw one panel per combination of ``by``, one line per series.

    Args:
        rows: as `frames.drawn_numbers` gives them; ``x`` is a column. A point with infinite x, or of a non-private row,
            has a place to the right of the axis.
        x: column on the horizontal axis.
        x_label: its label, with what it means.
        by: columns whose values make panels; the values of the last are side by side if they are few.
        named: columns of ``by`` in the panels' headings; None: all.
        span: minimum range of the horizontal axis; None: range of the values.
        sharey: whether all panels share the vertical axis.
        y_max: end of the vertical axis; larger values are marked there, and the largest are in a footnote.
        behind: draws limits behind the series of a panel; returns legend entries.
        notes: footnotes.
        title: title of the figure.
    """
    parts = [(fill(heading, 40), part) for heading, part in panels(rows, by, named)]
    across = _across(rows, by)
    figure, grid = panel_grid(parts, across, sharey=sharey)
    infinite = _infinite(rows, x)
    backdrop: list[Artist] = []
    looks = looks_of(rows)
    for ax, part in grid:
        beyond, step = log_axis(ax, "x", rows.loc[is_private(rows), x], span=span, infinite=infinite)
        ax.set_ylim(*_limits(rows if sharey else part, y_max))
        ax.axhline(0, color=GRAY, linewidth=0.7)
        if behind is not None:
            backdrop = behind(ax, part)
        part, finite = with_series(part), _finite(part, x)
        # Side by side beyond the axis, or they would hide each other.
        aside = [label for label in looks if label in set(part.loc[~finite, "series"])]
        places = {label: beyond * step ** (place - (len(aside) - 1) / 2) for place, label in enumerate(aside)}
        part = part.assign(at=part[x].where(finite, part["series"].map(places)))
        draw_measured(ax, part, "at", looks, finite)
        if y_max is not None:
            above = part[part["measured"] > y_max].assign(edge=y_max)
            draw_points(ax, above, "at", "edge", looks, markers=False, style=None, marker="^", clip_on=False, zorder=5)
    words = [_upward(part) for _, part in grid]
    label_edges([ax for ax, _ in grid], across, x_label, words)
    guess, beyond_axis = draw_guessing(grid)
    entries = [*legend(rows), *backdrop, *guess]
    return finish(figure, entries, [*_above_note(rows, y_max), *beyond_axis, *notes], title)


def _upward(part: pd.DataFrame) -> str:
    """Return the label of the vertical axis for a panel's metric."""
    metric = str(part["metric"].iloc[0])
    if metric == utility.METRIC:
        return f"{label_of(part['of'].iloc[0])} on new records"
    if metric == utility.LOSS:
        return f"loss of {label_of(part['of'].iloc[0])} (fraction of\nthe non-private one)"
    return metric_words(metric)


def draw_guessing(
    grid: "Sequence[tuple[Axes, pd.DataFrame]]", which: Literal["x", "y"] = "y"
) -> "tuple[list[Artist], list[str]]":
    """Draw in finished panels the result of predicting the most frequent class, which a useful model must exceed.

    Args:
        grid: (panel, rows) with a column ``guessing`` (`frames.metric_rows`); nothing is drawn without it.
        which: the axis of the accuracies, or of the accuracy losses.

    Returns:
        The legend's entry, and a footnote on guesses that lie beyond an axis.
    """
    from matplotlib.lines import Line2D

    style = {"color": GRAY, "linewidth": 1.1, "linestyle": (0, (1, 1.5))}
    inside: set[float] = set()
    beyond: set[float] = set()
    for ax, part in grid:
        low, high = sorted(ax.get_xlim() if which == "x" else ax.get_ylim())
        for value in part["guessing"].dropna().unique() if "guessing" in part else []:
            if low <= value <= high:
                (ax.axvline if which == "x" else ax.axhline)(value, zorder=1, **style)
            (inside if low <= value <= high else beyond).add(value)
    ends = " to ".join(dict.fromkeys(f"{end:.3g}" for end in (min(beyond), max(beyond)))) if beyond else ""
    other = any({"of_use"} & {*part} or (part["metric"] == utility.METRIC).any() for _, part in grid)
    guessing = "guessing" if other else "guessing the most frequent class"
    notes = [f"Beyond the axis: {guessing}, at {ends}."] if beyond else []
    return [Line2D([], [], label=guessing, **style)] if inside else [], notes


def _above_note(rows: pd.DataFrame, y_max: float | None) -> list[str]:
    """Return a note on the values above the axis."""
    out = rows[rows["measured"] > (np.inf if y_max is None else y_max)]
    reach = [f"{look(series).label} {line['measured'].max():.2f}" for series, line in each_series(out)]
    return [f"Triangles at the upper edge: beyond the axis, at most {', '.join(reach)}."] if reach else []


def _limits(rows: pd.DataFrame, y_max: float | None) -> tuple[float, float]:
    """Return the vertical axis limits: all measured or printed values with intervals and a margin; at least to 0.05
    around 0.

    The axis omits 0 if all accuracies are in the upper half of their range, so that differences stay visible.
    """
    numbers = rows[["measured", "low", "high", "published"]].to_numpy(dtype=float)
    numbers[np.isnan(numbers[:, 0]), 1:3] = np.nan  # of what was not measured nothing is drawn
    numbers = numbers[np.isfinite(numbers)]
    low, high = min(numbers.min(initial=0), 0), max(numbers.max(initial=0), 0.05)
    if len(numbers) and set(rows["metric"]) <= ACCURACIES and numbers.min() > high / 2:
        low = float(numbers.min())
    room = 0.05 * (high - low)
    return low - room, high + room if y_max is None else y_max


def _across(rows: pd.DataFrame, by: Sequence[str]) -> int:
    """Return the number of panel columns: the number of later facets if two or three; otherwise two, or three from five
    panels on.
    """
    combinations = len(rows[[*by]].drop_duplicates())
    columns = len(rows[[*by[1:]]].drop_duplicates())
    return columns if 1 < columns <= 3 else 3 if combinations > 4 or combinations == 3 else 2


def _finite(rows: pd.DataFrame, x: str) -> pd.Series:
    return np.isfinite(rows[x]) & is_private(rows)


def _infinite(rows: pd.DataFrame, x: str) -> str | None:
    """Return the tick label for values without a finite position, if there are any."""
    if not is_private(rows).all():
        return "no DP" if np.isfinite(rows.loc[is_private(rows), x]).all() else "∞"
    return None if np.isfinite(rows[x]).all() else "∞"


def legend(rows: pd.DataFrame) -> "list[Artist]":
    """Return legend entries for the series of all panels, and for bands and printed values if there are any."""
    from matplotlib.lines import Line2D
    from matplotlib.patches import Patch

    joined = set(series_of(rows[is_private(rows)]))
    every = sorted(set(series_of(rows)), key=order)
    entries: list[Artist] = [sample(look(one), **{} if one in joined else {"linestyle": "none"}) for one in every]
    if (rows["high"] > rows["low"]).any():
        entries.append(Patch(facecolor=GRAY, alpha=0.3, label="95 % interval"))
    if rows["published"].notna().any():
        hollow = {"marker": "o", "markersize": 7.5, "markerfacecolor": "none", "linestyle": "none"}
        entries.append(Line2D([], [], color=INK, label="printed in the paper", **hollow))
    return entries
