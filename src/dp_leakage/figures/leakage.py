"""An attack's advantage (or its true positive rate) over the claimed ε, with the most that any attack can reach."""

from typing import TYPE_CHECKING, Any

import pandas as pd

from dp_leakage.figures.bounds import bound_columns, bound_lines, bound_notes
from dp_leakage.figures.curves import CLAIMED_LABEL, draw_series
from dp_leakage.figures.frames import (
    attack_rows,
    chosen,
    claims_epsilon,
    drawn_numbers,
    each_series,
    is_private,
    rate_rows,
)
from dp_leakage.figures.limits import divided, proven_notes, with_proven
from dp_leakage.figures.notes import accounting_notes, threshold_notes
from dp_leakage.figures.style import INK, look, styled

if TYPE_CHECKING:
    from matplotlib.artist import Artist
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

FIGURE = {
    "caption": "What an attacker learns. The advantage is the share of true hits less the share of false "
    "alarms: 0 is guessing, 1 is certainty. The dashed lines are the most that any attack can reach, as the noise "
    "of each training proves; a measured point is what this attack reached, not the most that any could.",
    "proven": True,
    "settings": {
        "attack": None,
        "definition": "gap",
        "threshold": "best",
        "fpr": None,
        "point": False,
        "y_max": None,
    },
    "kinds": {
        "attack": ["either", "null", "text"],
        "definition": ["choice", "gap", "released"],
        "threshold": ["choice", "best", "own"],
        "fpr": ["either", "null", ["choice", 0.01, 0.001]],
        "point": "flag",
        "y_max": ["either", "null", ["number", "above", 0]],
    },
}

LIMIT = {"linestyle": (0, (2, 1)), "linewidth": 1.0, "zorder": 2}
NAMED_FPR = 1e-3  # of the proven true positive rate beside an advantage


@styled
def draw(
    metrics: pd.DataFrame, settings: dict[str, Any], published: pd.DataFrame | None
) -> "tuple[Figure, pd.DataFrame]":
    """One panel per (attack, data set, model).

    Settings:
        attack: its name; None: every attack measured, a panel each; ``strongest``: of each cell what finds most.
        definition: which attribute advantage: ``gap`` or ``released``.
        threshold: of membership attacks: ``best``, chosen on other records, or the attack's ``own``.
        fpr: draw the true positive rate at this rate, 0.01 or 0.001, in place of the advantage.
        point: draw what the point (ε, δ) alone allows too, as papers do.
        y_max: end of the axis upward.
    """
    measured, proven = divided(metrics)
    frame, fpr = chosen(measured, settings), settings["fpr"]
    if fpr is None:
        found = attack_rows(frame, settings["attack"], settings["definition"], settings["threshold"])
    else:
        found = rate_rows(frame, settings["attack"], fpr)
    rows = with_proven(drawn_numbers(claims_epsilon(found), published, extra=["attack"]), proven, fpr or NAMED_FPR)
    limit = "advantage_proven" if fpr is None else "tpr_proven"
    if settings["point"]:
        rows = bound_columns(rows, "epsilon")

    def behind(ax: "Axes", part: pd.DataFrame) -> "list[Artist]":
        return [*(bound_lines(ax, part) if settings["point"] else []), *_limits(ax, part, limit)]

    words = "Dashes, in the colour of a series" + ("" if fpr is None else f", at {100 * fpr:g} % false alarms")
    figure = draw_series(
        rows,
        x="epsilon",
        x_label=CLAIMED_LABEL,
        by=("attack", "dataset", "model"),
        y_max=settings["y_max"],
        behind=behind,
        notes=[
            *threshold_notes(rows),
            *proven_notes(proven, words),
            *(bound_notes(rows) if settings["point"] else []),
            *accounting_notes(frame, settings),
        ],
        title=settings.get("title"),
    )
    return figure, rows


def _limits(ax: "Axes", part: pd.DataFrame, limit: str) -> "list[Artist]":
    """What is proven of each series, as far as it is below 1; returns the legend's entry."""
    from matplotlib.lines import Line2D

    private = part[is_private(part) & (part[limit] < 1)]
    for series, line in each_series(private):
        line = line.sort_values("epsilon", kind="stable")
        marks = {"marker": "_", "markersize": 6} if len(line) == 1 else {}
        ax.plot(line["epsilon"], line[limit], color=look(series).color, **marks, **LIMIT)
    return [Line2D([], [], color=INK, label="no attack can be above, proven", **LIMIT)] if len(private) else []
