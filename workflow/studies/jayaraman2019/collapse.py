"""Accuracy loss and leakage over the noise: whatever the accountant, one curve."""

from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from dp_leakage.common.errors import UserError
from dp_leakage.figures.curves import draw_series
from dp_leakage.figures.style import styled
from dp_leakage.table.frames import attack_rows, chosen, drawn_numbers, is_private, metric_rows, panels
from dp_leakage.table.looks import GRAY
from dp_leakage.table.notes import own_notes, threshold_notes

if TYPE_CHECKING:
    from matplotlib.artist import Artist
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

FIGURE = {
    "caption": "The same measurements over the noise itself (σ, relative to the clipping norm). Where all "
    "series fall on one curve, the noise alone decides, and the name of the privacy definition only says how much "
    "of it was added.",
    "settings": {
        "attack": {"$ref": "#/$defs/attack", "default": "yeom"},
        "definition": {"$ref": "#/$defs/definition"},
        "threshold": {"$ref": "#/$defs/threshold"},
    },
}


@styled
def draw(
    metrics: pd.DataFrame, settings: dict[str, Any], published: pd.DataFrame | None
) -> "tuple[Figure, pd.DataFrame]":
    """Per (data set, model) one panel of accuracy loss and one of the attack's advantage.

    Settings:
        attack: whose advantage; None: accuracy loss alone.
        definition: which attribute advantage: ``gap`` or ``released``.
        threshold: of membership attacks: ``best``, chosen on other records, or the attack's ``own``.
    """
    frame = chosen(metrics, settings)
    parts = [metric_rows(frame, "accuracy_loss").assign(attack="")]
    if settings["attack"] is not None:
        parts.append(attack_rows(frame, settings["attack"], settings["definition"], settings["threshold"]))
    measured = pd.concat(parts)
    measured = measured[is_private(measured) & (measured["noise_multiplier"] > 0)]
    if measured.empty:
        raise UserError("figure of kind 'collapse': none of its cells adds noise; select private ones")
    rows = drawn_numbers(measured, published, extra=["attack"])
    by = ["dataset", "model", "metric"]
    rows = rows.assign(curve=pd.concat([_monotone(part) for _, part in rows.groupby(by)]))
    words = [f"{_distance(part):.3f} ({heading})" for heading, part in panels(rows, by)]
    figure = draw_series(
        rows,
        x="noise_multiplier",
        x_label="noise multiplier σ  (→ more noise)",
        by=by,
        named=by[:2],
        span=None,
        sharey=False,
        behind=_curve,
        notes=[
            f"Gray: the one monotone curve nearest to all points; their root-mean-square distance: {'; '.join(words)}.",
            *threshold_notes(rows),
            *own_notes(settings),
        ],
        title=settings.get("title"),
    )
    return figure, rows


def _monotone(part: pd.DataFrame) -> pd.Series:
    """The least-squares monotone curve through all points of a panel, at each; loss rises with noise, leakage falls.

    Points of the same noise count as one, at their mean.
    """
    from scipy.optimize import isotonic_regression

    means = part.groupby("noise_multiplier")["measured"].agg(["mean", "size"])
    rises = part["metric"].iloc[0] == "accuracy_loss"
    fitted = isotonic_regression(means["mean"], weights=means["size"], increasing=rises).x
    return part["noise_multiplier"].map(dict(zip(means.index, fitted, strict=True)))


def _distance(part: pd.DataFrame) -> float:
    return float(np.sqrt(np.mean((part["measured"] - part["curve"]) ** 2)))


def _curve(ax: "Axes", part: pd.DataFrame) -> "list[Artist]":
    from matplotlib.lines import Line2D

    ordered = part.sort_values("noise_multiplier", kind="stable")
    look = {"color": GRAY, "alpha": 0.45, "linewidth": 4, "solid_capstyle": "round"}
    ax.plot(ordered["noise_multiplier"], ordered["curve"], zorder=1, **look)
    return [Line2D([], [], label="one curve for all", **look)]
