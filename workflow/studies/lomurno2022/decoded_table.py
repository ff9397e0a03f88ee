"""How much each defense changes the error with which a decoder rebuilds inputs from each layer."""

from typing import Any

import numpy as np
import pandas as pd
from decoded import MEAN, change_percent, layer_rows, mean_over_datasets

from dp_leakage.table.frames import chosen, drawn_numbers, each_cell
from dp_leakage.table.notes import accounting_notes
from dp_leakage.table.numbers import cell_label
from dp_leakage.table.tables import Table, Tables
from dp_leakage.table.words import name

FIGURE = {
    "table": True,
    "caption": "How much a defense changes the error with which images are rebuilt from each layer. A defense of the "
    "training records does not promise to hide what the model is asked about.",
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

METRIC = "inversion_mse_change_percent"


def draw(
    metrics: pd.DataFrame, settings: dict[str, Any], published: pd.DataFrame | None
) -> tuple[Tables, pd.DataFrame]:
    """A table of means over data sets, with a row per layer and a column per defense and budget.

    Settings:
        attack: whose errors.
        layers: which, in this order.
    """
    frame = chosen(metrics, settings)
    each = layer_rows(frame, settings["attack"], settings["layers"])
    changes = change_percent(each, ["dataset", "model", "layer"])
    changes = changes.assign(metric=METRIC, statistic="")
    together = mean_over_datasets(changes, ["defense", "layer"])
    rows = drawn_numbers(pd.concat([together, changes], ignore_index=True), published, ["layer"], any_size=True)
    shown = rows[rows["dataset"] == MEAN]
    columns = {
        cell_label(series, cell.iloc[0]): cell.set_index("layer")
        for series, cell in each_cell(shown.assign(noise_multiplier=np.nan))
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
    return Tables([table], [*notes, *accounting_notes(frame, settings)], settings.get("title")), rows


def _cell(row: pd.Series, has_print: bool) -> list[str]:
    reach = (row["high"] - row["low"]) / 2
    text = f"{_signed(row['measured'])} ±{reach:.1f}"
    return [text, "" if np.isnan(row["published"]) else _signed(row["published"])] if has_print else [text]


def _signed(value: float) -> str:
    return f"{value:+.1f}".replace("-", "−")
