"""Lower bounds of audits as a share of the claimed ε, by design, compared with published ones."""

from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from dp_leakage.common.errors import UserError
from dp_leakage.figures.style import canvas, finish, styled
from dp_leakage.metrics.intervals import CONFIDENCE
from dp_leakage.metrics.rows import CELL
from dp_leakage.metrics.spent import COMPARED
from dp_leakage.table.frames import chosen, drawn_numbers
from dp_leakage.table.looks import ALARM, COLORS, GRAY, INK
from dp_leakage.table.notes import claimed_relations, own_notes
from dp_leakage.table.numbers import at_least, number
from dp_leakage.table.words import mechanism_name, name

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

FIGURE = {
    "part": "audit",
    "cells": "private",
    "caption": "Lower bound of each audit, divided by the claimed ε. A value above 1 proves an error. The tick is the "
    "largest bound that the design can show, with perfect scores.",
    "settings": {
        "literature": {
            "type": "array",
            "items": {
                "type": "object",
                "required": ["label", "epsilon", "bound"],
                "additionalProperties": False,
                "properties": {
                    "label": {"type": "string", "minLength": 1},
                    "epsilon": {"type": "number"},
                    "bound": {"type": "number"},
                },
            },
            "default": [],
            "description": "Published bounds to draw beside the study's own.",
        },
        "bugs": {
            "type": "boolean",
            "default": False,
            "description": "Whether to show the designs that plant a bug, instead of the others.",
        },
    },
}

CORRECT = COLORS[0]
PRESENCE = "presence"  # the neighbors of a bound that is restated for those of `COMPARED`
FACTS = [
    "audit",
    "design",
    "claim",
    "canary",
    "seen",
    "start",
    "models",
    "coins",
    "alone",
    "reach",
    "neighbors",
    "bug",
]
PUBLISHED = {"marker": "D", "markersize": 4.5, "color": GRAY, "markerfacecolor": "none", "linestyle": "none"}
REACH = {"marker": "|", "markersize": 9, "color": INK, "linestyle": "none"}
ALONE = {"marker": "o", "markersize": 3.5, "color": CORRECT, "markerfacecolor": "white", "linestyle": "none"}
FARTHEST = 3.0  # of the claim, that the axis shows
SEEN = {"white_box": "every step seen", "loss": "loss of the trained model", "margin": "margin of the trained model"}


@styled
def draw(
    metrics: pd.DataFrame, settings: dict[str, Any], published: pd.DataFrame | None
) -> "tuple[Figure, pd.DataFrame]":
    """Draw one line for each audit of each cell: its bound over the claimed ε, and its reach.

    Settings:
        literature: published bounds: label, epsilon (claimed) and bound of each.
        bugs: show the audits of planted bugs and their controls, instead of the others.
    """
    from matplotlib.lines import Line2D

    frame = chosen(metrics, settings)
    bounds = frame[frame["metric"] == "epsilon_lower_bound"]
    bounds = bounds[bounds["audit"] != ""] if len(bounds) else bounds
    if bounds.empty or bounds["epsilon"].isna().all():
        raise UserError(
            "figure of kind 'proved': no audit of a cell with a claimed ε; expected a study with key 'audit'"
        )
    bounds = _for_claimed_neighbors(bounds)
    among = bounds.groupby(CELL)["bug"].transform(lambda bugs: bool((bugs != "none").any()))
    kept = (among == settings["bugs"]) & bounds["epsilon"].notna()
    if not kept.any():
        raise UserError(f"figure of kind 'proved': setting 'bugs' is {settings['bugs']}, and there are no such audits")
    rows = drawn_numbers(bounds[kept], published, extra=FACTS)
    rows = rows.assign(share=rows["measured"] / rows["epsilon"])
    order = rows["audit"].map({audit: place for place, audit in enumerate(dict.fromkeys(rows["audit"]))})
    rows = rows.assign(order=order).sort_values(["order", "epsilon"], kind="stable").drop(columns="order")
    rows = rows.reset_index(drop=True)
    literature = settings["literature"]
    groups = [(_heading(part.iloc[0]), part) for _, part in rows.groupby("audit", sort=False)]
    lines = len(rows) + len(groups) + len(literature) + bool(literature)
    figure, [[ax]] = canvas(1, 1, panel=(8.0, 0.6 + 0.19 * lines))
    apart = [column for column in ("dataset", "model") if rows[column].nunique() > 1]
    labels, line = {}, 0
    for heading, part in groups:
        _head(ax, line, heading)
        for place, row in enumerate(part.itertuples(), start=line + 1):
            labels[place] = ", ".join([_label(row), *(name(getattr(row, column)) for column in apart)])
            _bar(ax, place, row)
        line += len(part) + 1
    if literature:
        _head(ax, line, "Published by others")
    for place, entry in enumerate(literature, start=line + 1):
        share = float(entry["bound"]) / float(entry["epsilon"])
        labels[place] = f"ε = {number(float(entry['epsilon']))}"
        ax.plot([share], [place], **PUBLISHED)
        _write(ax, share + 0.03, place, f"{entry['bound']:g}: {entry['label']}", GRAY)
    ax.axvline(1, color=INK, linewidth=0.8)
    seen = rows[["measured", "alone", "reach"]].div(rows["epsilon"], axis=0)
    farthest = float(seen[seen <= FARTHEST].max(axis=None)) if (seen <= FARTHEST).any(axis=None) else 1.0
    beyond = FARTHEST if (seen[["measured", "alone"]] > FARTHEST).any(axis=None) else farthest
    ax.set(ylim=(lines - 0.5, -0.5), xlim=(0, max(1.3, beyond + 0.4)))
    ax.set_yticks(list(labels), list(labels.values()), fontsize=7)
    ax.tick_params(axis="y", length=0)
    ax.set_xlabel("lower bound on ε, over the ε that is claimed")
    handles = [Line2D([], [], color=CORRECT, linewidth=2, marker=">", label="proved by our audit")]
    if (rows["alone"] > rows["measured"]).any():
        handles.append(Line2D([], [], label="the same bound for itself at 95 %", **ALONE))
    if (rows["share"] > 1).any():
        handles.append(Line2D([], [], color=ALARM, linewidth=2, marker=">", label="proved: above the claim, an error"))
    if (rows["reach"] / rows["epsilon"] < FARTHEST).any():
        handles.append(Line2D([], [], label="the most that the design could show", **REACH))
    if literature:
        handles.append(Line2D([], [], label="published by others", **PUBLISHED))
    together = (
        "each bound for itself" if np.allclose(rows["confidence"], CONFIDENCE) else "all bounds of the study together"
    )
    notes = [
        f"With 95 % confidence, {together}. Bars end at {FARTHEST:g} times the claim.",
        "“own curve”: the bound tests this mechanism with less noise; “(ε, δ)”: any mechanism.",
        *own_notes(settings),
    ]
    return finish(figure, handles, notes, settings.get("title")), rows


