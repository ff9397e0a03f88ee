"""Accuracy over the change of what two attacks find, mean over the data sets: an inversion and a membership attack."""

from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
from decoded import change_percent, layer_rows, mean_over_datasets

from dp_leakage.figures.compared_table import best
from dp_leakage.figures.curves import draw_guessing
from dp_leakage.figures.style import canvas, finish, sample, styled
from dp_leakage.table.frames import chosen, drawn_numbers, each_budget, each_series, metric_rows
from dp_leakage.table.looks import GRAY, look, order
from dp_leakage.table.notes import accounting_notes
from dp_leakage.table.numbers import number

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

FIGURE = {
    "caption": "What each defense costs in accuracy and what it changes for two attackers: one that rebuilds "
    "inputs from the prediction, one that tells members.",
    "settings": {
        "attack": {"$ref": "#/$defs/attack", "default": "decoder"},
        "layer": {"type": "string", "minLength": 1, "default": "prediction", "description": "The layer that it reads."},
    },
}

CELL_KEYS = ["defense", "metric"]
ACROSS = {
    "inversion_mse_change_percent": "change of the black-box reconstruction\nerror (%; → better for privacy)",
    "membership_auc_change_percent": "change of the membership attack's\nAUC (%; ← better for privacy)",
}


@styled
def draw(
    metrics: pd.DataFrame, settings: dict[str, Any], published: pd.DataFrame | None
) -> "tuple[Figure, pd.DataFrame]":
    """Two panels, a point per defense and budget; the undefended model stands at 0.

    Settings:
        attack: the inversion attack.
        layer: the layer that it sees.
    """
    frame = chosen(metrics, settings)
    error = layer_rows(frame, settings["attack"], [settings["layer"]])
    auc = best(metric_rows(frame, "membership_auc"), "membership_auc")
    changes = [
        change_percent(rows, ["dataset", "model"]).assign(metric=metric)
        for metric, rows in zip(ACROSS, (error, auc), strict=True)
    ]
    accuracy = metric_rows(frame, "test_accuracy")
    together = mean_over_datasets(pd.concat([accuracy, *changes], ignore_index=True), CELL_KEYS)
    rows = drawn_numbers(together, published)
    high = rows[rows["metric"] == "test_accuracy"].set_index("defense")
    figure, axes = canvas(1, 2, panel=(3.3, 2.7), sharex=False)
    for ax, (metric, words) in zip(axes[0], ACROSS.items(), strict=True):
        across = rows[rows["metric"] == metric].set_index("defense")
        _panel(ax, high, across)
        ax.set_xlabel(words)
    axes[0][0].set_ylabel("test accuracy (fraction right)")
    handles = [sample(look(series), linestyle="none") for series in sorted(_series(high), key=order)]
    guess, beyond_axis = draw_guessing([(ax, high) for ax in axes[0]])
    notes = ["Means over the data sets; bars: 95 % intervals; the numbers beside points are ε.", *beyond_axis]
    return finish(figure, [*handles, *guess], [*notes, *accounting_notes(frame, settings)], settings.get("title")), rows


def _series(high: pd.DataFrame) -> set[Any]:
    return {series for series, _ in each_series(high)}


def _panel(ax: "Axes", high: pd.DataFrame, across: pd.DataFrame) -> None:
    ax.axvline(0, color=GRAY, linewidth=0.7)
    for series, of_series in each_series(high):
        for (epsilon, _), cell in each_budget(of_series.assign(noise_multiplier=np.nan)):
            up = cell.iloc[0]
            x, x_low, x_high = (
                across.loc[up.name, ["measured", "low", "high"]] if up.name in across.index else (0, 0, 0)
            )
            y = up["measured"]
            reach = {"xerr": [[x - x_low], [x_high - x]], "yerr": [[y - up["low"]], [up["high"] - y]]}
            style = {"linestyle": "none", "elinewidth": 0.8, "zorder": 3, **look(series).mark}
            ax.errorbar([x], [y], **reach, color=look(series).color, **style)
            if np.isfinite(epsilon):
                ax.annotate(number(epsilon), (x, y), (4, 3), textcoords="offset points", fontsize=7)
