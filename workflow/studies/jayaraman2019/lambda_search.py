"""Accuracy against the strength of the ℓ2 penalty."""

from typing import TYPE_CHECKING, Any

import pandas as pd

from dp_leakage.common.errors import UserError
from dp_leakage.figures.curves import draw_guessing
from dp_leakage.figures.marks import draw_bands, draw_lines
from dp_leakage.figures.style import finish, log_axis, panel_grid, sample, styled
from dp_leakage.table.frames import chosen, drawn_numbers, metric_rows, panels
from dp_leakage.table.looks import INK, Look
from dp_leakage.table.notes import own_notes

if TYPE_CHECKING:
    from matplotlib.figure import Figure

FIGURE = {
    "caption": "Accuracy against the strength λ of the ℓ2 penalty. The ringed value has the highest accuracy on "
    "new records.",
}

LINES = {
    "test_accuracy": Look("on new records", "#0072b2", "o"),
    "train_accuracy": Look("on records trained on", "#d55e00", "s", (4, 1.5)),
}


@styled
def draw(
    metrics: pd.DataFrame, settings: dict[str, Any], published: pd.DataFrame | None
) -> "tuple[Figure, pd.DataFrame]":
    """One panel per (data set, model), over λ ≥ 0: the column ``l2``.

    Raises:
        UserError: the cells have no λ.
    """
    frame = chosen(metrics, settings)
    if "l2" not in frame or not (frame["l2"] >= 0).any():
        raise UserError(
            "figure of kind 'lambda_search': its cells have no λ; select the cells of a list of ℓ2 penalties"
        )
    searched = pd.concat([metric_rows(frame[frame["l2"] >= 0], metric) for metric in LINES])
    rows = drawn_numbers(searched, published, extra=["l2"])
    rows = rows.sort_values(["dataset", "model", "metric", "l2"], kind="stable", ignore_index=True)
    figure, grid = panel_grid(panels(rows), 3, sharey=False)
    positive = rows.loc[rows["l2"] > 0, "l2"]
    for ax, part in grid:
        log_axis(ax, "x", positive, span=None)
        searched = part[part["l2"] > 0]
        draw_lines(ax, searched, "l2", "measured", LINES, "metric", named=True)
        draw_bands(ax, searched, "l2", LINES, "metric")
        for none in part[part["l2"] == 0].itertuples():
            ax.axhline(none.measured, color=LINES[none.metric].color, linewidth=0.8, linestyle=(0, (1, 3)))
        on_new = part[part["metric"] == "test_accuracy"]
        best = on_new.loc[on_new["measured"].idxmax()]
        if best["l2"] > 0:
            ax.plot([best["l2"]], [best["measured"]], "o", markersize=11, markerfacecolor="none", color=INK, zorder=4)
        ax.set_ylim(0, None)
        ax.set_xlabel("strength λ of the ℓ2 penalty")
        ax.set_ylabel("accuracy (fraction right)")
    guess, beyond_axis = draw_guessing(grid)
    notes = [
        "Ring: the highest test accuracy. Bands: 95 % intervals. Dotted: λ = 0.",
        *beyond_axis,
        *own_notes(settings),
    ]
    return finish(figure, [*map(sample, LINES.values()), *guess], notes, settings.get("title")), rows
