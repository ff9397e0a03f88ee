"""Accuracy over the risk that is proven: all mechanisms on the one axis that means the same for all of them."""

from typing import TYPE_CHECKING, Any

import pandas as pd

from dp_leakage.figures.curves import draw_series
from dp_leakage.figures.frames import chosen, drawn_numbers, is_private, metric_rows
from dp_leakage.figures.limits import divided, proven_notes, with_proven
from dp_leakage.figures.notes import own_notes
from dp_leakage.figures.style import styled

if TYPE_CHECKING:
    from matplotlib.figure import Figure

FIGURE = {
    "caption": "What each degree of proven protection costs in accuracy. Across is the most that any attack can "
    "reach, whatever the mechanism: an ε means something else for each of them, this does not. Best is top left: "
    "accurate and surely safe.",
    "proven": True,
    "settings": {"metric": "test_accuracy", "fpr": None, "y_max": None},
    "kinds": {
        "metric": "text",
        "fpr": ["either", "null", ["number", "above", 0, "below", 1]],
        "y_max": ["either", "null", ["number", "above", 0]],
    },
}


@styled
def draw(
    metrics: pd.DataFrame, settings: dict[str, Any], published: pd.DataFrame | None
) -> "tuple[Figure, pd.DataFrame]":
    """One panel per (data set, model).

    Settings:
        metric: upward, ``test_accuracy`` or another metric of the training.
        fpr: across, the proven true positive rate at this rate; None: the proven advantage.
        y_max: end of the axis upward.
    """
    measured, proven = divided(metrics)
    rows = drawn_numbers(metric_rows(chosen(measured, settings), settings["metric"]), published)
    rows = with_proven(rows, proven, settings["fpr"])
    if settings["fpr"] is None:
        risk, words = "advantage_proven", "proven: advantage of any attack\nat most"
    else:
        risk = "tpr_proven"
        words = f"proven: at most so many members named\nat {100 * settings['fpr']:g} % false alarms"
    silent = rows[is_private(rows) & (rows[risk] >= 1)]
    figure = draw_series(
        rows,
        x=risk,
        x_label=f"{words} (→ weaker)",
        span=None,
        y_max=settings["y_max"],
        notes=[
            "Bands and bars: 95 % intervals.",
            *proven_notes(proven, "Across"),
            *(
                [f"At 1, nothing is proven: {len(silent)} of {int(is_private(rows).sum())} cells."]
                if len(silent)
                else []
            ),
            *own_notes(settings),
        ],
        title=settings.get("title"),
    )
    return figure, rows
