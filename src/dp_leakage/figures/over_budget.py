"""Accuracy or leakage over the budget: accounted ε, target ε, or proven risk."""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pandas as pd

from dp_leakage.common.errors import UserError
from dp_leakage.figures.bounds import bound_columns, bound_lines, bound_notes
from dp_leakage.figures.curves import CLAIMED_LABEL, draw_series
from dp_leakage.figures.marks import draw_lines, draw_points, looks_of, with_series
from dp_leakage.figures.style import EPSILON_RANGE, styled
from dp_leakage.metrics.spent import known, spent_alike
from dp_leakage.table.frames import (
    attack_rows,
    chosen,
    claims_epsilon,
    drawn_numbers,
    is_private,
    listed,
    rate_rows,
    use_rows,
)
from dp_leakage.table.limits import divided, proven_notes, with_proven
from dp_leakage.table.looks import INK
from dp_leakage.table.notes import (
    accounting_notes,
    claimed_neighbors,
    labels_of,
    not_measured_notes,
    own_notes,
    remarks,
    spent_notes,
    threshold_notes,
)
from dp_leakage.table.words import name

if TYPE_CHECKING:
    from matplotlib.artist import Artist
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

FIGURE = {
    "settings": {
        "across": {"$ref": "#/$defs/across", "enum": [None, "claimed", "spent"]},
        "neighbors": {"$ref": "#/$defs/neighbors"},
        "y_max": {
            "type": ["null", "number"],
            "exclusiveMinimum": 0,
            "default": None,
            "description": "End of the vertical axis; null to fit the data.",
        },
    },
    "variants": {
        "accuracy_loss": {
            "caption": "Cost of the privacy budget in accuracy. Left: small ε, strong protection. Right: large ε, "
            "weak protection. Far right: trained without differential privacy. A loss of 0 is the accuracy of the "
            "undefended model, and 1 is an accuracy of 0.",
            "spent": True,
            "settings": {
                "normalized": {
                    "type": "boolean",
                    "default": True,
                    "description": "Loss relative to the undefended accuracy, instead of the accuracy itself.",
                },
            },
        },
        "leakage": {
            "caption": "Leakage to one attack. The advantage is the true positive rate minus the false positive rate: "
            "0 is guessing, 1 is certainty. Dashed lines are the maximum for any attack, proven from the noise of "
            "each training. Other attacks may reach more than the measured points.",
            "proven": True,
            "spent": True,
            "settings": {
                "attack": {"$ref": "#/$defs/attack"},
                "definition": {"$ref": "#/$defs/definition"},
                "threshold": {"$ref": "#/$defs/threshold"},
                "fpr": {
                    "enum": [None, 0.01, 0.001],
                    "default": None,
                    "description": "Show true positive rates at this false positive rate; null shows advantages.",
                },
                "point": {
                    "type": "boolean",
                    "default": False,
                    "description": "Whether to draw what the point (ε, δ) alone allows too, as papers do.",
                },
                "across": {"$ref": "#/$defs/across"},
            },
        },
        "accuracy_proven": {
            "caption": "Cost of proven protection in accuracy. The horizontal axis is the proven upper bound on any "
            "attack, which is comparable between mechanisms, unlike ε. Top left is best: accurate, and proven to "
            "protect.",
            "proven": True,
            "spent": True,
            "settings": {
                "across": {"$ref": "#/$defs/across", "default": "proven"},
                "metric": {
                    "type": "string",
                    "minLength": 1,
                    "default": "test_accuracy",
                    "description": "The numbers on the vertical axis.",
                },
                "fpr": {
                    "type": ["null", "number"],
                    "exclusiveMinimum": 0,
                    "exclusiveMaximum": 1,
                    "default": None,
                    "description": "Show true positive rates at this false positive rate; null shows advantages.",
                },
            },
        },
        "spent_axis": {
            "caption": "The same measurements over the accounted ε, the smallest that a valid accountant proves for "
            "the training as run. If series differ over the target ε and agree here, only their accounting differs.",
            "spent": True,
            "settings": {
                "across": "spent",
                "metric": {
                    "type": ["string", "array"],
                    "minLength": 1,
                    "items": {"type": "string", "minLength": 1},
                    "default": "accuracy_loss",
                    "description": "The numbers on the vertical axis.",
                },
                "attack": {"$ref": "#/$defs/attack", "default": "yeom"},
                "definition": {"$ref": "#/$defs/definition"},
                "threshold": {"$ref": "#/$defs/threshold"},
                "point": {
                    "type": "boolean",
                    "default": True,
                    "description": "Whether to draw what the point (ε, δ) alone allows too, as papers do.",
                },
            },
        },
    },
}

