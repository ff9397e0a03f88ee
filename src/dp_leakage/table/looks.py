"""Style of each series: a label, a color, a marker and dashes, the same in every figure.

Colors are Okabe and Ito's palette, which color-blind readers can distinguish. Markers and dashes serve black-and-white
prints.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple
from zlib import crc32

from dp_leakage.privacy.mechanisms import MECHANISMS
from dp_leakage.table.words import mechanism_name, name

INK, GRAY, FAINT = "#222222", "#767676", "#e4e4e4"
ALARM = "#b00020"  # of what should never show: more measured than is proven or claimed
# Colors of names in turn: Okabe and Ito's, then two of Tol's.
COLORS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#882255", "#999933", "#332288")


class Series(NamedTuple):
    """Columns that identify a line in a figure."""

    mechanism: str
    accountant: str = ""
    unit: str = ""
    block: str = ""
    bound: str = ""


@dataclass(frozen=True)
class Look:
    """Style of one series."""

    label: str
    color: str
    marker: str | tuple[int, int, int]  # as matplotlib takes it
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

# Fill of markers, which distinguishes blocks of the same mechanism.
BLOCK_FILLS = {"row": "left", "layer": "bottom", "sum": "top"}
BOUNDED = {"clip": "clipped", "normalize": "normalized", "per_layer": "clipped by layer"}


def look(series: Series) -> Look:
    """Return the style of a series; an unknown series gets a fixed style derived from its name."""
    known = LOOKS.get((series.mechanism, series.accountant))
    if known is None:
        number = crc32(f"{series.mechanism}/{series.accountant}".encode())
        label = ", ".join(filter(None, [mechanism_name(series.mechanism), name(series.accountant)]))
        color = SPARE_COLORS[number % len(SPARE_COLORS)]
        marker = SPARE_MARKERS[number // len(SPARE_COLORS) % len(SPARE_MARKERS)]
        known = replace(SPARE, label=label, color=color, marker=marker)
    details = _unit(series)
    # Directional noise has its own block in most studies; thin lines would suggest an exception.
    thin = bool(details) and series.mechanism != "vmf"
    fill = BLOCK_FILLS.get(series.block, "left" if thin else "full")
    return replace(known, label=", ".join([known.label, *details]), thin=thin, fill=fill)


def defense_label(series: Series) -> str:
    """Return the label of a series without its accountant: ``DP-SGD``."""
    if series.accountant in ("", series.mechanism):
        return look(series).label
    known = LOOKS.get((series.mechanism, series.accountant))
    label = known.label.partition(",")[0] if known else mechanism_name(series.mechanism)
    return ", ".join([label, *_unit(series)])


def _unit(series: Series) -> list[str]:
    """Return label parts for a unit, block or bound that differs from the mechanism's default."""
    words = "batch clipping" if series.unit == "batch" else f"per {series.unit}"
    unit = [] if series.unit in ("", "example", series.mechanism) else [words]
    block = [] if series.block in ("", "whole") else [f"by {series.block}"]
    usual = series.bound in ("", usual_bound(series.mechanism))
    return unit + block + ([] if usual else [BOUNDED.get(series.bound, name(series.bound))])


def usual_bound(mechanism: str) -> str:
    """Return a mechanism's default bound of a unit's gradient; "" for other names."""
    return MECHANISMS[mechanism].bound if mechanism in MECHANISMS else ""


def order(series: Series) -> tuple[Any, ...]:
    """Return a sorting key: the order of the table of styles, then unknown series by name."""
    known = list(LOOKS)
    pair = (series.mechanism, series.accountant)
    return (known.index(pair) if pair in LOOKS else len(known), len(_unit(series)), *series)


def told_apart(
    labels: Mapping[str, str], colors: Sequence[str] = COLORS, markers: Sequence[str] = ("",)
) -> dict[str, Look]:
    """Return a distinct style for each name, with its label: colors and markers in turn, then other dashes."""
    dashes = ((), (5, 1.5), (1, 1.2))
    return {
        name: Look(label, colors[i % len(colors)], markers[i % len(markers)], dashes[i // len(colors) % len(dashes)])
        for i, (name, label) in enumerate(labels.items())
    }
