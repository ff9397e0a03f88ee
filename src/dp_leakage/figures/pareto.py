"""Accuracy against leakage: every defense and budget as one point, labeled with ε."""

from typing import TYPE_CHECKING, Any

import pandas as pd
from matplotlib.patheffects import withStroke
from matplotlib.transforms import Bbox

from dp_leakage.common.errors import UserError
from dp_leakage.figures.curves import draw_guessing, legend
from dp_leakage.figures.marks import Looks, draw_bars, draw_lines, draw_points, looks_of, with_series
from dp_leakage.figures.style import finish, panel_grid, styled
from dp_leakage.metrics.measure import STRONGEST
from dp_leakage.metrics.rows import CELL
from dp_leakage.metrics.spent import spent_alike
from dp_leakage.table.frames import chosen, drawn_numbers, is_private, panels, reached, use_axis, use_rows
from dp_leakage.table.looks import GRAY
from dp_leakage.table.notes import labels_of, remarks, spent_notes
from dp_leakage.table.numbers import at_most
from dp_leakage.table.words import name

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

FIGURE = {
    "caption": "Accuracy (or the study's measure of use) against the strongest attack's advantage, one point per "
    "defense and budget with its accounted ε. Bottom right is best: useful, and little leaks. The gray line joins "
    "Pareto-optimal points. Pale points are dominated: another point is better in both, and the 95 % intervals "
    "(bars) do not overlap. Other differences may be chance. The csv has every number.",
    "settings": {"attack": {"$ref": "#/$defs/attack"}},
}

SPENT = ["epsilon_spent", "spent_accountant", "spent_neighbors"]
RIGHT = ("test_accuracy", "accuracy_low", "accuracy_high")  # columns of the use across
OTHER_USE = ("test_utility", "utility_low", "utility_high")  # of data sets with another measure, and of all beside
PALE = 0.3  # opacity of points that are surely beaten
FRONT = {"color": GRAY, "alpha": 0.35, "linewidth": 5, "solid_capstyle": "round"}


@styled
def draw(
    metrics: pd.DataFrame, settings: dict[str, Any], published: pd.DataFrame | None
) -> "tuple[Figure, pd.DataFrame]":
    """Draw one panel per (data set, model).

    Settings:
        attack: attack whose advantage is shown; None: the strongest in each cell, corrected for the choice.
    """
    from matplotlib.lines import Line2D

    frame = chosen(metrics, settings)
    rows, meaning = drawn_points(frame, settings["attack"], published, ["best", "surely_beaten"])
    parts = panels(rows)
    alike = rows["dataset"].nunique() == 1  # models of the same records are compared at a glance
    figure, grid = panel_grid(parts, 2, (3.7, 3.3), sharex=alike, sharey=alike)
    looks = looks_of(rows)
    for place, (ax, part) in enumerate(grid):
        _panel(ax, part, looks)
        label_axes(ax, rows, settings["attack"], upward=not alike or place % 2 == 0)
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
        label_budgets(ax, with_series(part), looks)
    return figure, rows


def drawn_points(
    frame: pd.DataFrame, attack: str | None, published: pd.DataFrame | None, extra: list[str]
) -> tuple[pd.DataFrame, list[str]]:
    """Return each cell's use, an attack's (None: the strongest's) advantage and accounted ε, and a footnote on missing
    ε.

    ``extra``: further columns to keep.
    """
    budgets, meaning = spent_budgets(frame)
    found = points(frame, attack or STRONGEST).merge(budgets, how="left", on=CELL)
    kept = ["attack", "of", *use_columns(found), *SPENT, *extra]
    kept += ["of_use"] if "of_use" in found else []
    return drawn_numbers(found, published, extra=kept), meaning


def use_columns(rows: pd.DataFrame) -> tuple[str, str, str]:
    """Return the columns of the use and of its interval: of accuracy, or of another measure, which ``of_use`` names."""
    return OTHER_USE if OTHER_USE[0] in rows else RIGHT


def label_axes(ax: "Axes", rows: pd.DataFrame, attack: str | None, upward: bool = True) -> None:
    """Label the horizontal axis and, if ``upward``, the vertical one."""
    ax.set_xlabel(f"{use_axis(rows)}  → more useful")
    if upward:
        whose = "the strongest attack" if attack is None else name(attack)
        ax.set_ylabel(f"advantage that {whose} reaches\n→ more leakage")


def spent_budgets(frame: pd.DataFrame) -> tuple[pd.DataFrame, list[str]]:
    """Return the accounted ε of cells, all for one neighboring relation, and a footnote on cells without one.

    Target ε are not a common scale, because two accountants have the same ε for very different noise. ε of two
    relations are not a common scale either, so a cell without a known ε for the most common relation gets no ε.
    """
    budgets, _ = spent_alike(frame)
    if budgets.empty:
        return budgets, ["Numbers: none, as no ε spent is known."]
    private = frame[is_private(frame)].drop_duplicates(CELL)
    absent = private.merge(budgets[CELL], how="left", on=CELL, indicator=True)["_merge"] == "left_only"
    others = labels_of(private[absent.to_numpy()])
    return budgets, [f"Without a number, as their ε is not known for these neighbors: {others}."] if others else []


