"""Tables as pictures: columns as wide as their words, thin rules, nothing that can overlap."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import cache
from itertools import pairwise
from typing import TYPE_CHECKING

from dp_leakage.figures.style import GRAY, INK, footnotes

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

SIZE, NOTE_SIZE = 7.5, 7.0  # points
ROW, GAP, MARGIN = 0.165, 0.16, 0.12  # inches: a row's height, between columns, around the table
SLACK = 1.04  # hinting on screen makes text a little wider than its outlines


@dataclass(frozen=True)
class Table:
    """One table of a figure.

    Attributes:
        heading: above it.
        columns: heads of the columns.
        rows: cells as text, a list as long as ``columns`` each; an empty list draws a thin rule.
        groups: (words, number of columns) above the heads, from left to right, together all columns.
        left: how many of the first columns are flush left; the others are flush right.
    """

    heading: str
    columns: Sequence[str]
    rows: Sequence[Sequence[str]]
    groups: Sequence[tuple[str, int]] = field(default=())
    left: int = 1


def blocks(parts: Iterable[tuple[str, Sequence[Sequence[str]]]]) -> list[list[str]]:
    """Rows of a table from (name, rows): the name stands once, at its first row; rules part blocks of several rows."""
    lines: list[list[str]] = []
    for words, rows in parts:
        if lines and (len(rows) > 1 or not lines[-1]):
            lines.append([])
        lines += [[words if place == 0 else "", *row] for place, row in enumerate(rows)]
        if len(rows) > 1:
            lines.append([])
    return [line for line, after in zip(lines, [*lines[1:], [""]], strict=True) if line or after]


def draw_tables(tables: Sequence[Table], notes: Iterable[str] = (), title: str | None = None) -> "Figure":
    """The tables one below the other, then the footnotes; the figure is as large as they need."""
    from matplotlib.figure import Figure

    heading = _inches(title, 10, bold=True) if title else 0.0
    width = max(max(_edges(table)[-1] for table in tables) + 2 * MARGIN, heading + 2 * MARGIN, 5.2)
    heights = [_height(table) for table in tables]
    top = MARGIN + (0.28 if title else 0)
    figure = Figure()
    text = footnotes(figure, notes, width)
    height = top + sum(heights) + 0.12 * (text.count("\n") + 1) + MARGIN + 0.05
    figure.set_size_inches(width, height)
    ax = figure.add_axes((0, 0, 1, 1))
    ax.set(xlim=(0, width), ylim=(height, 0))  # inches from the upper left corner
    ax.set_axis_off()
    if title:
        ax.text(MARGIN, MARGIN, title, fontsize=10, fontweight="bold", va="top")
    for table, below in zip(tables, heights, strict=True):
        _draw(ax, table, top)
        top += below
    ax.text(MARGIN, top, text, fontsize=NOTE_SIZE, color=GRAY, va="top", linespacing=1.2)
    return figure


def _draw(ax: "Axes", table: Table, top: float) -> None:
    edges = [MARGIN + edge for edge in _edges(table)]
    y = top + ROW / 2

    def write(column: int, words: str, **how: object) -> None:
        flush = "left" if column < table.left else "right"
        x = edges[column] if flush == "left" else edges[column + 1] - GAP
        ax.text(x, y, words, ha=flush, va="center_baseline", fontsize=SIZE, **how)

    def rule(left: float, right: float, at: float, width: float) -> None:
        ax.plot([left, right], [at, at], color=INK, linewidth=width, solid_capstyle="butt")

    right = edges[-1] - GAP
    ax.text(edges[0], y, table.heading, va="center_baseline", fontsize=8.5, fontweight="bold")
    y += ROW * 1.1
    rule(edges[0], right, y - ROW / 2, 0.9)
    start = 0
    for words, span in table.groups:
        if words:
            here = edges[start], edges[start + span] - GAP
            ax.text(sum(here) / 2, y, words, ha="center", va="center_baseline", fontsize=SIZE, fontweight="bold")
            rule(*here, y + ROW / 2, 0.4)
        start += span
    y += ROW if table.groups else 0
    for column, words in enumerate(table.columns):
        write(column, words, color=GRAY)
    rule(edges[0], right, y + ROW / 2, 0.6)
    for row in table.rows:
        if not row:
            rule(edges[0], right, y + ROW / 2, 0.3)
            continue
        y += ROW
        for column, words in enumerate(row):
            write(column, words)
    rule(edges[0], right, y + ROW / 2, 0.9)


def _height(table: Table) -> float:
    lines = 2.1 + bool(table.groups) + sum(bool(row) for row in table.rows)
    return ROW * lines + 0.2


def _edges(table: Table) -> list[float]:
    """Left edges of the columns in inches, and the right end; a group's head may make its last column wider."""
    cells = [table.columns, *(row for row in table.rows if row)]
    widths = [max(_inches(row[column]) for row in cells) + GAP for column in range(len(table.columns))]
    start = 0
    for words, span in table.groups:
        missing = _inches(words, bold=True) + GAP - sum(widths[start : start + span])
        widths[start + span - 1] += max(missing, 0)
        start += span
    widths[-1] += max(_inches(table.heading, 8.5, bold=True) + GAP - sum(widths), 0)
    edges = [0.0]
    for width in widths:
        edges.append(edges[-1] + width)
    assert all(b > a for a, b in pairwise(edges))
    return edges


@cache
def _inches(words: str, size: float = SIZE, bold: bool = False) -> float:
    """The width of a text on paper."""
    from matplotlib.font_manager import FontProperties
    from matplotlib.textpath import text_to_path

    font = FontProperties(family="DejaVu Sans", weight="bold" if bold else "normal", size=size)
    return text_to_path.get_text_width_height_descent(words, font, ismath=False)[0] * SLACK / 72
