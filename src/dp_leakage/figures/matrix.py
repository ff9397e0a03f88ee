"""Defenses × attacks: one number per pair, as a heat map."""

from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from dp_leakage.common.rounding import decimals_up
from dp_leakage.figures.marks import draw_heat_map
from dp_leakage.figures.style import canvas, finish, styled
from dp_leakage.metrics.intervals import Estimate
from dp_leakage.metrics.simultaneous import simultaneous
from dp_leakage.table.frames import attack_rows, chosen, drawn_numbers, panels
from dp_leakage.table.limits import divided, proven_notes, with_proven
from dp_leakage.table.looks import ALARM
from dp_leakage.table.notes import accounting_notes, threshold_notes
from dp_leakage.table.numbers import cell_labels, fraction
from dp_leakage.table.words import name

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

FIGURE = {
    "caption": "Every defense against every attack. The number is the attack's advantage, the true positive rate "
    "minus the false positive rate: 0 is guessing, 1 is certainty. For attribute attacks it is the "
    "accuracy on members minus the accuracy on non-members. Bold: its 95 % interval lies above 0. Last "
    "column: the maximum that any membership attack can reach, proven from the noise. Red: significantly "
    "above this maximum, so mechanism, accounting or attack is wrong.",
    "proven": True,
    "settings": {"definition": {"$ref": "#/$defs/definition"}, "threshold": {"$ref": "#/$defs/threshold"}},
}

ROW, COLUMN = 0.17, 0.68  # inches
LIMIT = "no attack\nabove"


@styled
def draw(
    metrics: pd.DataFrame, settings: dict[str, Any], published: pd.DataFrame | None
) -> "tuple[Figure, pd.DataFrame]":
    """Draw one panel per (data set, model); rows are defenses and budgets, columns attacks.

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
    # The trade-off curve does not limit an attribute attack's advantage.
    rows["advantage_proven"] = rows["advantage_proven"].where(rows["metric"] != "attribute_advantage")
    rows["crosses"] = _beyond(rows)
    parts = panels(rows)
    attacks = list(dict.fromkeys(rows.sort_values("metric", ascending=False, kind="stable")["attack"]))
    longest = max(part["defense"].nunique() for _, part in parts)
    panel = (2.4 + COLUMN * (len(attacks) + 1), 0.7 + ROW * longest)
    figure, axes = canvas(len(parts), 1, panel=panel, sharex=False, sharey=False)
    darkest = next(end for end in (0.25, 0.5, 1.0) if not rows["measured"].max() > end)
    for (ax,), (heading, part) in zip(axes, parts, strict=True):
        _panel(ax, part, attacks, darkest)
        ax.set_title(heading, loc="left", pad=4)
    notes = [*threshold_notes(rows), *proven_notes(proven, "Last column"), *accounting_notes(frame, settings)]
    return finish(figure, [], notes, settings.get("title")), rows


def _panel(ax: "Axes", part: pd.DataFrame, attacks: list[str], darkest: float) -> None:
    labels = cell_labels(part)
    heads = [*(name(attack).replace(" ", "\n") for attack in attacks), LIMIT]
    cells = part.assign(style=list(map(_style, part.itertuples()))).pivot(index="defense", columns="attack")

    def wide(column: str) -> pd.DataFrame:
        frame = cells[column].reindex(index=list(labels), columns=[*attacks, LIMIT])
        return frame.set_axis(list(labels.values())).set_axis(heads, axis="columns")

    tiles, proven = wide("measured"), wide("advantage_proven").min(axis=1)
    limits = pd.DataFrame(np.nan, tiles.index, heads).assign(**{LIMIT: proven.fillna(0)})
    texts = tiles.map(lambda value: fraction(value, 2))
    texts[LIMIT] = ["–" if pd.isna(most) else decimals_up(most, 2) for most in proven]
    draw_heat_map(ax, limits, texts, cmap="Greys", vmax=3)
    draw_heat_map(ax, tiles, texts, wide("style"), cmap="Blues", vmax=darkest)
    ax.axvline(len(attacks), color="white", linewidth=4)


def _style(row: Any) -> dict[str, str]:
    sure = {"weight": "bold"} if row.low > 0 else {}
    return sure | {"color": ALARM} if row.crosses else sure


def _beyond(rows: pd.DataFrame) -> list[bool]:
    """Return which numbers significantly exceed their proven limit, by simultaneous intervals."""
    limited = int(rows["advantage_proven"].lt(1).sum())
    each = rows[["measured", "low", "high", "advantage_proven"]].itertuples(index=False)
    return [
        bool(limit < 1 and simultaneous(Estimate(*found), limited, (-1.0, 1.0)).low > limit) for *found, limit in each
    ]
