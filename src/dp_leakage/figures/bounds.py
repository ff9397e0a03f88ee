"""Limits in a leakage figure: the maximum for any attack at a budget, as proven and as printed."""

from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from dp_leakage.privacy.bounds import advantage_bound, printed_advantage_bound
from dp_leakage.table.frames import is_private
from dp_leakage.table.looks import GRAY

if TYPE_CHECKING:
    from matplotlib.axes import Axes

# column: (legend, line style)
BOUNDS = {
    "bound_replace_one": ("bound, replace-one ε", "-"),
    "bound_add_remove": ("bound, add/remove ε", (0, (6, 1.5, 1, 1.5))),
    "bound_printed": ("e^ε − 1, as printed", (0, (1, 1.5))),
}


def bounds_at(epsilon: np.ndarray, delta: float) -> dict[str, np.ndarray]:
    """Return three bounds on the advantage at budgets ε ≥ 0, each of shape (n,): for a budget that holds for
    replace-one neighbors, for one that holds for add/remove (or zero-out) neighbors, and the bound papers print.

    With a fixed number of records, comparing a member with a non-member means one replacement: one removal and one
    addition. So (ε, δ) for add/remove implies (2ε, (1 + e^ε)δ) for replacement, which bounds the advantage.
    """
    with np.errstate(over="ignore"):
        doubled_delta = np.minimum((1 + np.exp(epsilon)) * delta, 1.0)
    return {
        "bound_replace_one": advantage_bound(epsilon, delta),
        "bound_add_remove": advantage_bound(2 * epsilon, doubled_delta),
        "bound_printed": printed_advantage_bound(epsilon),
    }


def bound_columns(rows: pd.DataFrame, x: str) -> pd.DataFrame:
    """Add the limits at each private row's budget in column ``x``; NaN for the others."""
    private = is_private(rows) & np.isfinite(rows[x])
    at = {column: np.full(len(rows), np.nan) for column in BOUNDS}
    for delta in rows.loc[private, "delta"].unique():
        here = (private & (rows["delta"] == delta)).to_numpy()
        for column, values in bounds_at(rows.loc[here, x].to_numpy(dtype=float), delta).items():
            at[column][here] = values
    return rows.assign(**at)


def bound_lines(ax: "Axes", rows: pd.DataFrame, relations: set[str]) -> "list[Any]":
    """Draw the limits into a panel with final axes, for its largest δ.

    They are drawn in steps up to the next ε, because the bounds increase and a chord of a concave curve would lie below
    the curve.

    Args:
        ax: the panel.
        rows: of the panel.
        relations: the neighboring relations of the ε across.
    """
    from matplotlib.lines import Line2D

    private = rows[is_private(rows)]
    if private.empty:
        return []
    first, last = ax.get_xlim()
    epsilon = np.geomspace(first, last, 400)
    shown = bounds_at(epsilon, float(private["delta"].max()))
    if relations <= {"replace_one"}:
        del shown["bound_add_remove"]
    drawn = []
    for column, values in shown.items():
        label, style = BOUNDS[column]
        ax.plot(epsilon, values, color=GRAY, linewidth=1, linestyle=style, zorder=1, drawstyle="steps-pre")
        drawn.append(Line2D([], [], color=GRAY, linewidth=1, linestyle=style, label=label))
    return drawn


def bound_notes(rows: pd.DataFrame, relations: set[str]) -> list[str]:
    """Describe the gray limit lines, and the neighbors of each."""
    deltas = sorted(set(rows["delta"].dropna()))
    if not deltas:
        return []
    twice = "dash-dotted, the same at 2ε, (1 + e^ε)δ, for one of add/remove or zero-out neighbors; "
    return [
        f"Gray: the most that (ε, δ = {deltas[-1]:g}) allows.",
        f"Solid, (e^ε − 1 + 2δ)/(e^ε + 1) for an ε of replace-one neighbors; "
        f"{'' if relations <= {'replace_one'} else twice}dotted, the e^ε − 1 that jayaraman2019 draws.",
    ]