def _for_claimed_neighbors(bounds: pd.DataFrame) -> pd.DataFrame:
    """Return one row per audit: the bound for the claim's neighbors, if an audit has several."""
    restated = bounds["neighbors"] == PRESENCE
    audits = restated.groupby([bounds[column] for column in (*CELL, "audit")])
    both = audits.transform("any") & ~audits.transform("all")
    return bounds[~both | (restated == claimed_relations(bounds).isin(COMPARED[PRESENCE]))]


def _bar(ax: "Axes", place: int, row: Any) -> None:
    """Draw a bound, its value without correction, and its reach, as shares of the claim."""
    share, alone, reach = (min(value / row.epsilon, FARTHEST) for value in (row.measured, row.alone, row.reach))
    color = ALARM if row.share > 1 else CORRECT
    ax.plot([0, share], [place, place], color=color, linewidth=2, zorder=2)
    ax.plot([share], [place], marker=">", markersize=5, color=color, zorder=3)
    if row.alone > row.measured:
        ax.plot([alone], [place], zorder=4, **ALONE)
    if reach < FARTHEST:
        ax.plot([reach], [place], zorder=4, **REACH)
    near = max(share, alone)
    words = max(near, reach) if near < reach < near + 0.3 else near
    _write(ax, words + 0.03, place, f"≥ {at_least(row.measured)}", color)


def _head(ax: "Axes", place: int, words: str) -> None:
    _write(ax, 0.005, place + 0.1, words, INK, weight="bold")


def _write(ax: "Axes", x: float, place: float, words: str, color: str, **how: str) -> None:
    clear = {"facecolor": "white", "edgecolor": "none", "pad": 0.5}  # of the lines behind
    ax.text(x, place, words, fontsize=6.5, va="center", color=color, bbox=clear, **how).set_in_layout(False)


def _heading(row: Any) -> str:
    """Return the label of one audit."""
    claim = "own curve" if row.claim == "own" else "(ε, δ)"
    models = f"{int(row.models):,} model" + ("s" if int(row.models) > 1 else "")
    coins = f", {int(row.coins):,} coins" if row.coins != row.models else ""
    start = ", worst-case start" if row.start == "trained" else ""
    bug = "" if row.bug == "none" else f"BUG {row.bug.replace('_', ' ')}: "
    words = (
        f"{bug}{SEEN[row.seen]}, {row.canary} canary{start}, {row.design.replace('_', ' ')}, {claim} ({models}{coins})"
    )
    return words[0].upper() + words[1:]


def _label(row: Any) -> str:
    sampled = ", Poisson" if row.accountant in ("rdp", "pld") else ""
    return f"{mechanism_name(row.mechanism)}{sampled}, ε = {number(row.epsilon)}"
