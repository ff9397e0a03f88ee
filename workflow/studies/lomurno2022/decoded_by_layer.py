"""How well a decoder rebuilds inputs from each layer, and how much each defense changes that."""

from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
from decoded import MEAN, change_percent, layer_rows, mean_over_datasets

from dp_leakage.figures.frames import chosen, drawn_numbers, each_budget, each_series
from dp_leakage.figures.notes import accounting_notes, own_notes
from dp_leakage.figures.numbers import cell_label
from dp_leakage.figures.style import FAINT, GRAY, INK, canvas, finish, name, styled
from dp_leakage.figures.table import Table, draw_tables

if TYPE_CHECKING:
    from matplotlib.artist import Artist
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

FIGURE = {
    "settings": {
        "shows": {
            "enum": ["errors", "changes"],
            "default": "errors",
            "description": "Errors of the undefended model, or their changes under each defense.",
        },
        "attack": {"$ref": "#/$defs/attack", "default": "decoder"},
        "layers": {
            "type": "array",
            "items": {"type": "string", "minLength": 1},
            "default": ["conv1", "maxpool1", "conv2", "maxpool2", "conv3", "maxpool3", "dense", "prediction"],
            "description": "The layers that are shown.",
        },
    },
    "variants": {
        "decoded_layers": {
            "caption": "How well a decoder network rebuilds unseen images from what each layer of the undefended model "
            "makes of them. The deeper the layer, the less is left of the image.",
        },
        "decoded_table": {
            "caption": "How much a defense changes the error with which images are rebuilt from each layer. A defense "
            "of the training records does not promise to hide what the model is asked about.",
            "settings": {"shows": "changes"},
        },
    },
}

NOTHING = "mean_image"
METRIC = "inversion_mse_change_percent"
MARKS = (("#0072b2", "o"), ("#d55e00", "s"), ("#009e73", "^"), ("#cc79a7", "D"), ("#e69f00", "v"), ("#56b4e9", "p"))


@styled
def draw(
    metrics: pd.DataFrame, settings: dict[str, Any], published: pd.DataFrame | None
) -> "tuple[Figure, pd.DataFrame]":
    """Errors by layer, or their changes, with the means over data sets.

    Settings:
        shows: ``errors`` of the undefended models, a bar for the mean and a point for each data set; or ``changes``
            against no defense, a table of means with a row per layer and a column per defense and budget.
        attack: whose errors.
        layers: which, in this order; what sees nothing stands behind the errors of all.
    """
    frame = chosen(metrics, settings)
    return (_errors if settings["shows"] == "errors" else _changes)(frame, settings, published)


def _errors(
    frame: pd.DataFrame, settings: dict[str, Any], published: pd.DataFrame | None
) -> "tuple[Figure, pd.DataFrame]":
    from matplotlib.lines import Line2D
    from matplotlib.patches import Patch

    layers = [*settings["layers"], NOTHING]
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


def _changes(
    frame: pd.DataFrame, settings: dict[str, Any], published: pd.DataFrame | None
) -> "tuple[Figure, pd.DataFrame]":
    each = layer_rows(frame, settings["attack"], settings["layers"])
    changes = change_percent(each, ["dataset", "model", "layer"])
    changes = changes.assign(metric=METRIC, statistic="")
    together = mean_over_datasets(changes, ["defense", "layer"])
    rows = drawn_numbers(pd.concat([together, changes], ignore_index=True), published, ["layer"], any_size=True)
    shown = rows[rows["dataset"] == MEAN]
    columns = {
        cell_label(series, cell.iloc[0]): cell.set_index("layer")
        for series, of_series in each_series(shown)
        for _, cell in each_budget(of_series.assign(noise_multiplier=np.nan))
    }
    has_print = bool(shown["published"].notna().any())
    heads = ["layer", *(head for column in columns for head in ([column, "print"] if has_print else [column]))]
    lines = [
        [name(layer), *(text for cell in columns.values() for text in _cell(cell.loc[layer], has_print))]
        for layer in settings["layers"]
    ]
    words = "Change of the reconstruction error (%)"
    notes = [
        "Mean over the data sets of the change against no defense; more is better for privacy.",
        "± half of the 95 % interval; both errors are taken as independent, which makes it too wide.",
    ]
    if has_print:
        notes.append("Print: the paper's number, from one run.")
    table = Table(words, heads, lines)
    return draw_tables([table], [*notes, *accounting_notes(frame, settings)], settings.get("title")), rows


def _cell(row: pd.Series, has_print: bool) -> list[str]:
    reach = (row["high"] - row["low"]) / 2
    text = f"{_signed(row['measured'])} ±{reach:.1f}"
    return [text, "" if np.isnan(row["published"]) else _signed(row["published"])] if has_print else [text]


def _signed(value: float) -> str:
    return f"{value:+.1f}".replace("-", "−")
