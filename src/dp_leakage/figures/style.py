"""How every figure looks: one look per series, the axes, the legend, the footnotes, and bytes that do not change.

A series keeps its color, marker and line style in every figure, so that it is found again from one to the next, also
on a black-and-white print. Colors are of Okabe and Ito's palette, which color-blind readers tell apart.

seaborn sets theme, sizes and palette, and draws (`marks`); what it lacks is here and in `labels`.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import wraps
from io import BytesIO
from math import ceil, floor, inf, isfinite, log10
from textwrap import fill
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar
from zlib import crc32

from dp_leakage.attacks import ATTACKS
from dp_leakage.common.rounding import rounded_down, rounded_up
from dp_leakage.figures.labels import name_lines, named_beside, room_for
from dp_leakage.privacy.mechanisms import MECHANISMS

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
INK, GRAY, FAINT = "#222222", "#767676", "#e4e4e4"
ALARM = "#b00020"  # of what should never show: more measured than is proven or claimed
# Of names in turn: Okabe and Ito's colors, then two of Tol's.
COLORS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#882255", "#999933", "#332288")


class Series(NamedTuple):
    """What makes rows one line in a figure."""

    mechanism: str
    accountant: str = ""
    unit: str = ""
    block: str = ""
    bound: str = ""


@dataclass(frozen=True)
class Look:
    """How one series is drawn."""

    label: str
    color: str
    marker: str
    dashes: tuple[float, ...] = ()
    thin: bool = False
    fill: str = "full"  # of the markers, as matplotlib's ``fillstyle``

    @property
    def line(self) -> dict[str, Any]:
        """Keyword arguments for a line with markers."""
        style = (0, self.dashes) if self.dashes else "-"
        return {"color": self.color, "linestyle": style, "linewidth": 0.8 if self.thin else 1.3, **self.mark}

    @property
    def mark(self) -> dict[str, Any]:
        """Keyword arguments for markers alone."""
        size = {"marker": self.marker, "markersize": 4.5 if self.marker != "*" else 8, "markeredgewidth": 0.9}
        return size | ({} if self.fill == "full" else {"fillstyle": self.fill, "markerfacecoloralt": "white"})


# In the order in which legends and tables list them.
LOOKS: dict[tuple[str, str], Look] = {
    ("none", ""): Look("no defense", INK, "*"),
    ("l2", ""): Look("ℓ2 penalty", "#555555", "P"),
    ("dropout", ""): Look("dropout", "#808080", "X"),
    ("l2_dropout", ""): Look("ℓ2 and dropout", "#808080", "h"),
    ("normalize", ""): Look("normalized, no noise", "#a0522d", (4, 1, 45)),
    ("claimed", "claimed"): Look("private, as its library claims", "#117733", ">", (3, 1)),
    ("gaussian", "naive"): Look("DP-SGD, naive composition", "#d55e00", "s", (1, 1.2)),
    ("gaussian", "advanced"): Look("DP-SGD, advanced composition", "#e69f00", "D", (5, 1.2, 1, 1.2)),
    ("gaussian", "zcdp"): Look("DP-SGD, zCDP", "#009e73", "^", (4, 1.5)),
    ("gaussian", "rdp"): Look("DP-SGD, RDP", "#0072b2", "o"),
    ("gaussian", "pld"): Look("DP-SGD, PLD", "#56b4e9", "v", (7, 1)),
    ("gaussian", "gdp"): Look("DP-SGD, GDP", "#cc79a7", "p", (2, 1)),
    ("vmf", "per_step"): Look("VMF, per step", "#8a3d00", "<", (1, 1.2)),
    ("vmf", "vmf_pure"): Look("VMF, pure", "#5c4a00", ">", (4, 1.5)),
    ("vmf", "vmf_rdp"): Look("VMF, RDP", "#7a2f5e", "d"),
    ("vmf", "vmf_pld"): Look("VMF, PLD", "#b0609a", "d", (7, 1)),
    ("class", "class_moments"): Look("class", "#004d80", "H", (3, 1)),
    ("class", "theorem1"): Look("class, Theorem 1", "#7f7f7f", "H", (1, 2)),
    ("subclass", "class_moments"): Look("subclass", "#00664a", "8", (6, 1, 1, 1)),
    ("subclass", "theorem1"): Look("subclass, Theorem 1", "#9a9a9a", "8", (1, 2)),
}
SPARE = Look("", "#666666", "o")
SPARE_COLORS = ("#44aa99", "#882255", "#999933", "#332288", "#aa4499", "#661100")
SPARE_MARKERS = ("d", "<", ">", "p", "H", "8")

NAMES = {
    "softmax_regression": "softmax regression",
    "mlp": "MLP",
    "lenet": "LeNet",
    "cnn": "CNN",
    "cifar10": "CIFAR-10",
    "cifar100": "CIFAR-100",
    "purchase100": "Purchase-100",
    "mnist": "MNIST",
    "fashion_mnist": "Fashion-MNIST",
    "lfw": "LFW",
    "faces94": "Faces94",
    "strongest": "strongest attack",
    "class_moments": "class moments",
    "theorem1": "Theorem 1",
    "mia_distance": "MIA distance",
    "vmf": "VMF",
    "gaussian": "Gaussian",
    "fashion_mnist_r": "Fashion-MNIST (split of MIA-R)",
    "cifar10_r": "CIFAR-10 (split of MIA-R)",
    "fashion_mnist_shokri": "Fashion-MNIST (split of Shokri's attack)",
    "cifar10_shokri": "CIFAR-10 (split of Shokri's attack)",
    "naive": "naive composition",
    "advanced": "advanced composition",
    "zcdp": "zCDP",
    "rdp": "RDP",
    "pld": "PLD",
    "gdp": "GDP",
    "banded_pld": "banded PLD",
    "vmf_pure": "VMF pure",
    "vmf_rdp": "VMF RDP",
    "vmf_pld": "VMF PLD",
    "add_remove": "add/remove",
    "replace_one": "replace-one",
    "zero_out": "zero-out",
}

# How markers are filled, so that the same mechanism on other blocks is told apart.
BLOCK_FILLS = {"row": "left", "layer": "bottom", "sum": "top"}
BOUNDED = {"clip": "clipped", "normalize": "normalized", "per_layer": "clipped by layer"}

# What is changed in seaborn's theme.
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
# No dates, no versions: the same numbers give the same bytes.
METADATA: dict[str, dict[str, Any]] = {
    "pdf": {"CreationDate": None, "ModDate": None, "Creator": "dp-leakage", "Producer": None},
    "png": {"Software": None},
    "svg": {"Date": None, "Creator": "dp-leakage"},
}


def look(series: Series) -> Look:
    """The look of a series; one that the table does not know gets one of its own from its name, always the same."""
    known = LOOKS.get((series.mechanism, series.accountant))
    if known is None:
        number = crc32(f"{series.mechanism}/{series.accountant}".encode())
        label = ", ".join(filter(None, [mechanism_name(series.mechanism), name(series.accountant)]))
        color = SPARE_COLORS[number % len(SPARE_COLORS)]
        marker = SPARE_MARKERS[number // len(SPARE_COLORS) % len(SPARE_MARKERS)]
        known = replace(SPARE, label=label, color=color, marker=marker)
    details = _unit(series)
    # Noise on directions has a block of its own in most studies: thin lines would say that it is an exception.
    thin = bool(details) and series.mechanism != "vmf"
    fill = BLOCK_FILLS.get(series.block, "left" if thin else "full")
    return replace(known, label=", ".join([known.label, *details]), thin=thin, fill=fill)


def _unit(series: Series) -> list[str]:
    """What a label must add where the unit, the block or the bound is not the mechanism's usual one."""
    words = "batch clipping" if series.unit == "batch" else f"per {series.unit}"
    unit = [] if series.unit in ("", "example", series.mechanism) else [words]
    block = [] if series.block in ("", "whole") else [f"by {series.block}"]
    usual = series.bound in ("", usual_bound(series.mechanism))
    return unit + block + ([] if usual else [BOUNDED.get(series.bound, name(series.bound))])


