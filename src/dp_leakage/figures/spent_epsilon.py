"""Accounted ε of a training by each accountant, over its target ε."""

from textwrap import fill
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from dp_leakage.common.errors import UserError
from dp_leakage.figures.marks import draw_lines, draw_points
from dp_leakage.figures.style import EPSILON_RANGE, finish, label_edges, log_axis, panel_grid, sample, styled
from dp_leakage.metrics.rows import OF_ONE_RECORD
from dp_leakage.metrics.spent import is_hypothetical
from dp_leakage.table.frames import chosen, claims_epsilon, drawn_numbers, is_private, metric_rows, panels, series_of
from dp_leakage.table.looks import GRAY, Look, Series, look, order
from dp_leakage.table.notes import claimed_relations, own_notes, remarks
from dp_leakage.table.words import name

if TYPE_CHECKING:
    from matplotlib.figure import Figure

FIGURE = {
    "cells": "private",
    "caption": "Target ε (horizontal axis) and the ε of each accountant for the same training (vertical axis). Each "
    "panel is one way of choosing the noise. On the gray line the claim is exact. Below the line the training is "
    "more private than claimed, above it less.",
    "settings": {"neighbors": {"$ref": "#/$defs/neighbors"}},
}

PLACE = ["epsilon", "accounted_by", "neighbors", "valid", "sampling"]  # what tells the points of a panel apart
HYPOTHETICAL_NOTE = (
    "Hollow, dashed: the ε that the same noise would give had the batches been drawn as the accountant assumes. They "
    "were not: this is not what was spent."
)
DRAWN = {"shuffle": "shuffled", "poisson": "Poisson", "wor": "of fixed size", "class_poisson": "of classes"}
RECORD_NOTE = "Crosses: the ε of one record of a person with many; it promises that person less."
INVALID_NOTE = "Crosses: a printed formula outside the conditions under which it holds; it promises nothing there."


@styled
def draw(
    metrics: pd.DataFrame, settings: dict[str, Any], published: pd.DataFrame | None
) -> "tuple[Figure, pd.DataFrame]":
    """Draw one panel per way of choosing the noise, one line per accountant; cells with equal ε are drawn once.

    Settings:
        neighbors: only ε for this neighboring relation; None: the relation for which the ε is claimed.
    """
    frame = claims_epsilon(chosen(metrics, settings))
    measured = metric_rows(frame[is_private(frame)], "epsilon_spent", neighbors=settings["neighbors"])
    measured = measured.assign(
        valid=measured["valid"].fillna(True).astype(bool),
        hypothetical=is_hypothetical(measured),
        batches=measured["sampling"].str.removeprefix("hypothetical_"),
        of_record=measured["note"].str.startswith(OF_ONE_RECORD),
    )
    if settings["neighbors"] is None:
        claimed = claimed_relations(measured)
        measured = measured[measured["hypothetical"] | (claimed == "") | (measured["neighbors"] == claimed)]
    if measured["value"].isna().all():
        raise UserError("figure of kind 'spent_epsilon': no accountant found an ε for these cells")
    found = measured[measured["value"].notna()]
    rows = drawn_numbers(found, published, extra=[*PLACE[1:], "hypothetical", "batches", "of_record"])
    rows = rows.assign(claimed_by=[look(series).label for series in series_of(rows)])
    return _draw(rows, settings), rows.drop(columns=["claimed_by", "batches", "of_record"])


def _draw(rows: pd.DataFrame, settings: dict[str, Any]) -> "Figure":
    # Cells with the same noise, sampling probability and number of steps have the same ε: drawn once.
    place = ["claimed_by", *PLACE]
    same = rows.groupby(place)["measured"].nunique().max() == 1
    shown = rows.drop_duplicates(place) if same else rows
    shown = shown.assign(judge=[_look(*key).label for key in _judges(shown)])
    claims = list(
        dict.fromkeys(label for _, label in sorted(zip(map(order, series_of(rows)), rows["claimed_by"], strict=True)))
    )
    by = ["claimed_by"] if same else ["dataset", "model", "claimed_by"]
    parts = sorted(panels(shown, by), key=lambda part: claims.index(part[1]["claimed_by"].iloc[0]) if same else 0)
    parts = [(fill(f"claim of {heading}", 28), part) for heading, part in parts] if same else parts
    across = 2 if len(claims) in (2, 4) else 3
    figure, grid = panel_grid(parts, across, (3.0, 2.7))
    infinite = "∞" if np.isinf(shown["measured"]).any() else None
    looks = _looks(shown)
    cross = {"style": None, "markers": False, "marker": "x", "markersize": 9, "markeredgewidth": 1.2, "zorder": 4}
    for ax, part in grid:
        log_axis(ax, "x", shown["epsilon"])
        beyond, _ = log_axis(ax, "y", shown["measured"], infinite=infinite)
        ax.axline((EPSILON_RANGE[0],) * 2, (EPSILON_RANGE[1],) * 2, color=GRAY, linewidth=0.9, zorder=1)
        part = part.assign(at=part["measured"].where(np.isfinite(part["measured"]), beyond))
        real, would_be = part[~part["hypothetical"]], part[part["hypothetical"]]
        draw_lines(ax, real, "epsilon", "at", looks, "judge", named=True)
        draw_lines(ax, would_be, "epsilon", "at", looks, "judge", named=True, markerfacecolor="white")
        draw_points(ax, real[~real["valid"]], "epsilon", "at", looks, "judge", **cross)
    label_edges([ax for ax, _ in grid], across, "target ε", ["ε by the accountant"] * len(grid))
    crossed, of_record = ~shown["valid"] & ~shown["hypothetical"], shown["of_record"]
    reasons = {
        HYPOTHETICAL_NOTE: shown["hypothetical"],
        INVALID_NOTE: crossed & ~of_record,
        RECORD_NOTE: crossed & of_record,
    }
    legend = [*map(sample, looks.values()), sample(Look("claim = spent", GRAY, ""), linewidth=0.9)]
    notes = [note for note, applies in reasons.items() if applies.any()]
    return finish(figure, legend, [*notes, *remarks(shown), *own_notes(settings)], settings.get("title"))


def _look(judge: str, neighbors: str, batches: str) -> Look:
    """Return the accountant's style, with its assumptions in the label; dashed if the batches violate them."""
    own = look(Series("gaussian", judge))
    label = f"{name(judge)} ({name(neighbors)})" if neighbors else name(judge)
    if not batches:
        return Look(label, own.color, own.marker, own.dashes)
    return Look(f"{label}, if {DRAWN.get(batches, batches)}", own.color, own.marker, (3, 2))


def _looks(rows: pd.DataFrame) -> dict[str, Look]:
    """Return the styles by label; accountants whose batch assumptions are violated come last."""
    keys = sorted(set(_judges(rows)), key=lambda key: (key[2], order(Series("gaussian", key[0])), key))
    return {_look(*key).label: _look(*key) for key in keys}


def _judges(rows: pd.DataFrame) -> list[tuple[str, str, str]]:
    """Return for each row the accountant, its neighbors, and its batch assumption if violated."""
    return list(rows[["accounted_by", "neighbors", "batches"]].itertuples(index=False, name=None))