LEAKAGE = "leakage"  # what attacks reach, among metrics
# Between two budgets the limit of the larger one holds, since less noise never proves more. A straight line
# between them could lie below a possible attack.
LIMIT = {"linestyle": (0, (2, 1)), "linewidth": 1.0, "zorder": 2, "drawstyle": "steps-pre"}
NAMED_FPR = 1e-3  # of the proven true positive rate beside an advantage


class Given(NamedTuple):
    """Inputs of every horizontal axis: rows of the cells, proven limits, printed numbers, settings."""

    frame: pd.DataFrame
    proven: pd.DataFrame
    published: pd.DataFrame | None
    settings: dict[str, Any]


class Over(NamedTuple):
    """A horizontal axis: the rows to draw, their column, its label, the minimum range, footnotes."""

    rows: pd.DataFrame
    x: str
    label: str
    span: tuple[float, float] | None
    notes: list[str]


@styled
def draw(
    metrics: pd.DataFrame, settings: dict[str, Any], published: pd.DataFrame | None
) -> "tuple[Figure, pd.DataFrame]":
    """Draw one panel per (data set, model), and per attack or metric where there are several.

    Settings:
        across: horizontal axis: accounted ε (``spent``), target ε (``claimed``) or the limit of any attack
            (``proven``); None: ``spent``, or ``claimed`` if no accounted ε is known.
        normalized: true: the loss relative to the non-private accuracy, as in jayaraman2019; false: the test accuracy.
        metric: ``accuracy_loss``, ``test_accuracy``, … or ``leakage``: the advantage of ``attack``; or a list of
            metrics (not ``leakage``), a panel each.
        attack: for leakage: its name; None: every attack, a panel each; ``strongest``: the strongest in each cell. For
            metrics of an attack: its name.
        definition: definition of the attribute advantage: ``gap`` or ``released``.
        threshold: of membership attacks: ``best``, chosen on other records, or the attack's ``own``.
        fpr: show true positive rates at this FPR instead of advantages, on both axes.
        point: also draw the limit that follows from (ε, δ) alone, as papers do.
        neighbors: neighboring relation of the accounted ε; None: the most common one. Cells without an ε for it are not
            drawn.
        y_max: end of the vertical axis.
    """
    measured, proven = divided(metrics)
    given = Given(chosen(measured, settings), proven, published, settings)
    upward = _upward(settings)
    leaks = upward == [LEAKAGE] and "attack" in settings
    found = _leakage(given) if leaks else _plain(given, upward)
    over = OVER[settings["across"]](given, found)
    rows, limits = over.rows, list[str]()
    behind: Callable[..., list[Artist]] | None = None
    if leaks:
        rows, behind, limits = _with_limits(given, over)
    figure = draw_series(
        rows,
        x=over.x,
        x_label=over.label,
        by=("attack", "dataset", "model") if leaks else ("dataset", "model", "metric"),
        named=None if leaks else ("dataset", "model"),
        span=over.span,
        sharey=len(upward) == 1,
        y_max=settings["y_max"],
        behind=behind,
        notes=[*limits, *over.notes, *_not_measured(rows)],
        title=settings.get("title"),
    )
    return figure, rows


def _not_measured(rows: pd.DataFrame) -> list[str]:
    """Return the non-members needed for the missing rates."""
    missing = (rows["metric"] == "reached_tpr") & rows["measured"].isna()
    return not_measured_notes(rows.loc[missing, "fpr"]) if missing.any() else []


def _upward(settings: dict[str, Any]) -> list[str]:
    """Return the metrics that are drawn."""
    if "normalized" in settings:
        return ["accuracy_loss" if settings["normalized"] else "test_accuracy"]
    return listed(settings.get("metric", LEAKAGE))


def _plain(given: Given, upward: list[str]) -> pd.DataFrame:
    return pd.concat([use_rows(given.frame, metric, attack=given.settings.get("attack")) for metric in upward])


def _leakage(given: Given) -> pd.DataFrame:
    """Return the attacks' metrics."""
    attack, fpr = given.settings["attack"], given.settings.get("fpr")
    if fpr is not None:
        return rate_rows(given.frame, attack, fpr)
    return attack_rows(given.frame, attack, given.settings["definition"], given.settings["threshold"])


def _over_claimed(given: Given, found: pd.DataFrame) -> Over:
    rows = drawn_numbers(claims_epsilon(found), given.published)
    return Over(rows, "epsilon", CLAIMED_LABEL, EPSILON_RANGE, accounting_notes(given.frame, given.settings))


def _over_known(given: Given, found: pd.DataFrame) -> Over:
    """Use accounted ε as the axis, unless none is known."""
    if given.settings["neighbors"] is None and known(given.frame).empty:
        return _over_claimed(given, found)
    return _over_spent(given, found)


