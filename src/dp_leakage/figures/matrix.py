"""Defenses × attacks: one number per pair, as a colored table."""

from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from dp_leakage.figures.frames import attack_rows, chosen, drawn_numbers, each_cell, panels
from dp_leakage.figures.limits import ALARM, divided, proven_notes, with_proven
from dp_leakage.figures.notes import accounting_notes, threshold_notes
from dp_leakage.figures.numbers import cell_label
from dp_leakage.figures.style import GRAY, canvas, finish, name, styled

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

FIGURE = {
    "caption": "Every defense against every attack. The number is the attack's advantage, 0 for guessing and 1 "
    "for certainty; bold where its 95 % interval lies above 0. In the last column is the most that any membership "
    "attack can reach, as the noise proves it. A number in red is above that: the proof of an error.",
    "proven": True,
    "settings": {"definition": "gap", "threshold": "best"},
    "kinds": {"definition": ["choice", "gap", "released"], "threshold": ["choice", "best", "own"]},
}

ROW, COLUMN = 0.17, 0.58  # inches
LIMIT = "no attack\nabove"


@styled
def draw(
    metrics: pd.DataFrame, settings: dict[str, Any], published: pd.DataFrame | None
) -> "tuple[Figure, pd.DataFrame]":
    """One panel per (data set, model); rows are defenses and budgets, columns attacks.

    Settings:
        definition: of the attribute attacks' advantage, ``gap`` or ``released``.
        threshold: of membership attacks: ``best``, chosen on other records, or the attack's ``own``.
    """
    from matplotlib.patches import Patch

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
    notes = ["Advantage: true less false positive rate; of attribute attacks the gap in accuracy, members less others."]
    notes += [*threshold_notes(rows), *proven_notes(proven, "Last column")]
    handles = [
        Patch(facecolor=_shades()(x), edgecolor=GRAY, linewidth=0.5, label=f"advantage {x:g}") for x in (0.0, 0.5, 1.0)
    ]
    return finish(figure, handles, [*notes, *accounting_notes(frame, settings)], settings.get("title")), rows


def _panel(ax: "Axes", part: pd.DataFrame, attacks: list[str]) -> None:
    shades = _shades()
    labels: list[str] = []
    for place, (series, cell) in enumerate(each_cell(part)):
        labels.append(cell_label(series, cell.iloc[0]))
        for row in cell.itertuples():
            strength = min(max(row.measured, 0.0), 1.0)
            column = attacks.index(row.attack)
            ax.add_patch(_tile(column, place, shades(strength)))
            weight = "bold" if row.low > 0 else "normal"
            color = ALARM if row.crosses else "white" if strength > 0.6 else "black"
            text = f"{row.measured + 0.0:.2f}".replace("-0.00", "0.00").replace("-", "−")
            ax.text(column, place, text, ha="center", va="center", fontsize=6.5, fontweight=weight, color=color)
        ax.text(len(attacks), place, _limit(cell["advantage_proven"]), ha="center", va="center", fontsize=6.5)
    ax.axvline(len(attacks) - 0.5, color=GRAY, linewidth=0.8)
    ax.set(xlim=(-0.5, len(attacks) + 0.5), ylim=(len(labels) - 0.5, -0.5))
    ax.set_yticks(range(len(labels)), labels, fontsize=7)
    heads = [*(name(attack).replace(" ", "\n") for attack in attacks), LIMIT]
    ax.set_xticks(range(len(heads)), heads, fontsize=7)
    ax.tick_params(length=0)
    ax.grid(False)
    for spine in ax.spines.values():
        spine.set_color(GRAY)


def _limit(proven: pd.Series) -> str:
    """The proven advantage of a cell's rows, rounded up; a dash where there is none."""
    most = proven.min()
    return "–" if pd.isna(most) else f"{np.ceil(100 * most - 1e-9) / 100:.2f}"


def _shades() -> Any:
    from matplotlib import colormaps

    return colormaps["Blues"]


def _tile(column: int, place: int, color: Any) -> Any:
    from matplotlib.patches import Rectangle

    return Rectangle((column - 0.5, place - 0.5), 1, 1, facecolor=color, edgecolor="white", linewidth=0.5)
