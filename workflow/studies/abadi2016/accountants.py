"""The ε of one and the same training as several accountants count it, epoch by epoch."""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from dp_leakage.common.errors import UserError
from dp_leakage.figures.marks import draw_lines
from dp_leakage.figures.style import finish, log_axis, panel_grid, sample, styled
from dp_leakage.table.frames import chosen, in_order, is_private, own_row, panels
from dp_leakage.table.looks import Look
from dp_leakage.table.notes import own_notes
from dp_leakage.table.numbers import number

if TYPE_CHECKING:
    from matplotlib.figure import Figure

FIGURE = {
    "caption": "The ε of the same training as three accountants count it, epoch by epoch. The training does not "
    "change; what a looser account claims to have spent was never spent.",
}

POINTS = 14  # epochs that are counted: pld takes tenths of a second for each
COUNTED = {
    "advanced": Look("advanced composition of amplified steps", "#e69f00", "D", (5, 1.2, 1, 1.2)),
    "rdp": Look("RDP (moments)", "#0072b2", "o"),
    "pld": Look("PLD", "#56b4e9", "v", (7, 1)),
}


@styled
def draw(
    metrics: pd.DataFrame, settings: dict[str, Any], published: pd.DataFrame | None
) -> "tuple[Figure, pd.DataFrame]":
    """One panel per cell, one line per accountant; nothing here is measured but the noise that was trained with.

    Args:
        metrics: rows of the cells, with ``noise_multiplier``, ``batch_size``, ``n_records``, ``delta``, ``epochs`` and
            ``projection_noise`` of a private PCA (NaN without one) beside.
        settings: none of its own.
        published: not used; the papers draw such curves and print no numbers.

    Raises:
        UserError: no cell has Gaussian noise on Poisson batches.
    """
    frame = chosen(metrics, settings)
    cells = frame[is_private(frame) & frame["accountant"].isin(["rdp", "pld"]) & frame["noise_multiplier"].notna()]
    cells = cells.drop_duplicates(["dataset", "model", "defense"])
    if cells.empty:
        raise UserError("figure of kind 'accountants': no cell trains on Poisson batches with Gaussian noise")
    rows = in_order(pd.concat([_curves(cell) for _, cell in cells.iterrows()], ignore_index=True))
    parts = [
        (f"{heading} · ε = {number(claimed)}" if np.isfinite(claimed := part["epsilon"].iloc[0]) else heading, part)
        for heading, part in panels(rows, ("dataset", "model", "defense"), ("dataset", "model"))
    ]
    figure, grid = panel_grid(parts, 3, sharex=False, sharey=True)
    for ax, part in grid:
        log_axis(ax, "y", rows["measured"], span=None)
        draw_lines(ax, part, "epoch", "measured", COUNTED, "accounted_by", named=True, markevery=3)
        ticks: Any = ax.xaxis.get_major_locator()
        ticks.set_params(integer=True)
        ax.set_xlabel("epoch")
    grid[0][0].set_ylabel("ε spent so far")
    delta = ", ".join(f"{value:g}" for value in sorted(set(rows["delta"])))
    notes = [f"The same noise and batches in each panel; δ = {delta}; add/remove neighbors."]
    if frame["projection_noise"].notna().any():
        notes.append("Where a private PCA came first, the curve begins with what it spent.")
    legend = [sample(style) for style in COUNTED.values()]
    return finish(figure, legend, [*notes, *own_notes(settings)], settings.get("title")), rows


def _curves(cell: pd.Series) -> pd.DataFrame:
    """Rows of all accountants for one cell."""
    epochs = np.unique(np.geomspace(1, cell["epochs"], POINTS).round().astype(int))
    curves = {accountant: _counter(accountant, cell) for accountant in COUNTED}
    return pd.DataFrame(
        [
            own_row(cell, "epsilon_spent", [of(epoch)], accounted_by=name, neighbors="add_remove", epoch=int(epoch))
            for name, of in curves.items()
            for epoch in epochs
        ]
    )


def _counter(accountant: str, cell: pd.Series) -> Callable[[int], float]:
    """ε after so many epochs of the cell's training."""
    from dp_leakage.privacy.accounting import Case, Training, epsilon_spent
    from dp_leakage.privacy.accounting.amplified import advanced_epsilon
    from dp_leakage.privacy.mechanism import Mechanism

    projection = None if pd.isna(cell["projection_noise"]) else float(cell["projection_noise"])
    step = Mechanism("poisson", noise_multiplier=float(cell["noise_multiplier"]))
    batch_size, records = int(cell["batch_size"]), int(cell["n_records"])

    def after(epoch: int) -> float:
        training = Training(step, int(epoch), batch_size, records, projection_noise=projection)
        if accountant == "advanced":
            return advanced_epsilon(training.rate, step.sigma, cell["delta"], training.steps, projection)
        return epsilon_spent(Case(training, accountant, cell["delta"]))

    return after
