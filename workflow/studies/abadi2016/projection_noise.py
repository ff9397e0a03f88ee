"""Accuracy with a private PCA over its noise, beside the same with a plain PCA and with none."""

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import pandas as pd

from dp_leakage.common.errors import UserError
from dp_leakage.figures.curves import draw_guessing
from dp_leakage.figures.marks import draw_measured
from dp_leakage.figures.style import canvas, finish, log_axis, sample, styled
from dp_leakage.table.frames import chosen, drawn_numbers, each_budget, each_series, metric_rows
from dp_leakage.table.looks import INK, Look, look
from dp_leakage.table.notes import own_notes
from dp_leakage.table.numbers import cell_label
from dp_leakage.table.words import metric_words

if TYPE_CHECKING:
    from matplotlib.artist import Artist
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

FIGURE = {
    "caption": "What it costs to find the principal components privately: accuracy over the noise of the "
    "private PCA, beside a PCA without privacy and no PCA at all.",
    "settings": {
        "metric": {
            "enum": ["accuracy_loss", "test_accuracy", "train_accuracy", "leakage"],
            "default": "test_accuracy",
            "description": "The numbers on the vertical axis.",
        },
    },
}

FLAT = {"pca": ("plain PCA", (5, 2)), "none": ("no PCA", (1, 2))}  # method: words, dashes
COLUMNS = ["projection", "projection_noise"]
EXTRA = ["n_members", *COLUMNS]


@styled
def draw(
    metrics: pd.DataFrame, settings: dict[str, Any], published: pd.DataFrame | None
) -> "tuple[Figure, pd.DataFrame]":
    """One panel: a line per defense and budget over the noise, and level lines for data without that noise.

    The data sets differ in their projection only, so their names are not shown.

    Args:
        metrics: rows of the cells, with ``projection`` (none, pca, private_pca) and ``projection_noise`` beside.
        settings: ``metric``: what is drawn upward.
        published: not used but for the columns of the table.

    Raises:
        UserError: no data set has a private PCA.
    """
    from matplotlib.lines import Line2D

    frame = chosen(metrics, settings)
    rows = drawn_numbers(metric_rows(frame, settings["metric"]), published, extra=EXTRA)
    private = rows["projection"] == "private_pca"
    if not private.any():
        raise UserError("figure of kind 'projection_noise': none of its data sets has a private PCA")
    figure, axes = canvas(1, 1)
    ax = axes[0][0]
    log_axis(ax, "x", rows.loc[private, "projection_noise"], span=None)
    looks = {style.label: style for style, _ in _lines(rows)}
    labeled = pd.concat([part.assign(line=style.label) for style, part in _lines(rows)])
    noisy = labeled[labeled["projection"] == "private_pca"]
    draw_measured(ax, noisy, "projection_noise", looks, noisy["projection_noise"] > 0, "line")
    for style, part in _lines(rows):
        _level_lines(ax, part, style)
    legend: list[Artist] = [sample(style) for style in looks.values()]
    legend += [Line2D([], [], color=INK, linestyle=(0, dashes), label=words) for words, dashes in FLAT.values()]
    ax.set_xlabel("noise multiplier of the private PCA  (→ more private directions)")
    ax.set_ylabel(metric_words(settings["metric"]))
    guess, beyond_axis = draw_guessing([(ax, rows)])
    notes = [
        "Where a budget ε is claimed, it holds the private PCA and the training together: less noise here leaves less "
        "of it to the training. Plain PCA and no PCA spend nothing of it (plain PCA is outside the budget). "
        "Bands: 95 % intervals."
    ]
    return finish(figure, [*legend, *guess], [*notes, *beyond_axis, *own_notes(settings)], settings.get("title")), rows


def _lines(rows: pd.DataFrame) -> Iterator[tuple[Look, pd.DataFrame]]:
    """(look, rows) per defense and budget."""
    for series, of_series in each_series(rows):
        for _, part in each_budget(of_series.assign(noise_multiplier=float("nan"))):
            style = look(series)
            yield Look(cell_label(series, part.iloc[0]), style.color, style.marker, style.dashes), part


def _level_lines(ax: "Axes", part: pd.DataFrame, style: Look) -> None:
    for method, (_, dashes) in FLAT.items():
        for row in part[part["projection"] == method].itertuples():
            ax.axhline(row.measured, color=style.color, linestyle=(0, dashes), linewidth=1.0, zorder=2)
