"""An attack's advantage over the claimed ε, with what differential privacy allows at most."""

from typing import TYPE_CHECKING, Any

import pandas as pd

from dp_leakage.figures.bounds import bound_columns, bound_lines, bound_notes
from dp_leakage.figures.curves import CLAIMED_LABEL, draw_series
from dp_leakage.figures.frames import attack_rows, chosen, claims_epsilon, drawn_numbers
from dp_leakage.figures.notes import accounting_notes, threshold_notes
from dp_leakage.figures.style import styled

if TYPE_CHECKING:
    from matplotlib.figure import Figure


@styled
def draw(
    metrics: pd.DataFrame, settings: dict[str, Any], published: pd.DataFrame | None
) -> "tuple[Figure, pd.DataFrame]":
    """One panel per (attack, data set, model).

    Settings:
        attack: its name; None: every attack measured, a panel each; ``strongest``: of each cell what finds most.
        definition: which attribute advantage: ``gap`` or ``released``.
        threshold: of membership attacks: ``best``, chosen on other records, or the attack's ``own``.
        y_max: end of the axis upward.
    """
    frame = chosen(metrics, settings)
    measured = attack_rows(frame, settings["attack"], settings["definition"], settings["threshold"])
    rows = bound_columns(drawn_numbers(claims_epsilon(measured), published, extra=["attack"]), "epsilon")
    figure = draw_series(
        rows,
        x="epsilon",
        x_label=CLAIMED_LABEL,
        by=("attack", "dataset", "model"),
        y_max=settings["y_max"],
        behind=bound_lines,
        notes=[*threshold_notes(rows), *bound_notes(rows), *accounting_notes(frame, settings)],
        title=settings.get("title"),
    )
    return figure, rows