def points(frame: pd.DataFrame, attack: str) -> pd.DataFrame:
    """Return one attack's advantage in each cell, with the cell's use, and whether it is dominated."""
    advantages = reached(frame)
    advantages = advantages[advantages["attack"] == attack]
    found = use_rows(frame, "test_accuracy")
    columns = RIGHT if (found["metric"] == RIGHT[0]).all() else OTHER_USE
    found = found.rename(columns=dict(zip(("value", "low", "high", "of"), (*columns, "of_use"), strict=True)))
    found = found if columns == OTHER_USE else found.drop(columns="of_use", errors="ignore")
    kept = [*CELL, *columns, "guessing", *(["of_use"] if columns == OTHER_USE else [])]
    joined = advantages.merge(found[kept], on=CELL)
    if joined.empty:
        raise UserError("figure of kind 'pareto': no cell has both a test accuracy and a membership advantage")
    parts = [part for _, part in joined.groupby(["dataset", "model"])]
    best = pd.concat([undominated(part[columns[0]], part["value"]) for part in parts])
    return joined.assign(best=best, surely_beaten=pd.concat([surely_beaten(part) for part in parts]))


def surely_beaten(points: pd.DataFrame) -> pd.Series:
    """Return which points are significantly dominated: another is more useful and less leaky, with disjoint 95 %
    intervals in both.
    """
    _, low, high = use_columns(points)
    more = points[low].to_numpy()[None] > points[high].to_numpy()[:, None]
    less = points["high"].to_numpy()[None] < points["low"].to_numpy()[:, None]
    return pd.Series((more & less).any(axis=1), index=points.index)


def undominated(use: pd.Series, leak: pd.Series) -> pd.Series:
    """Return the Pareto-optimal points (more accuracy, less leakage)."""
    good, bad = use.to_numpy(), leak.to_numpy()
    beaten = (
        (good[None] >= good[:, None])
        & (bad[None] <= bad[:, None])
        & ((good[None] > good[:, None]) | (bad[None] < bad[:, None]))
    ).any(axis=1)
    return pd.Series(~beaten, index=use.index)


def _panel(ax: "Axes", part: pd.DataFrame, looks: Looks) -> None:
    ax.axhline(0, color=GRAY, linewidth=0.7)
    use, low, high = use_columns(part)
    front = part[part["best"]].sort_values([use, "measured"])
    ax.plot(front[use], front["measured"], zorder=1, **FRONT)
    part, axes = with_series(part), (use, "measured")
    draw_bars(ax, part, *axes, looks, across=(low, high), elinewidth=0.6, alpha=0.45)
    draw_lines(ax, part, *axes, looks, sort=False, markers=False, linewidth=0.9, alpha=0.7, zorder=2)
    for beaten, alpha in ((True, PALE), (False, 1.0)):
        draw_points(ax, part[part["surely_beaten"] == beaten], *axes, looks, alpha=alpha)


def label_budgets(ax: "Axes", part: pd.DataFrame, looks: Looks, by: str = "series") -> None:
    """Write accounted ε next to the points, Pareto-optimal ones first, where there is room; the rest are in the csv.

    Args:
        ax: the panel, with points at their final places.
        part: rows of `points`.
        looks: style of each value of the column ``by``.
        by: the column that decides the style.
    """
    scale = ax.figure.dpi / 72
    use = use_columns(part)[0]
    places = [use, "measured"]
    points = ax.transData.transform(part[places].to_numpy(dtype=float))
    taken = [_box(x, y, 6 * scale, 6 * scale) for x, y in points]
    style = {"ha": "center", "va": "center", "fontsize": 7, "zorder": 5, "textcoords": "offset points"}
    halo = [withStroke(linewidth=2, foreground="white")]
    frame = ax.get_window_extent()
    for row in part[part["epsilon_spent"].notna()].sort_values("best", ascending=False, kind="stable").itertuples():
        text, point = at_most(row.epsilon_spent), (getattr(row, use), row.measured)
        width = 4.6 * len(text) + 2
        x, y = ax.transData.transform(point)
        for right, up in ((1, 0.6), (-1, 0.6), (1, -0.6), (-1, -0.6), (0, 1.2), (0, -1.2)):
            shift = (right * (5 + width / 2), up * 9)
            box = _box(x + shift[0] * scale, y + shift[1] * scale, width * scale, 8 * scale)
            if not box.count_overlaps(taken) and frame.contains(*box.min) and frame.contains(*box.max):
                beside = ax.annotate(
                    text, point, shift, color=looks[getattr(row, by)].color, path_effects=halo, **style
                )
                beside.set_in_layout(False)
                taken.append(box)
                break


def _box(x: float, y: float, width: float, height: float) -> Bbox:
    return Bbox.from_bounds(x - width / 2, y - height / 2, width, height)
