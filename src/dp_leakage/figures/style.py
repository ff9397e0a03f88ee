"""Style of all figures: one style per series, axes, legend, footnotes, and reproducible bytes.

A series keeps its color, marker and line style in every figure, also on a black-and-white print. Colors are of Okabe
and Ito's palette, which color-blind readers can distinguish.

seaborn sets theme, sizes and palette, and draws (`marks`); what it lacks is here and in `labels`.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import wraps
from io import BytesIO
from math import ceil, floor, isfinite, log10
from textwrap import fill
from typing import TYPE_CHECKING, Any, TypeVar

from dp_leakage.figures.labels import name_lines, named_beside, room_for
from dp_leakage.table.looks import ALARM, COLORS, FAINT, GRAY, INK, Look

if TYPE_CHECKING:
    from matplotlib.artist import Artist
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from matplotlib.transforms import Bbox
    from pandas import DataFrame

Drawn = TypeVar("Drawn")

EPSILON_RANGE = (0.01, 1000.0)
SUPERSCRIPTS = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")
PANEL = (3.5, 2.5)  # inches
LEAST = 5.2  # inches, of a figure's width
NOTE_LINES = 2
STRIP = "strip"  # the id of the words in it
NOTES = "Comment"  # the PNG's name for the notes that found no room
# Changes to seaborn's theme.
RC = {
    "font.family": "DejaVu Sans",
    "axes.titleweight": "bold",
    "axes.edgecolor": GRAY,
    "axes.labelcolor": INK,
    "axes.linewidth": 0.7,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "grid.color": FAINT,
    "grid.linewidth": 0.6,
    "legend.frameon": False,
    "lines.linewidth": 1.3,
    "lines.markersize": 4.5,
    "text.color": INK,
    "text.parse_math": False,  # what the user's titles and notes hold is text, a $ too
    "pdf.fonttype": 42,
    "savefig.dpi": 170,
    "svg.hashsalt": "dp-leakage",
}
# Without dates and versions, so that the same numbers give the same bytes.
METADATA: dict[str, dict[str, Any]] = {
    "pdf": {"CreationDate": None, "ModDate": None, "Creator": "dp-leakage", "Producer": None},
    "png": {"Software": None},
    "svg": {"Date": None, "Creator": "dp-leakage"},
}


def styled(draw: Callable[..., Drawn]) -> Callable[..., Drawn]:
    """Run a drawing function under this module's settings, regardless of the user's matplotlibrc."""

    @wraps(draw)
    def drawn(*args: Any, **kwargs: Any) -> Drawn:
        with rc():
            return draw(*args, **kwargs)

    return drawn


@contextmanager
def rc() -> Iterator[None]:
    """Context manager for seaborn's theme and ``RC``, regardless of the user's matplotlibrc."""
    import matplotlib as mpl
    import seaborn as sns

    with mpl.rc_context({**mpl.rcParamsDefault, "backend": "agg"}):
        sns.set_theme("paper", "whitegrid", list(COLORS), font_scale=0.88, rc=RC)
        yield


def encode(figure: "Figure", form: str, keywords: str | None = None, banner: str = "") -> bytes:
    """Return the figure as the bytes of a ``pdf``, ``png`` or ``svg`` file; the same figure gives the same bytes.

    Args:
        figure: the picture; a banner fixes its layout.
        form: ``pdf``, ``png`` or ``svg``.
        keywords: metadata of a PDF. Notes without room under the panels are a PNG's `NOTES`.
        banner: text in a strip added above the page.
    """
    buffer = BytesIO()
    said = {"Keywords": keywords} if keywords else {}
    if form == "png" and figure.get_label():
        said[NOTES] = str(figure.get_label())
    with rc():
        page = _with_strip(figure, banner) if banner else None
        figure.savefig(buffer, format=form, metadata=METADATA[form] | said, bbox_inches=page)
    return buffer.getvalue()


def _with_strip(figure: "Figure", words: str) -> "Bbox":
    """Return the page in inches with a strip for the words above the figure."""
    from matplotlib.transforms import Bbox

    width, height = figure.get_size_inches()
    lines = fill(words, int(width * 15))
    if not figure.findobj(lambda artist: artist.get_gid() == STRIP):
        figure.draw_without_rendering()
        figure.set_layout_engine("none")
        for legend in figure.legends:
            if legend.get_bbox_to_anchor() is figure.bbox:  # the page, which gets larger: the legend stays where it is
                legend.set_bbox_to_anchor((0, 0, 1, 1), transform=figure.transFigure)
        figure.text(0.01, 1, lines, va="bottom", color=ALARM, fontsize=8, gid=STRIP)
    return Bbox([[0, 0], [width, height + 0.17 * len(lines.splitlines())]])


def canvas(
    rows: int, columns: int, panel: tuple[float, float] = PANEL, *, sharey: bool | str = True, sharex: bool | str = True
) -> "tuple[Figure, list[list[Axes]]]":
    """Return a figure of rows × columns panels; `finish` adds the room for legend, title and footnotes."""
    from matplotlib.figure import Figure

    size = (max(columns * panel[0], LEAST), rows * panel[1])
    figure = Figure(figsize=size, layout="constrained")
    axes = figure.subplots(rows, columns, squeeze=False, sharex=sharex, sharey=sharey)
    return figure, [list(row) for row in axes]


def panel_grid(
    parts: "Sequence[tuple[str, DataFrame]]", columns: int, panel: tuple[float, float] = PANEL, **shared: bool | str
) -> "tuple[Figure, list[tuple[Axes, DataFrame]]]":
    """Return a figure with a panel for each part, titled with its heading, at most ``columns`` side by side.

    Args:
        parts: (heading, rows), as `frames.panels` gives them.
        columns: maximum number of columns.
        panel: size of a panel in inches.
        shared: ``sharex`` and ``sharey``, as for `canvas`.

    Returns:
        The figure, and (panel, rows) of each part; the last line has only panels with a part.
    """
    import pandas as pd
    import seaborn as sns
    from matplotlib import pyplot

    across = min(len(parts), columns)
    places = pd.DataFrame({"panel": range(len(parts))})
    width, height = max(panel[0], LEAST / across), panel[1]
    grid = sns.FacetGrid(places, col="panel", col_wrap=across, height=height, aspect=width / height, **shared)
    pyplot.close(grid.figure)  # or pyplot would keep it
    grid.figure.set_layout_engine("constrained")
    grid.set_titles("")  # those in the middle, which a FacetGrid writes by itself
    for ax, (heading, _) in zip(grid.axes.flat, parts, strict=True):
        ax.set_title(heading, loc="left")
    return grid.figure, [(ax, rows) for ax, (_, rows) in zip(grid.axes.flat, parts, strict=True)]


def label_edges(axes: "Sequence[Axes]", across: int, x_label: str, y_labels: Sequence[str]) -> None:
    """Label the outer panels of a grid, ``across`` side by side, and panels whose label differs from their left
    neighbor's.
    """
    for place, (ax, y_label) in enumerate(zip(axes, y_labels, strict=True)):
        if place + across >= len(axes):
            ax.set_xlabel(x_label)
            ax.tick_params(labelbottom=True)
        if place % across == 0 or y_label != y_labels[place - 1]:
            ax.set_ylabel(y_label)


def finish(
    figure: "Figure", handles: Sequence["Artist"], notes: Iterable[str] = (), title: str | None = None
) -> "Figure":
    """Add names at labeled lines, the legend above the panels and the footnotes below.

    The figure grows accordingly. The legend omits ``handles`` that are named at their lines.
    """
    width, height = figure.get_size_inches()
    beside = named_beside(figure)
    named = set().union(*(lines for _, lines in beside))
    handles = [handle for handle in handles if handle.get_label() not in named]
    width += room_for(beside)
    extra = 0.0
    words = fill(title or "", int(width * 13))
    heading = {"title": words or None, "title_fontproperties": {"size": 10, "weight": "bold"}}
    if handles or words:
        across = _legend_columns([str(handle.get_label()) for handle in handles], width)
        look_ = {"ncols": across, "handlelength": 2.8, "columnspacing": 1.4}
        figure.legend(handles=handles, loc="outside upper center", **look_, **heading)
        extra += 0.19 * ceil(len(handles) / across) + 0.1 + 0.2 * len(words.splitlines())
    text = footnotes(figure, notes, width)
    if text:
        figure.supxlabel(text, x=0.01, ha="left", fontsize=7, color=GRAY, linespacing=1.25)
        extra += 0.125 * (text.count("\n") + 1) + 0.05
    figure.set_size_inches(width, height + extra)
    name_lines(figure, beside)
    return figure


def footnotes(figure: "Figure", notes: Iterable[str], width: float) -> str:
    """Return a figure's first notes as a paragraph of at most `NOTE_LINES` lines of the width in inches at 7
    points.

    The others become the figure's label, which `encode` writes into the PNG and the report adds to the caption.
    """
    said = list(dict.fromkeys(notes))
    paragraphs = [fill(" ".join(said[:shown]), int(width * 18.5)) for shown in range(len(said) + 1)]
    shown = max(number for number, text in enumerate(paragraphs) if text.count("\n") < NOTE_LINES)
    figure.set_label(" ".join(said[shown:]))
    return paragraphs[shown]


def _legend_columns(labels: Sequence[str], width: float) -> int:
    """Return the number of columns that fit into the width: 0.55 inch for the sample and about 0.056 per letter."""
    letters = max(map(len, labels), default=0)
    return max(1, min(len(labels), int(width / (0.55 + 0.056 * letters))))


def log_axis(
    ax: "Axes",
    which: str,
    values: Iterable[float],
    *,
    span: tuple[float, float] | None = EPSILON_RANGE,
    infinite: str | None = None,
) -> tuple[float, float]:
    """Make one axis logarithmic with plain decades, over at least ``span``.

    Args:
        ax: the panel.
        which: ``x`` or ``y``.
        values: values to draw; only finite values above 0 count.
        span: minimum range; None: range of the values.
        infinite: tick label of a place for infinite values, beyond the last decade; None: no such place.

    Returns:
        The position of that place, and the factor of a small step there.
    """
    from matplotlib.ticker import FixedFormatter, FixedLocator, NullLocator

    shown = [v for v in values if isfinite(v) and v > 0] + list(span or ())
    low, high = min(shown, default=1.0), max(shown, default=10.0)
    first, last = floor(log10(low) + 1e-9), ceil(log10(high) - 1e-9)
    decades = max(last - first, 1)
    if sum(low <= 10.0**e <= high for e in range(first, last + 1)) < 2:  # or there were one tick, or none
        low, high = 10.0**first, 10.0**last
    step = 1 + (decades - 1) // 7
    beyond, edge = high * 10.0 ** (0.14 * decades), 10.0 ** (0.045 * decades)
    # A decade above the data would coincide with the place for infinite values.
    ticks = {10.0**e: _decade(e) for e in range(first, last + 1, step) if 10.0**e <= high * edge}
    if infinite:
        ticks[beyond] = infinite
        wall = ax.axvline if which == "x" else ax.axhline
        wall(high * 10.0 ** (0.07 * decades), color=GRAY, linewidth=0.7, linestyle=(0, (1, 2)))
    ax.set(**{f"{which}scale": "log", f"{which}lim": (low / edge, beyond * edge * 1.2 if infinite else high * edge)})
    axis = getattr(ax, f"{which}axis")
    axis.set_major_locator(FixedLocator(list(ticks)))
    axis.set_major_formatter(FixedFormatter(list(ticks.values())))
    axis.set_minor_locator(NullLocator())
    return beyond, 10.0 ** (0.028 * decades)


def _decade(exponent: int) -> str:
    return f"{10.0**exponent:g}" if -3 <= exponent <= 3 else "10" + str(exponent).translate(SUPERSCRIPTS)


def sample(look_: Look, **changes: Any) -> "Artist":
    """Return a legend entry in the style of the series."""
    from matplotlib.lines import Line2D

    return Line2D([], [], **{"label": look_.label, **look_.line, **changes})
