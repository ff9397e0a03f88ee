"""Use against leakage: every defense and budget as one point, the ε beside it."""

from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from dp_leakage.common.errors import UserError
from dp_leakage.figures.curves import draw_guessing, legend
from dp_leakage.figures.frames import chosen, drawn_numbers, each_series, is_private, metric_rows, panels, reached
from dp_leakage.figures.notes import labels_of, remarks, spent_notes
from dp_leakage.figures.style import GRAY, at_most, finish, look, name, panel_grid, styled
from dp_leakage.metrics.measure import STRONGEST
from dp_leakage.metrics.rows import CELL
from dp_leakage.metrics.spent import spent_alike

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

FIGURE = {
    "caption": "Accuracy against leakage, one point per defense and budget; the number beside a point is its "
    "accounted ε. Bottom right is best: accurate, and nothing leaks. Leakage is the advantage of the strongest attack "
    "on each model. The gray line is the Pareto front of the measured values. Pale points are dominated: another "
    "point is better in both, with separate 95 % intervals (the bars). Differences between the other points may be "
    "chance. Thresholds are chosen on separate records, and the luck of choosing the attack is taken off. Numbers are "
    "drawn where there is room; all are in the csv.",
    "settings": {"attack": {"$ref": "#/$defs/attack"}},
}

SPENT = ["epsilon_spent", "spent_accountant", "spent_neighbors"]
PALE = 0.3  # opacity of points that are surely beaten
FRONT = {"color": GRAY, "alpha": 0.35, "linewidth": 5, "solid_capstyle": "round"}


@styled
def draw(
    metrics: pd.DataFrame, settings: dict[str, Any], published: pd.DataFrame | None
) -> "tuple[Figure, pd.DataFrame]":
    """One panel per (data set, model).

    Settings:
        attack: whose advantage; None: that of the attack that finds most in each cell, less the luck of the choice.
    """
    from matplotlib.lines import Line2D

    frame = chosen(metrics, settings)
    rows, meaning = drawn_points(frame, settings["attack"], published, ["best", "surely_beaten"])
    parts = panels(rows)
    alike = rows["dataset"].nunique() == 1  # models of the same records are compared at a glance
    figure, grid = panel_grid(parts, 2, (3.7, 3.3), sharex=alike, sharey=alike)
    for place, (ax, part) in enumerate(grid):
        _panel(ax, part)
        label_axes(ax, settings["attack"], upward=not alike or place % 2 == 0)
        ax.tick_params(labelbottom=True)
    entries = [handle for handle in legend(rows) if handle.get_label() != "95 % interval"]
    entries.append(Line2D([], [], label="best trade-offs measured", **FRONT))
    guess, beyond_axis = draw_guessing(grid, "x")
    membership = sorted(set(reached(frame)["attack"]) - {STRONGEST})
    few = len(membership) <= 4
    of = ", ".join(map(name, membership)) if few else f"{len(membership)} attacks"
    chosen_anew = f"Strongest of {of}, in each cell anew."
    alone = settings["attack"] is not None or len(membership) < 2
    notes = [
        *meaning,
        *([] if alone else [chosen_anew]),
        *beyond_axis,
        *remarks(frame),
        *spent_notes(rows, settings),
    ]
    finish(figure, [*entries, *guess], notes, settings.get("title"))
    figure.draw_without_rendering()  # labels need the final places of the points
    for ax, part in grid:
        colors = {row: look(series).color for series, line in each_series(part) for row in line.index}
        label_budgets(ax, part, colors)
    return figure, rows


def drawn_points(
    frame: pd.DataFrame, attack: str | None, published: pd.DataFrame | None, extra: list[str]
) -> tuple[pd.DataFrame, list[str]]:
    """Each cell's accuracy, what an attack (None: the strongest) reaches there and the ε spent, and a footnote on
    missing ε. ``extra`` are further columns to keep.
    """
    budgets, meaning = spent_budgets(frame)
    found = points(frame, attack or STRONGEST).merge(budgets, how="left", on=CELL)
    kept = ["attack", "of", "test_accuracy", "accuracy_low", "accuracy_high", *SPENT, *extra]
    return drawn_numbers(found, published, extra=kept), meaning


def label_axes(ax: "Axes", attack: str | None, upward: bool = True) -> None:
    """Says what lies across and, if ``upward``, what lies up."""
    ax.set_xlabel("test accuracy (fraction right)  → more useful")
    if upward:
        whose = "the strongest attack" if attack is None else name(attack)
        ax.set_ylabel(f"advantage that {whose} reaches\n→ more leakage")


def spent_budgets(frame: pd.DataFrame) -> tuple[pd.DataFrame, list[str]]:
    """The ε that cells spent, all for one neighboring relation, and a footnote on those without one.

    A claim is no common scale: two accountants claim the same ε for very different noise. Nor are the ε of two
    relations one: so a cell without a known ε for the relation that most cells have gets none.
    """
    budgets, _ = spent_alike(frame)
    if budgets.empty:
        return budgets, ["Numbers: none, as no ε spent is known."]
    private = frame[is_private(frame)].drop_duplicates(CELL)
    absent = private.merge(budgets[CELL], how="left", on=CELL, indicator=True)["_merge"] == "left_only"
    others = labels_of(private[absent.to_numpy()])
    return budgets, [f"Without a number, as their ε is not known for these neighbors: {others}."] if others else []