def usual_bound(mechanism: str) -> str:
    """What bounds a unit's gradient under a mechanism where a study does not say; "" for what is no mechanism."""
    return MECHANISMS[mechanism].bound if mechanism in MECHANISMS else ""


def order(series: Series) -> tuple[Any, ...]:
    """Sorting key: the order of the table of looks, then unknown series by name."""
    known = list(LOOKS)
    pair = (series.mechanism, series.accountant)
    return (known.index(pair) if pair in LOOKS else len(known), len(_unit(series)), *series)


def name(identifier: str) -> str:
    """A name as people write it: ``softmax_regression`` → softmax regression, ``cifar100`` → CIFAR-100.

    Of a longer name, the beginning may be known: ``cifar100_small`` → CIFAR-100 small. An attack has the label that it
    declares.
    """
    parts = identifier.split("_")
    for known in range(len(parts), 0, -1):
        first = "_".join(parts[:known])
        if label := NAMES.get(first) or (ATTACKS[first].label if first in ATTACKS else ""):
            return " ".join([label, *parts[known:]])
    return " ".join(parts)


def mechanism_name(mechanism: str) -> str:
    """The same of a mechanism; a model or data set may be called ``tree`` without being one."""
    if mechanism not in NAMES and mechanism in MECHANISMS:
        return MECHANISMS[mechanism].label
    return name(mechanism)


def number(value: float) -> str:
    """A budget or a noise multiplier to three digits: 1000, 0.05, 57200; ∞, and – if there is none."""
    return f"{float(f'{value:.3g}'):g}" if isfinite(value) else _not_finite(value)


def at_most(value: float) -> str:
    """The same of an upper bound, such as the ε that was spent: rounded up."""
    return rounded_up(value, 3) if isfinite(value) else _not_finite(value)


def at_least(value: float) -> str:
    """The same of a lower bound, such as the ε that an audit proves: rounded down."""
    return rounded_down(value, 3) if isfinite(value) else _not_finite(value)


def _not_finite(value: float) -> str:
    return "∞" if value == inf else "–"


