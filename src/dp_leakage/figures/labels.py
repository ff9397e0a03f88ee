"""Names at the right ends of lines, in their colors, in place of a legend.

A line with a ``label`` is named next to the last panel of its row; if no last panel has the line, next to the last
panel of each row that has it.
"""

from collections.abc import Iterator, Sequence
from colorsys import hls_to_rgb, rgb_to_hls
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from matplotlib.lines import Line2D

    Beside = Sequence[tuple[Axes, dict[str, Line2D]]]  # panels, each with the lines that are named beside it

GAP = 10.5 / 72  # inches from one name to the next
LEADER, SAMPLE, TEXT = 14.0, 19.0, 25.0  # points right of the panel: where a leader ends, the marker and the name stand
DARK = 0.25  # lightness at which each of our colors has the contrast of 4.5 that WCAG 2 asks of letters


def named_lines(ax: "Axes") -> "dict[str, Line2D]":
    """Return the lines of a panel that have a name, and of intervals the markers."""
    handles, names = ax.get_legend_handles_labels()
    return {name: getattr(handle, "lines", [handle])[0] for handle, name in zip(handles, names, strict=True)}


def named_beside(figure: "Figure") -> "Beside":
    """Return the panels with names next to them, each with its named lines."""
    rows = list(_rows(figure))
    last = {name for row in rows for name in named_lines(row[-1])}
    found: list[tuple[Axes, dict[str, Line2D]]] = []
    for row in rows:
        there = [named_lines(ax) for ax in row]
        for place, ax in enumerate(row):
            later = last.union(*there[place + 1 :]) if ax is not row[-1] else set()
            own = {name: line for name, line in there[place].items() if name not in later}
            found += [(ax, own)] if own else []
    return found


def room_for(beside: "Beside") -> float:
    """Return the width in inches of the names next to the panels."""
    longest: dict[int, int] = {}
    for ax, lines in beside:
        longest[_column(ax)] = max(longest.get(_column(ax), 0), *map(len, lines))
    return sum(TEXT / 72 + 0.066 * letters for letters in longest.values())


def name_lines(figure: "Figure", beside: "Beside") -> None:
    """Write the names next to the panels, and make the figure higher if necessary."""
    from matplotlib.layout_engine import ConstrainedLayoutEngine

    if not beside:
        return
    lay_out = ConstrainedLayoutEngine().execute
    lay_out(figure)
    width, height = figure.get_size_inches()
    lacking = max(GAP * len(lines) - ax.get_position().height * height for ax, lines in beside)
    if lacking > 0:
        figure.set_size_inches(width, height + lacking * len(list(_rows(figure))))
        lay_out(figure)
    for ax, lines in beside:
        _name_lines_of(ax, lines, GAP / (ax.get_position().height * figure.get_size_inches()[1]))


def apart(places: np.ndarray, gap: float) -> np.ndarray:
    """Move positions in [0, 1] as little as possible (in squares) until all are ``gap`` apart.

    Args:
        places: shape (n,).
        gap: at most 1/n; half of it stays free at both ends too.
    """
    from scipy.optimize import isotonic_regression

    order = np.argsort(places, kind="stable")
    steps = gap * np.arange(len(places))
    moved = np.empty(len(places))
    free = isotonic_regression(places[order] - steps).x  # names in touch are one block
    moved[order] = free.clip(gap / 2, max(1 - gap / 2 - steps[-1], gap / 2)) + steps
    return moved


def readable(color: str) -> tuple[float, ...]:
    """Darken a color until letters are legible on white."""
    from matplotlib.colors import to_rgb

    hue, lightness, saturation = rgb_to_hls(*to_rgb(color))
    return hls_to_rgb(hue, min(lightness, DARK), saturation)


def _rows(figure: "Figure") -> "Iterator[Sequence[Axes]]":
    """Yield the panels of each row, from left to right."""
    rows: dict[int, list[Axes]] = {}
    for ax in figure.axes:
        place = ax.get_subplotspec()
        if place is not None:
            rows.setdefault(place.rowspan.start, []).append(ax)
    yield from rows.values()


def _column(ax: "Axes") -> int:
    place = ax.get_subplotspec()
    return 0 if place is None else place.colspan.start


def _name_lines_of(ax: "Axes", lines: "dict[str, Line2D]", gap: float) -> None:
    to_panel = ax.transData + ax.transAxes.inverted()
    ends = np.array([to_panel.transform(_end(line)) for line in lines.values()]).clip(0, 1)
    for (name, line), end, high in zip(lines.items(), ends, apart(ends[:, 1], gap), strict=True):
        _name(ax, name, line, end, float(high))


def _end(line: "Line2D") -> np.ndarray:
    """Return the right end of a line, in data units."""
    points = np.column_stack([np.asarray(values, dtype=float) for values in line.get_data(orig=True)])
    points = points[np.isfinite(points).all(axis=1)]
    return points[points[:, 0].argmax()]


def _name(ax: "Axes", name: str, line: "Line2D", end: np.ndarray, high: float) -> None:
    """Draw a leader from the line's end, then its marker, then its name."""
    from matplotlib.lines import Line2D
    from matplotlib.transforms import offset_copy

    color = str(line.get_color())
    beside = {
        points: offset_copy(ax.transAxes, ax.figure, x=points, units="points") for points in (LEADER, SAMPLE, TEXT)
    }
    thin = {"arrowstyle": "-", "color": color, "linewidth": 0.6, "alpha": 0.6, "shrinkA": 0, "shrinkB": 0}
    ax.annotate("", end, (1, high), "axes fraction", beside[LEADER], arrowprops=thin, annotation_clip=False)
    marker = Line2D([1], [high])
    marker.update_from(line)
    marker.set(linestyle="none", transform=beside[SAMPLE], clip_on=False, markevery=None, label="")
    ax.add_artist(marker)
    ax.text(1, high, name, transform=beside[TEXT], color=readable(color), fontsize=8, va="center_baseline")
