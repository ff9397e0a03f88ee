"""How much each defence changes the error of rebuilding inputs, layer by layer, beside the paper's numbers."""

from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
from decoded import change_percent, layer_rows, mean_over_datasets

from dp_leakage.figures.frames import chosen, drawn_numbers, each_budget, each_series
from dp_leakage.figures.notes import accounting_notes
from dp_leakage.figures.numbers import cell_label
from dp_leakage.figures.style import name, styled
from dp_leakage.figures.table import Table, draw_tables

if TYPE_CHECKING:
    from matplotlib.figure import Figure

FIGURE = {
    "caption": "How much a defence changes the error with which images are rebuilt from each layer. A defence "
    "of the training records does not promise to hide what the model is asked about.",
    "settings": {
        "attack": "decoder",
        "layers": ["conv1", "maxpool1", "conv2", "maxpool2", "conv3", "maxpool3", "dense", "prediction"],
    },
    "kinds": {"attack": ["either", "null", "text"], "layers": "texts"},
}

METRIC = "inversion_mse_change_percent"


@styled
def draw(
    metrics: pd.DataFrame, settings: dict[str, Any], published: pd.DataFrame | None
) -> "tuple[Figure, pd.DataFrame]":
    """A row per layer, a column per defence and budget: the mean over the data sets' changes against no defence.

    Settings:
        attack: whose errors.
        layers: which, from the top.
    """
    frame = chosen(metrics, settings)
    each = layer_rows(frame, settings["attack"], settings["layers"])
    changes = change_percent(each, ["dataset", "model", "layer"])
    settings_ = [f"attack={settings['attack']};layer={layer}" for layer in changes["layer"]]
    changes = changes.assign(metric=METRIC, setting=settings_)
    together = mean_over_datasets(changes, ["defense", "layer"])
    rows = drawn_numbers(pd.concat([together, changes], ignore_index=True), published, ["layer"], any_size=True)
    shown = rows[rows["dataset"] == "mean"]
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
        "Mean over the data sets of the change against no defence; more is better for privacy.",
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
