"""How well a decoder rebuilds inputs from each layer of the undefended models."""

from typing import TYPE_CHECKING, Any

import pandas as pd
from decoded import MEAN, layer_rows, mean_over_datasets

from dp_leakage.figures.style import canvas, finish, styled
from dp_leakage.table.frames import chosen, drawn_numbers
from dp_leakage.table.looks import FAINT, GRAY, INK
from dp_leakage.table.notes import own_notes
from dp_leakage.table.words import name

if TYPE_CHECKING:
    from matplotlib.artist import Artist
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

FIGURE = {
    "caption": "How well a decoder network rebuilds unseen images from what each layer of the undefended model makes "
    "of them. The deeper the layer, the less is left of the image.",
    "settings": {
        "attack": {"$ref": "#/$defs/attack", "default": "decoder"},
        "layers": {
            "type": "array",
            "items": {"type": "string", "minLength": 1},
            "default": ["conv1", "maxpool1", "conv2", "maxpool2", "conv3", "maxpool3", "dense", "prediction"],
            "description": "The layers that are shown.",
        },
    },
}

NOTHING = "mean_image"
MARKS = (("#0072b2", "o"), ("#d55e00", "s"), ("#009e73", "^"), ("#cc79a7", "D"), ("#e69f00", "v"), ("#56b4e9", "p"))


@styled
def draw(
    metrics: pd.DataFrame, settings: dict[str, Any], published: pd.DataFrame | None
) -> "tuple[Figure, pd.DataFrame]":
    """A bar for the mean over the data sets and a point for each of them.

    Settings:
        attack: whose errors.
        layers: which, in this order; what sees nothing stands behind the errors of all.
    """
    from matplotlib.lines import Line2D
    from matplotlib.patches import Patch

    frame, layers = chosen(metrics, settings), [*settings["layers"], NOTHING]
    each = layer_rows(frame[frame["mechanism"] == "none"], settings["attack"], layers)
    together = mean_over_datasets(each, ["layer"])
    rows = drawn_numbers(pd.concat([each, together], ignore_index=True), published, extra=["layer"])
    figure, axes = canvas(1, 1, panel=(5.6, 2.6))
    ax = axes[0][0]
    mean = rows[rows["dataset"] == MEAN].set_index("layer").loc[layers]
    ax.bar(range(len(layers)), mean["measured"], color=FAINT, edgecolor=GRAY, linewidth=0.7, zorder=1)
    legend: list[Artist] = [Patch(facecolor=FAINT, edgecolor=GRAY, label="mean over the data sets")]
    for place, dataset in enumerate(sorted(set(each["dataset"]))):
        color, marker = MARKS[place % len(MARKS)]
        _points(ax, rows[rows["dataset"] == dataset].set_index("layer").loc[layers], color, marker, place)
        legend.append(Line2D([], [], color=color, marker=marker, linestyle="none", markersize=5, label=name(dataset)))
    ax.set_xticks(range(len(layers)), [name(layer).replace(" ", "\n") for layer in layers], fontsize=7.5)
    ax.set_ylabel("reconstruction error (mean\nsquared, pixels from 0 to 1)", color=INK)
    ax.set_ylim(0, None)
    ax.grid(False, axis="x")
    notes = [
        "Mean over unseen images; bars on points: 95 % intervals. Lower is better for the attacker. Mean image: what "
        "is rebuilt by who sees no activation at all.",
    ]
    return finish(figure, legend, [*notes, *own_notes(settings)], settings.get("title")), rows


def _points(ax: "Axes", rows: pd.DataFrame, color: str, marker: str, place: int) -> None:
    x = [position + 0.14 * (place - 1) for position in range(len(rows))]
    reach = [rows["measured"] - rows["low"], rows["high"] - rows["measured"]]
    ax.errorbar(
        x,
        rows["measured"],
        yerr=reach,
        color=color,
        marker=marker,
        linestyle="none",
        markersize=4.5,
        capsize=2,
        zorder=3,
    )