def _over_spent(given: Given, found: pd.DataFrame) -> Over:
    wanted = given.settings["neighbors"]
    budgets, relation = spent_alike(given.frame, wanted)
    if budgets.empty:
        words = f" with neighbors '{wanted}'" if wanted else ""
        raise UserError(f"figure setting 'across': no accounted ε is known for these cells{words}")
    joined = found.merge(budgets, how="left", on=["dataset", "model", "defense"])
    absent = joined["epsilon_spent"].isna() & is_private(joined)
    others = labels_of(joined[absent])
    joined = joined[~absent]
    rows = drawn_numbers(joined, given.published, ["epsilon_spent", "spent_accountant", "spent_neighbors"])
    label = "accounted ε  (→ weaker protection)" + (f"\n{name(relation)} neighbors" if relation else "")
    silent = [f"Not drawn, as their ε spent is not known for these neighbors: cells of {others}."] if others else []
    notes = [*silent, *remarks(given.frame), *spent_notes(rows, given.settings)]
    return Over(rows, "epsilon_spent", label, EPSILON_RANGE, notes)


def _over_proven(given: Given, found: pd.DataFrame) -> Over:
    fpr = given.settings["fpr"]
    rows = with_proven(drawn_numbers(found, given.published), given.proven, fpr)
    risk, words = "advantage_proven", "advantage of any attack\nat most"
    if fpr is not None:
        risk, words = "tpr_proven", f"maximum TPR of any attack\nat {100 * fpr:g} % false positives"
    private = is_private(rows)
    silent = int((private & (rows[risk] >= 1)).sum())
    notes = [
        *proven_notes(given.proven, "Across"),
        *([f"At 1, nothing is proven: {silent} of {int(private.sum())} cells."] if silent else []),
        *own_notes(given.settings),
    ]
    return Over(rows, risk, f"proven: {words} (→ weaker)", None, notes)


OVER = {None: _over_known, "claimed": _over_claimed, "spent": _over_spent, "proven": _over_proven}


def _with_limits(given: Given, over: Over) -> tuple[pd.DataFrame, Callable[..., "list[Artist]"], list[str]]:
    """Return the rows with their limits, a function that draws these behind the series, and footnotes.

    Over ε, the limits are proven from the noise of each training and, optionally, allowed by the point (ε, δ) alone.
    Over the proven risk itself there are none.
    """
    fpr = given.settings.get("fpr")
    if over.x not in ("epsilon", "epsilon_spent"):
        return over.rows, lambda ax, part: [], threshold_notes(over.rows)
    by_point, limit = given.settings["point"], "advantage_proven" if fpr is None else "tpr_proven"
    rows = with_proven(over.rows, given.proven, fpr or NAMED_FPR)
    if given.settings.get("definition") == "released" and (rows["metric"] == "attribute_advantage").any():
        # This advantage includes what the other features reveal about an attribute anyway, so nothing bounds it.
        rows, by_point = rows.assign(**{limit: np.nan}), False
    rows = bound_columns(rows, over.x) if by_point else rows
    spent = set(rows["spent_neighbors"].dropna()) if over.x == "epsilon_spent" else None

    def relations(part: pd.DataFrame) -> set[str]:
        return claimed_neighbors(part) if spent is None else spent

    def behind(ax: "Axes", part: pd.DataFrame) -> "list[Artist]":
        by_noise = _limits(ax, part, over.x, limit)
        return [*(bound_lines(ax, part, relations(part)) if by_point else []), *by_noise]

    words = "Dashes, in the color of a series" + ("" if fpr is None else f", at {100 * fpr:g} % false positives")
    notes = [
        *threshold_notes(rows),
        *proven_notes(given.proven, words),
        *(bound_notes(rows, relations(rows)) if by_point else []),
    ]
    return rows, behind, notes


def _limits(ax: "Axes", part: pd.DataFrame, x: str, limit: str) -> "list[Artist]":
    """Draw the proven limit of each series where it is below 1; return the legend's entry."""
    from matplotlib.lines import Line2D

    private = with_series(part[is_private(part) & (part[limit] < 1) & np.isfinite(part[x])]).sort_values(x)
    private = private.assign(most=private.groupby("series")[limit].cummax())
    looks = looks_of(private)
    draw_lines(ax, private, x, "most", looks, style=None, markers=False, dashes=False, **LIMIT)
    alone = private[private.groupby("series")["most"].transform("size") == 1]  # of which no line is seen
    draw_points(ax, alone, x, "most", looks, style=None, markers=False, marker="_", markersize=6)
    return [Line2D([], [], color=INK, label="no attack can be above, proven", **LIMIT)] if len(private) else []