def points(frame: pd.DataFrame, attack: str) -> pd.DataFrame:
    """What one attack reaches in each cell, with the cell's test accuracy, and how it stands beside the others."""
    advantages = reached(frame)
    advantages = advantages[advantages["attack"] == attack]
    accuracy = metric_rows(frame, "test_accuracy").rename(
        columns={"value": "test_accuracy", "low": "accuracy_low", "high": "accuracy_high"}
    )
    joined = advantages.merge(accuracy[[*CELL, "test_accuracy", "accuracy_low", "accuracy_high", "guessing"]], on=CELL)
    if joined.empty:
        raise UserError("figure of kind 'pareto': no cell has both a test accuracy and a membership advantage")
    parts = [part for _, part in joined.groupby(["dataset", "model"])]
    best = pd.concat([undominated(part["test_accuracy"], part["value"]) for part in parts])
    return joined.assign(best=best, surely_beaten=pd.concat([surely_beaten(part) for part in parts]))


def surely_beaten(points: pd.DataFrame) -> pd.Series:
    """Of which points another is both more accurate and less leaky, with 95 % intervals that are apart in both."""
    more = points["accuracy_low"].to_numpy()[None] > points["accuracy_high"].to_numpy()[:, None]
    less = points["high"].to_numpy()[None] < points["low"].to_numpy()[:, None]
    return pd.Series((more & less).any(axis=1), index=points.index)


def undominated(use: pd.Series, leak: pd.Series) -> pd.Series:
    """Which points have no other that is at least as good in both and better in one (more use, less leakage)."""
    good, bad = use.to_numpy(), leak.to_numpy()
    beaten = (
        (good[None] >= good[:, None])
        & (bad[None] <= bad[:, None])
        & ((good[None] > good[:, None]) | (bad[None] < bad[:, None]))
    ).any(axis=1)
    return pd.Series(~beaten, index=use.index)


def _panel(ax: "Axes", part: pd.DataFrame) -> None:
    ax.axhline(0, color=GRAY, linewidth=0.7)
    front = part[part["best"]].sort_values(["test_accuracy", "measured"])
    ax.plot(front["test_accuracy"], front["measured"], zorder=1, **FRONT)
    for series, line in each_series(part):
        style = look(series)
        x, y = line["test_accuracy"], line["measured"]
        bars_both_ways(ax, line, style.color, alpha=0.45)
        if len(line) > 1:
            ax.plot(x, y, zorder=2, color=style.color, linestyle=style.line["linestyle"], linewidth=0.9, alpha=0.7)
        for beaten, alpha in ((True, PALE), (False, 1.0)):
            shown = line["surely_beaten"] == beaten
            ax.plot(x[shown], y[shown], zorder=3, color=style.color, linestyle="none", alpha=alpha, **style.mark)


def bars_both_ways(ax: "Axes", part: pd.DataFrame, color: str, alpha: float) -> None:
    """The intervals of `points` in accuracy and in leakage, pale beside the marks."""
    x, y = part["test_accuracy"], part["measured"]
    across = np.clip([x - part["accuracy_low"], part["accuracy_high"] - x], 0, None)
    upward = np.clip([y - part["low"], part["high"] - y], 0, None)
    ax.errorbar(x, y, xerr=across, yerr=upward, fmt="none", ecolor=color, elinewidth=0.6, alpha=alpha, zorder=2)


def label_budgets(ax: "Axes", part: pd.DataFrame, colors: dict[Any, str]) -> None:
    """Writes the ε spent beside the points, the best first, wherever there is room; the rest stay in the csv.

    Args:
        ax: with the points in their final places.
        part: of `points`.
        colors: of its rows, by their index.
    """
    from matplotlib.patheffects import withStroke

    halo = withStroke(linewidth=2, foreground="white")
    to_pixels = ax.transData.transform
    scale = ax.figure.dpi / 72
    private = part[part["epsilon_spent"].notna()]
    taken = [_box(x, y, 6 * scale, 6 * scale) for x, y in to_pixels(part[["test_accuracy", "measured"]].to_numpy())]
    frame = ax.get_window_extent()
    for row in private.sort_values("best", ascending=False, kind="stable").itertuples():
        text = at_most(row.epsilon_spent)
        width, height = (4.6 * len(text) + 2) * scale, 8 * scale
        x, y = to_pixels((row.test_accuracy, row.measured))
        for right, up in ((1, 0.6), (-1, 0.6), (1, -0.6), (-1, -0.6), (0, 1.2), (0, -1.2)):
            shift = (right * (5 * scale + width / 2), up * 9 * scale)
            box = _box(x + shift[0], y + shift[1], width, height)
            if (
                not any(_overlap(box, other) for other in taken)
                and frame.x0 < box[0]
                and box[2] < frame.x1
                and frame.y0 < box[1]
                and box[3] < frame.y1
            ):
                beside = {
                    "xytext": (shift[0] / scale, shift[1] / scale),
                    "textcoords": "offset points",
                    "ha": "center",
                    "va": "center",
                }
                ax.annotate(
                    text,
                    (row.test_accuracy, row.measured),
                    fontsize=7,
                    color=colors[row.Index],
                    zorder=5,
                    path_effects=[halo],
                    **beside,
                ).set_in_layout(False)
                taken.append(box)
                break


def _box(x: float, y: float, width: float, height: float) -> tuple[float, float, float, float]:
    return x - width / 2, y - height / 2, x + width / 2, y + height / 2


def _overlap(a: tuple[float, ...], b: tuple[float, ...]) -> bool:
    return a[0] < b[2] and b[0] < a[2] and a[1] < b[3] and b[1] < a[3]
