"""Log-log ROC: the TPR of every attack at every small false positive rate."""

from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from dp_leakage.figures.marks import draw_bars, draw_lines
from dp_leakage.figures.style import finish, log_axis, panel_grid, sample, styled
from dp_leakage.metrics.intervals import Estimate
from dp_leakage.metrics.rates import lowest, tpr_at
from dp_leakage.metrics.rows import CELL
from dp_leakage.metrics.runs import by_repeat
from dp_leakage.metrics.simultaneous import simultaneous
from dp_leakage.table.frames import chosen, listed, own_row, panels, require_scores
from dp_leakage.table.limits import Limits, divided, proven_notes, proven_tprs
from dp_leakage.table.looks import ALARM, GRAY, INK, told_apart
from dp_leakage.table.notes import not_measured_notes, own_notes
from dp_leakage.table.numbers import cell_labels
from dp_leakage.table.words import name

if TYPE_CHECKING:
    from matplotlib.figure import Figure

FIGURE = {
    "caption": "Share of members identified (TPR) at each false positive rate, on logarithmic axes. The left end "
    "matters most: there an attacker wrongly accuses hardly anyone. Curves are means over repeats, with intervals "
    "over records and repeats, and begin at the lowest measurable rate. Gray diagonal: guessing. Black line: the "
    "proven limit of any attack; a red cross above it would prove an error.",
    "needs": "scores",
    "proven": True,
    "settings": {
        "attack": {
            "type": ["null", "string", "array"],
            "minLength": 1,
            "items": {"type": "string", "minLength": 1},
            "default": None,
            "description": "The attacks that are drawn; null for all.",
        },
        "fpr": {
            "type": "array",
            "items": {"type": "number", "exclusiveMinimum": 0, "exclusiveMaximum": 1},
            "default": [0.01, 0.001],
            "description": "False positive rates, the first of which with enough non-members is marked.",
        },
    },
}

POINTS = 25  # of each curve
BESIDE = 1.05  # from one attack's bar to the next


@styled
def draw(
    metrics: pd.DataFrame, settings: dict[str, Any], published: pd.DataFrame | None
) -> "tuple[Figure, pd.DataFrame]":
    """Draw one panel per (data set, model, defense), one curve per attack.

    Settings:
        attack: one attack, or a list; None: all.
        fpr: FPRs of interest: the first one that every curve can measure has bars, and a footnote gives the non-members
            that the others need.
    """
    from matplotlib.lines import Line2D

    scores, proven = divided(metrics)
    frame = chosen(scores, settings)
    attacks = listed(settings["attack"]) or list(frame["attack"].unique())
    require_scores(frame, "attack", "attack", attacks)
    limit_of = proven_tprs(proven)
    rows = pd.concat(
        [
            _curve(part, attack, limit_of, settings["fpr"])
            for _, cell in frame.groupby(["dataset", "model", "defense"], sort=False)
            for attack, part in ((attack, cell[cell["attack"] == attack]) for attack in attacks)
            if len(part)
        ],
        ignore_index=True,
    )
    rows = rows.assign(crosses=_beyond(rows))
    labeled = rows.assign(setting=rows["defense"].map(cell_labels(rows)))
    by = ("dataset", "model", "defense")
    figure, grid = panel_grid(panels(labeled, by, named=("dataset", "model", "setting")), 2, (3.4, 3.1))
    looks = told_apart({attack: name(attack) for attack in attacks})
    begins = rows[rows["measured"].notna()].groupby([*CELL, "attack"])["fpr"].min()
    least, common = (float(begins.min()), float(begins.max())) if len(begins) else (float(rows["fpr"].min()), 1.0)
    fine = np.geomspace(least, 1, 400)
    marked = next((rate for rate in settings["fpr"] if rate >= common), common)
    for ax, part in grid:
        for which in ("x", "y"):
            log_axis(ax, which, [least, 1.0], span=None)
        ax.plot([least, 1], [least, 1], color=GRAY, linewidth=0.8)
        limit = limit_of(tuple(part.iloc[0][CELL]), fine)
        if limit.min() < 1:
            # In steps to the next rate: the limit rises, and a chord of a concave curve would lie below it.
            ax.plot(fine, limit, color=INK, linewidth=1.6, zorder=4, drawstyle="steps-pre")
            ax.fill_between(fine, limit, 1, color=INK, alpha=0.07, linewidth=0, step="pre")
        draw_lines(ax, part[part["measured"] > 0], "fpr", "measured", looks, "attack")
        beyond = part[part["crosses"]]
        ax.plot(beyond["fpr"], beyond["measured"], "X", color=ALARM, markersize=7, zorder=6)
        at = part.loc[(part["fpr"] - marked).abs().groupby(part["attack"], sort=False).idxmin()]
        beside = BESIDE ** (at["attack"].map(attacks.index) - len(attacks) / 2)
        at = at.assign(fpr=at["fpr"] * beside, low=at["low"].clip(lower=least / 10))
        draw_bars(ax, at, "fpr", "measured", looks, "attack", alpha=0.6)
        ax.set_xlabel("false positive rate")
        ax.set_ylabel("true positive rate")
    legend = [*map(sample, looks.values())]
    legend.append(Line2D([], [], color=GRAY, linewidth=0.8, label="guessing"))
    if len(proven):
        legend.append(Line2D([], [], color=INK, linewidth=1.6, label="no attack can be above, proven"))
    if rows["crosses"].any():
        words = "beyond what is proven: an error"
        legend.append(Line2D([], [], color=ALARM, marker="X", linestyle="none", markersize=7, label=words))
    bars = f"Bars, side by side: 95 % intervals at {100 * marked:.3g} %; all are in the csv."
    notes = [
        bars,
        *not_measured_notes(rate for rate in settings["fpr"] if rate < common),
        *proven_notes(proven, "Black"),
        *own_notes(settings),
    ]
    return finish(figure, legend, notes, settings.get("title")), rows


def _curve(scores: pd.DataFrame, attack: str, limit_of: Limits, marked: list[float]) -> pd.DataFrame:
    """Return TPR with its interval, and the proven limit, at rates from the lowest measurable one to all records but
    one.

    NaN: not measurable at this rate, since records that pass in several repeats count once.
    """
    (score,), member = by_repeat(scores, ["score"], ["record"])
    n = int((~member).sum())
    least = lowest(n)
    rates = np.unique([*np.geomspace(least, 1 - 1 / n, POINTS), *(rate for rate in marked if rate > least)])
    cell = scores.iloc[0]
    curve = pd.DataFrame(
        [own_row(cell, "reached_tpr", tpr_at(score, member, fpr).told, attack=attack, fpr=fpr) for fpr in rates]
    )
    limit = limit_of(tuple(curve.iloc[0][CELL]), curve["fpr"].to_numpy())
    return curve.assign(tpr_proven=limit)


def _beyond(rows: pd.DataFrame) -> list[bool]:
    """Return where a curve exceeds the proven limit, so that mechanism, accounting or attack is wrong.

    Intervals hold simultaneously for all points with a limit: otherwise one in twenty would exceed a limit near the
    diagonal by chance.
    """
    limited = (rows["tpr_proven"] < 1) & rows["measured"].notna()
    points = int(limited.sum())
    found = zip(rows["measured"], rows["low"], rows["high"], rows["tpr_proven"], limited, strict=True)
    return [
        bool(has_limit and simultaneous(Estimate(value, low, high), points, (0.0, 1.0)).low > limit)
        for value, low, high, limit, has_limit in found
    ]
