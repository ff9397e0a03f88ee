"""Defenses × attacks: one number per pair, as a colored table."""

from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from dp_leakage.common.rounding import decimals_up
from dp_leakage.figures.frames import attack_rows, chosen, drawn_numbers, each_cell, panels
from dp_leakage.figures.limits import divided, proven_notes, with_proven
from dp_leakage.figures.notes import accounting_notes, threshold_notes
from dp_leakage.figures.numbers import cell_label
from dp_leakage.figures.style import ALARM, GRAY, INK, canvas, finish, name, styled

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

FIGURE = {
    "caption": "Every defense against every attack. The number is the attack's advantage, the true positive rate "
    "minus the false positive rate: 0 is guessing, 1 is certainty. For attribute attacks it is the accuracy on "
    "members minus that on non-members. Bold: its 95 % interval lies above 0. Last column: the maximum that any "
    "membership attack can reach, proven from the noise. A red number exceeds it, which would prove an error.",
    "proven": True,
    "settings": {"definition": {"$ref": "#/$defs/definition"}, "threshold": {"$ref": "#/$defs/threshold"}},
}

ROW, COLUMN = 0.17, 0.68  # inches
LIMIT = "no attack\nabove"
SHADES = {"cmap": "Blues", "vmin": 0, "vmax": 1, "edgecolors": "white", "linewidth": 0.5}
MIDDLE = {"ha": "center", "va": "center", "fontsize": 6.5}


@styled
def draw(
    metrics: pd.DataFrame, settings: dict[str, Any], published: pd.DataFrame | None
) -> "tuple[Figure, pd.DataFrame]":
    """One panel per (data set, model); rows are defenses and budgets, columns attacks.

    Settings:
        definition: of the attribute attacks' advantage, ``gap`` or ``released``.
        threshold: of membership attacks: ``best``, chosen on other records, or the attack's ``own``.
    """
    measured, proven = divided(metrics)
    frame = chosen(measured, settings)
    rows = drawn_numbers(
        attack_rows(frame, None, settings["definition"], settings["threshold"]), published, extra=["attack"]
    )
    rows = with_proven(rows, proven, None).drop(columns=["tpr_proven", "mu"])
    # Of an attribute attack's advantage the curve says nothing.
    rows["advantage_proven"] = rows["advantage_proven"].where(rows["metric"] != "attribute_advantage")
    rows["crosses"] = rows["low"] > rows["advantage_proven"]
    parts = panels(rows)
    attacks = list(dict.fromkeys(rows.sort_values("metric", ascending=False, kind="stable")["attack"]))
    longest = max(part["defense"].nunique() for _, part in parts)
    panel = (2.4 + COLUMN * (len(attacks) + 1), 0.7 + ROW * longest)
    figure, axes = canvas(len(parts), 1, panel=panel, sharex=False, sharey=False)
    for (ax,), (heading, part) in zip(axes, parts, strict=True):
        _panel(ax, part, attacks)
        ax.set_title(heading, loc="left", pad=4)
    notes = [*threshold_notes(rows), *proven_notes(proven, "Last column"), *accounting_notes(frame, settings)]
    return finish(figure, [], notes, settings.get("title")), rows


def _panel(ax: "Axes", part: pd.DataFrame, attacks: list[str]) -> None:
    cells = [(cell_label(series, cell.iloc[0]), cell) for series, cell in each_cell(part)]
    tiles = np.array([cell.set_index("attack")["measured"].reindex(attacks) for _, cell in cells])
    ax.pcolormesh(tiles, **SHADES)
    for line, (_, cell) in enumerate(cells):
        for row in cell.itertuples():
            text = f"{row.measured + 0.0:.2f}".replace("-0.00", "0.00").replace("-", "−")
            weight = "bold" if row.low > 0 else "normal"
            color = ALARM if row.crosses else "white" if row.measured > 0.6 else INK
            ax.text(attacks.index(row.attack) + 0.5, line + 0.5, text, **MIDDLE, fontweight=weight, color=color)
        ax.text(len(attacks) + 0.5, line + 0.5, _limit(cell["advantage_proven"]), **MIDDLE)
    ax.axvline(len(attacks), color=GRAY, linewidth=0.8)
    ax.set(xlim=(0, len(attacks) + 1), ylim=(len(cells), 0))
    heads = [*(name(attack).replace(" ", "\n") for attack in attacks), LIMIT]
    ax.set_xticks(np.arange(len(heads)) + 0.5, heads, fontsize=7)
    ax.set_yticks(np.arange(len(cells)) + 0.5, [label for label, _ in cells], fontsize=7)
    ax.tick_params(length=0)
    ax.grid(False)


def _limit(proven: pd.Series) -> str:
    """The proven advantage of a cell's rows, rounded up; a dash where there is none."""
    most = proven.min()
    return "–" if pd.isna(most) else decimals_up(most, 2)
