"""Accuracy lost to privacy, over the claimed ε."""

from typing import TYPE_CHECKING, Any

import pandas as pd

from dp_leakage.figures.curves import CLAIMED_LABEL, draw_series
from dp_leakage.figures.frames import chosen, claims_epsilon, drawn_numbers, metric_rows
from dp_leakage.figures.notes import accounting_notes
from dp_leakage.figures.style import styled

if TYPE_CHECKING:
    from matplotlib.figure import Figure

FIGURE = {
    "caption": "What the privacy budget costs in accuracy. Left: a small ε, strong protection; right: a large "
    "ε, weak protection; far right: trained without differential privacy. A loss of 0 is the accuracy of the "
    "undefended model, 1 is no use at all.",
    "settings": {"normalised": True, "y_max": None},
    "kinds": {"normalised": "flag", "y_max": ["either", "null", ["number", "above", 0]]},
}


@styled
def draw(
    metrics: pd.DataFrame, settings: dict[str, Any], published: pd.DataFrame | None
) -> "tuple[Figure, pd.DataFrame]":
    """One panel per (data set, model).

    Settings:
        normalised: true: the loss relative to the non-private accuracy, as in jayaraman2019; false: the test
            accuracy itself.
        y_max: end of the axis upward.
    """
    frame = chosen(metrics, settings)
    metric = "accuracy_loss" if settings["normalised"] else "test_accuracy"
    rows = drawn_numbers(claims_epsilon(metric_rows(frame, metric)), published)
    figure = draw_series(
        rows,
        x="epsilon",
        x_label=CLAIMED_LABEL,
        y_max=settings["y_max"],
        notes=accounting_notes(frame, settings),
        title=settings.get("title"),
    )
    return figure, rows
