"""MIA distance of every class under defenses matched on accuracy (zhang2020, figures 6 and 11)."""

from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
from mia import (
    ATTACKS,
    MEASURES,
    UNITS,
    cell_words,
    control_rows,
    drawn,
    inversion_rows,
    one,
    window_notes,
)

from dp_leakage.common.errors import UserError
from dp_leakage.figures.style import canvas, finish, sample, styled
from dp_leakage.table.frames import chosen, is_private, metric_rows
from dp_leakage.table.looks import GRAY, Series, look
from dp_leakage.table.notes import accounting_notes

if TYPE_CHECKING:
    from matplotlib.figure import Figure

FIGURE = {
    "caption": "How near inverted images come to the training images of each class, under defenses with the "
    "same accuracy. Higher is more robust, but only down to what pictures reach that show nothing: the gray lines "
    "are a black image.",
    "settings": {
        "attack": {"$ref": "#/$defs/attack", "default": "inversion_l1"},
        "measure": {"$ref": "#/$defs/measure"},
    },
}

OFFSET = 0.16  # between the series of one class, in classes
MOST_TICKS = 20
ROOM = 1.35  # of the axis upward beyond the largest distance: intervals of two repeats reach much farther


@styled
def draw(
    metrics: pd.DataFrame, settings: dict[str, Any], published: pd.DataFrame | None
) -> "tuple[Figure, pd.DataFrame]":
    """A panel for each level of accuracy: the k-th smallest σ of each private mechanism, beside no defense.

    Settings:
        attack: whose distance.
        measure: ``euclidean`` or ``1-ssim``.

    Raises:
        UserError: several data sets or models, or no private cell.
    """
    frame, measure = chosen(metrics, settings), settings["measure"]
    one(frame, "mia_distance")
    rows = inversion_rows(frame, settings["attack"], measure, by_class=True)
    accuracy = metric_rows(frame, "test_accuracy").set_index("defense")["value"]
    levels = _levels(rows)
    figure, axes = canvas(1, len(levels))
    black = control_rows(frame, measure, by_class=True).get("black")
    looks = {}
    for ax, cells in zip(axes[0], levels, strict=True):
        for place, defense in enumerate(cells):
            line = rows[rows["defense"] == defense].sort_values("class")
            series = Series(*line[list(Series._fields)].iloc[0])
            style = look(series)
            looks[series] = style
            x = line["class"] + OFFSET * (place - (len(cells) - 1) / 2)
            reach = np.nan_to_num([line["value"] - line["low"], line["high"] - line["value"]])
            bars = {"color": style.color, "linestyle": "none", "elinewidth": 1, "capsize": 2}
            ax.errorbar(x, line["value"], yerr=reach, **bars, **style.mark)
        if black is not None:
            ends = np.array([-0.4, 0.4])
            for row in black.itertuples():
                ax.plot(row[black.columns.get_loc("class") + 1] + ends, [row.value] * 2, color=GRAY, linewidth=1)
        classes = sorted(set(rows["class"]))
        ax.set_xticks(classes if len(classes) <= MOST_TICKS else classes[:: len(classes) // 10])
        words = [f"{_of(rows, d)}: {100 * accuracy[d]:.1f} %" for d in cells[1:]]
        ax.set_title("\n".join(words), loc="left")
        ax.set_xlabel("class")
        ax.set_ylim(0, ROOM * rows["value"].max())
    axes[0][0].set_ylabel(f"MIA distance ({MEASURES[measure]})\n→ more robust")
    handles = [sample(style, linestyle="none", label=_words(series)) for series, style in looks.items()]
    if black is not None:
        from matplotlib.lines import Line2D

        handles.append(Line2D([], [], color=GRAY, linewidth=1, label="black image"))
    base = accuracy[levels[0][0]]
    notes = [
        f"{ATTACKS.get(settings['attack'], settings['attack'])} attack; distance to the nearest training image of the "
        f"class. No defense: accuracy {100 * base:.1f} %. Bars: 95 % intervals over repeats (none "
        "with one repeat), cut at the axis.",
        *window_notes(measure),
        *accounting_notes(frame, settings),
    ]
    shown = [rows, black] if black is not None else [rows]
    return finish(figure, handles, notes, settings.get("title")), drawn(pd.concat(shown), ["class"])


def _levels(rows: pd.DataFrame) -> list[list[str]]:
    """Folder names by panel: no defense first, then one cell of each private mechanism."""
    base = rows.loc[~is_private(rows), "defense"].drop_duplicates().tolist()
    private = rows[is_private(rows)].drop_duplicates("defense")
    if private.empty or len(base) != 1:
        raise UserError("figure of kind 'mia_distance': select the undefended cell and private ones")
    by = [part.sort_values("noise_multiplier")["defense"].tolist() for _, part in private.groupby("mechanism")]
    depth = max(map(len, by))
    return [base + [cells[level] for cells in by if level < len(cells)] for level in range(depth)]


def _of(rows: pd.DataFrame, defense: str) -> str:
    row = rows[rows["defense"] == defense].iloc[0]
    return cell_words(row, row["noise_multiplier"])


def _words(series: Series) -> str:
    return UNITS.get(series.mechanism, series.mechanism)
