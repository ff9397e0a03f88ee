"""Accuracy and MIA distance over the budget, or over the number of subclasses (zhang2020, figures 7 to 9, 12, 13)."""

from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
from mia import (
    ATTACKS,
    CONTROLS,
    MEASURES,
    control_rows,
    drawn,
    inversion_rows,
    one,
    own_spent,
    printed_accuracies,
    window_notes,
)

from dp_leakage.common.errors import UserError, nearest
from dp_leakage.figures.curves import draw_series
from dp_leakage.figures.style import styled
from dp_leakage.table.frames import chosen, is_private, metric_rows
from dp_leakage.table.looks import GRAY, INK
from dp_leakage.table.notes import accounting_notes

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

FIGURE = {
    "caption": "Accuracy, and the distance of inverted pictures from the training images. If the distance measures "
    "protection, it should rise as ε falls. Gray lines: the distance of pictures made without a model.",
    "settings": {
        "attack": {"$ref": "#/$defs/attack", "default": "inversion_l1"},
        "measure": {"$ref": "#/$defs/measure"},
        "across": {
            "enum": ["epsilon_spent", "k_sub"],
            "default": "epsilon_spent",
            "description": "What the horizontal axis shows.",
        },
    },
}

ACROSS = {
    "epsilon_spent": "ε spent (→ weaker protection)",
    "k_sub": "subclasses of each class (k_sub)",
}
DASHES = {"black": "-", "gray": (0, (1, 1.5)), "mean": (0, (4, 2)), "class_mean": (0, (4, 1.5, 1, 1.5))}


@styled
def draw(
    metrics: pd.DataFrame, settings: dict[str, Any], published: pd.DataFrame | None
) -> "tuple[Figure, pd.DataFrame]":
    """(a) test accuracy, (b) MIA distance in the mean over classes, with the controls that need no model.

    Settings:
        attack: whose distance.
        measure: ``euclidean`` or ``1-ssim``.
        across: ``epsilon_spent`` or ``k_sub``.

    Raises:
        UserError: several data sets or models, or no private cell.
    """
    frame, measure, across = chosen(metrics, settings), settings["measure"], settings["across"]
    if across not in ACROSS:
        raise UserError(f"figure setting 'across': '{across}' is none; {nearest(across, ACROSS)}")
    cell = one(frame, "mia_budget")
    rows = pd.concat([metric_rows(frame, "test_accuracy"), inversion_rows(frame, settings["attack"], measure)])
    if not is_private(rows).any():
        raise UserError("figure of kind 'mia_budget': none of its cells is private; select some")
    spent = own_spent(frame).set_index("defense")["epsilon_spent"]
    rows = rows.assign(epsilon_spent=rows["defense"].map(spent), k_sub=rows["k_sub"].where(rows["k_sub"] > 0))
    controls = control_rows(frame, measure)
    printed = [
        prints.assign(mechanism=mechanism)
        for mechanism in sorted(set(rows.loc[is_private(rows), "mechanism"]))
        if not (prints := printed_accuracies(published, cell["dataset"], mechanism)).empty
    ]

    prints = pd.concat(printed) if printed and across == "epsilon_spent" else None

    def behind(ax: "Axes", part: pd.DataFrame) -> "list[Any]":
        distances = part["metric"].iloc[0] == "mia_distance"
        entries = _lines(ax if distances else None, controls)
        return entries if prints is None else [*entries, *_prints(None if distances else ax, prints)]

    numbers = drawn(rows, ["epsilon_spent", "k_sub"])
    figure = draw_series(
        numbers.assign(order=(numbers["metric"] == "mia_distance").astype(int)),
        x=across,
        x_label=ACROSS[across],
        by=["dataset", "model", "order"],
        named=[],
        span=_decades([*rows.loc[is_private(rows), across], *([] if prints is None else prints["epsilon"])]),
        sharey=False,
        behind=behind,
        notes=[_note(rows, settings, measure, across), *window_notes(measure), *accounting_notes(frame, settings)],
        title=settings.get("title"),
    )
    return figure, numbers


def _decades(values: list[float]) -> tuple[float, float]:
    """The whole decades that hold these values, so that the axis ends on a tick."""
    shown = [value for value in values if np.isfinite(value) and value > 0]
    return 10.0 ** np.floor(np.log10(min(shown))), 10.0 ** np.ceil(np.log10(max(shown)))


def _lines(ax: "Axes | None", controls: dict[str, pd.DataFrame]) -> "list[Any]":
    """Legend entries of the controls, which are drawn where there is a panel for them."""
    from matplotlib.lines import Line2D

    found = []
    for variant, rows in controls.items():
        style = {"color": GRAY, "linewidth": 1, "linestyle": DASHES[variant]}
        found.append(Line2D([], [], label=CONTROLS[variant], **style))
        if ax is not None:
            value = rows["value"].iloc[0]
            ax.axhline(value, **style)
            bottom, top = ax.get_ylim()
            ax.set_ylim(bottom, max(top, 1.05 * value))
    return found


def _prints(ax: "Axes | None", printed: pd.DataFrame) -> "list[Any]":
    """The legend entry of the prints, which are drawn where there is a panel for them."""
    from matplotlib.lines import Line2D

    hollow = {"marker": "o", "markersize": 7.5, "markerfacecolor": "none", "linestyle": "none", "color": INK}
    if ax is not None:
        ax.plot(printed["epsilon"], printed["published"], **hollow)
    return [Line2D([], [], label="printed, at the printed ε", **hollow)]


def _note(rows: pd.DataFrame, settings: dict[str, Any], measure: str, across: str) -> str:
    """What is drawn, and how the distance goes with what is across, in ranks."""
    from scipy.stats import spearmanr

    words = (
        f"Distance: {MEASURES[measure]}, to the nearest training image of the class, mean over classes; "
        f"{ATTACKS.get(settings['attack'], settings['attack'])} attack. ε: that of the cell's own accountant."
    )
    private = rows[is_private(rows) & (rows["metric"] == "mia_distance")]
    if len(private) < 3 or private["value"].nunique() < 2 or private[across].nunique() < 2:
        return words
    rank = float(spearmanr(private[across], private["value"]).statistic)
    sign = "−" if rank < 0 else ""
    return f"{words} Spearman's rank correlation of {len(private)} cells: {sign}{abs(np.round(rank, 2)):.2f}."