def styled(draw: Callable[..., Drawn]) -> Callable[..., Drawn]:
    """Runs a drawing function under this module's settings, whatever the user's matplotlibrc says."""

    @wraps(draw)
    def drawn(*args: Any, **kwargs: Any) -> Drawn:
        with rc():
            return draw(*args, **kwargs)

    return drawn


@contextmanager
def rc() -> Iterator[None]:
    """Context in which seaborn's theme and ``RC`` hold, whatever the user's matplotlibrc says."""
    import matplotlib as mpl
    import seaborn as sns

    with mpl.rc_context({**mpl.rcParamsDefault, "backend": "agg"}):
        sns.set_theme("paper", "whitegrid", list(COLORS), font_scale=0.88, rc=RC)
        yield


def encode(figure: "Figure", form: str, keywords: str | None = None, banner: str = "") -> bytes:
    """The figure as the bytes of a ``pdf``, ``png`` or ``svg`` file; the same figure gives the same bytes.

    Args:
        figure: the picture; with a banner its layout is final.
        form: ``pdf``, ``png`` or ``svg``.
        keywords: they stand in a PDF's metadata. Notes that found no room under the panels are a PNG's `NOTES`.
        banner: words above everything, in a strip that is added to the page, so that they hide nothing.
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
    """The page in inches with a strip above the figure, in which the words stand once."""
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
    """A figure of rows × columns panels; `finish` adds the room for legend, title and footnotes."""
    from matplotlib.figure import Figure

    size = (max(columns * panel[0], LEAST), rows * panel[1])
    figure = Figure(figsize=size, layout="constrained")
    axes = figure.subplots(rows, columns, squeeze=False, sharex=sharex, sharey=sharey)
    return figure, [list(row) for row in axes]


def panel_grid(
    parts: "Sequence[tuple[str, DataFrame]]", columns: int, panel: tuple[float, float] = PANEL, **shared: bool | str
) -> "tuple[Figure, list[tuple[Axes, DataFrame]]]":
    """A figure with a panel for each part, headed with its words, at most ``columns`` side by side.

    Args:
        parts: (heading, rows), as `frames.panels` gives them.
        columns: how many may stand side by side.
        panel: size of one in inches.
        shared: ``sharex`` and ``sharey``, as for `canvas`.

    Returns:
        The figure, and (panel, rows) of each part; of the last line there are only the panels that have a part.
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


def told_apart(
    labels: Mapping[str, str], colors: Sequence[str] = COLORS, markers: Sequence[str] = ("",)
) -> dict[str, Look]:
    """A look for each name, with its label: the next color and marker, and other dashes once the colors are used up."""
    dashes = ((), (5, 1.5), (1, 1.2))
    return {
        name: Look(label, colors[i % len(colors)], markers[i % len(markers)], dashes[i // len(colors) % len(dashes)])
        for i, (name, label) in enumerate(labels.items())
    }


def label_edges(axes: "Sequence[Axes]", across: int, x_label: str, y_labels: Sequence[str]) -> None:
    """Labels the outer panels of a grid, ``across`` side by side, and others where they differ from the one at left."""
    for place, (ax, y_label) in enumerate(zip(axes, y_labels, strict=True)):
        if place + across >= len(axes):
            ax.set_xlabel(x_label)
            ax.tick_params(labelbottom=True)
        if place % across == 0 or y_label != y_labels[place - 1]:
            ax.set_ylabel(y_label)


def finish(
    figure: "Figure", handles: Sequence["Artist"], notes: Iterable[str] = (), title: str | None = None
) -> "Figure":
    """Puts names at lines that have one, the legend above the panels and the footnotes below.

    The figure gets larger by what they need. ``handles`` whose name stands at the lines are left out of the legend.
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
    """The first of a figure's notes as a paragraph of at most `NOTE_LINES` lines of the width in inches at 7 points.

    The others become the figure's label, which `encode` writes into the PNG and the report adds to the caption.
    """
    said = list(dict.fromkeys(notes))
    paragraphs = [fill(" ".join(said[:shown]), int(width * 18.5)) for shown in range(len(said) + 1)]
    shown = max(number for number, text in enumerate(paragraphs) if text.count("\n") < NOTE_LINES)
    figure.set_label(" ".join(said[shown:]))
    return paragraphs[shown]


def _legend_columns(labels: Sequence[str], width: float) -> int:
    """As many columns as surely fit into the width: 0.55 inch for the sample and about 0.056 a letter."""
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
    """Makes one axis logarithmic with plain decades, over ``span`` or further where the values reach further.

    Args:
        ax: the panel.
        which: ``x`` or ``y``.
        values: what will be drawn; only those finite and above 0 count.
        span: what is shown at least; None for as far as the values go.
        infinite: the tick label of a place beyond the last decade for what has no finite value; None for no such place.

    Returns:
        Where that place lies on the axis, and the factor that is a small step there.
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
    # A decade above what is shown would lie in the place of what has no finite value.
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
    """A legend entry that looks like the series."""
    from matplotlib.lines import Line2D

    return Line2D([], [], **{"label": look_.label, **look_.line, **changes})
