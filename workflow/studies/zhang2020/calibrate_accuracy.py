"""Which σ gives a wanted test accuracy: read off a grid of trained models (zhang2020 matches its models so)."""

from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
from mia import UNITS, drawn

from dp_leakage.common.errors import UserError
from dp_leakage.figures.curves import draw_series
from dp_leakage.figures.style import styled
from dp_leakage.table.frames import NUMBERS, OF_CELL, chosen, each_series, is_private, metric_rows, own_row
from dp_leakage.table.looks import GRAY
from dp_leakage.table.notes import own_notes
from dp_leakage.table.numbers import number
from dp_leakage.table.words import name

if TYPE_CHECKING:
    from matplotlib.artist import Artist
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

FIGURE = {
    "caption": "How much noise each kind of privacy bears at the same accuracy: the σ to compare models at.",
    "settings": {
        "wanted": {
            "type": "object",
            "additionalProperties": {
                "type": "array",
                "items": {"type": "number", "exclusiveMinimum": 0, "exclusiveMaximum": 1},
            },
            "default": {},
            "description": "Data set → accuracies at which the noise is read off.",
        },
    },
}


@styled
def draw(
    metrics: pd.DataFrame, settings: dict[str, Any], published: pd.DataFrame | None
) -> "tuple[Figure, pd.DataFrame]":
    """Test accuracy over σ for each mechanism, with the wanted accuracies across and the σ that give them below.

    Settings:
        wanted: data set → list of test accuracies in (0, 1).

    Returns:
        The figure, and its accuracies; below them, for every mechanism and wanted accuracy, ``noise_multiplier`` with
        setting accuracy=…;mechanism=…: the σ at which the falling curve nearest to the points has that accuracy (see
        `sigma_at`), NaN where they do not reach it; its interval from the curves of the intervals' ends.
    """
    frame = chosen(metrics, settings)
    measured = metric_rows(frame, "test_accuracy")
    measured = measured[is_private(measured) & (measured["noise_multiplier"] > 0)]
    if measured.empty:
        raise UserError("figure of kind 'calibrate_accuracy': none of its cells adds noise; select private ones")
    rows = drawn(measured)
    found = _found(rows, settings["wanted"])

    def behind(ax: "Axes", part: pd.DataFrame) -> "list[Artist]":
        for wanted in settings["wanted"].get(part["dataset"].iloc[0], []):
            ax.axhline(wanted, color=GRAY, linewidth=0.8, linestyle=(0, (4, 2)))
        ax.set_ylim(max(0.0, part["low"].min() - 0.05), min(1.02, part["high"].max() + 0.05))
        return []

    figure = draw_series(
        rows,
        x="noise_multiplier",
        x_label="noise multiplier σ  (→ more noise)",
        span=None,
        sharey=False,
        behind=behind,
        notes=["Dashed: the accuracies wanted. " + " ".join(_words(found)), *own_notes(settings)],
        title=settings.get("title"),
    )
    return figure, pd.concat([rows, found], ignore_index=True)


def sigma_at(wanted: float, sigma: np.ndarray, accuracy: np.ndarray) -> float:
    """The σ at which the non-increasing curve nearest to the points (least squares) has the wanted accuracy.

    Args:
        wanted: an accuracy.
        sigma: (n,) ascending, > 0.
        accuracy: (n,) at these.

    Returns:
        Linear in ln σ between the points; the largest σ where the curve is level there; NaN beyond the points.
    """
    from scipy.optimize import isotonic_regression

    curve = isotonic_regression(accuracy, increasing=False).x
    if not curve[-1] <= wanted <= curve[0]:
        return float("nan")
    right = int(np.flatnonzero(curve >= wanted)[-1])
    if curve[right] == wanted or right == len(curve) - 1:
        return float(sigma[right])
    share = (curve[right] - wanted) / (curve[right] - curve[right + 1])
    ends = np.log(sigma[right]), np.log(sigma[right + 1])
    return float(np.exp(ends[0] + share * (ends[1] - ends[0])))


def _found(rows: pd.DataFrame, wanted: dict[str, list[float]]) -> pd.DataFrame:
    lines = []
    for (dataset, model), part in rows.groupby(["dataset", "model"], sort=False):
        for series, line in each_series(part):
            line = line.sort_values("noise_multiplier")
            grid = line["noise_multiplier"].to_numpy()
            for accuracy in wanted.get(str(dataset), []):
                value, low, high = (sigma_at(accuracy, grid, line[c].to_numpy()) for c in ("measured", "low", "high"))
                cell = {"dataset": dataset, "model": model, **series._asdict()}
                lines.append(own_row(cell, "noise_multiplier", (value, low, high), accuracy=accuracy))
    return pd.DataFrame(lines, columns=[*OF_CELL, "accuracy", *NUMBERS])


def _words(found: pd.DataFrame) -> list[str]:
    words = []
    for (dataset, mechanism), part in found.groupby(["dataset", "mechanism"], sort=False):
        pairs = [f"σ = {number(row.measured)} for {100 * row.accuracy:g} %" for row in part.itertuples()]
        words.append(f"{name(str(dataset))}, {UNITS.get(str(mechanism), mechanism)}: {', '.join(pairs)}.")
    return words
