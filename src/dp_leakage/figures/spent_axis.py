"""Any series again, over the ε that its training really spent."""

from typing import TYPE_CHECKING, Any

import pandas as pd

from dp_leakage.common.errors import UserError
from dp_leakage.figures.bounds import bound_columns, bound_lines, bound_notes
from dp_leakage.figures.curves import draw_series
from dp_leakage.figures.frames import attack_rows, chosen, drawn_numbers, is_private, listed, metric_rows
from dp_leakage.figures.notes import remarks, spent_notes, threshold_notes
from dp_leakage.figures.style import name, styled
from dp_leakage.metrics.spent import spent

if TYPE_CHECKING:
    from matplotlib.figure import Figure

FIGURE = {
    "caption": "The same measurements over the ε that was really spent: the smallest that a valid accountant "
    "proves for the training as it was done. Series that lie apart over the claimed ε and together here differed "
    "in book-keeping only.",
    "settings": {
        "metric": "accuracy_loss",
        "attack": "yeom",
        "definition": "gap",
        "threshold": "best",
        "neighbours": None,
        "y_max": None,
    },
    "kinds": {
        "metric": ["either", "text", "texts"],
        "attack": ["either", "null", "text"],
        "definition": ["choice", "gap", "released"],
        "threshold": ["choice", "best", "own"],
        "neighbours": ["either", "null", ["choice", "add_remove", "zero_out", "replace_one"]],
        "y_max": ["either", "null", ["number", "above", 0]],
    },
}


@styled
def draw(
    metrics: pd.DataFrame, settings: dict[str, Any], published: pd.DataFrame | None
) -> "tuple[Figure, pd.DataFrame]":
    """One panel per (data set, model), and per attack where the metric is a leakage.

    Settings:
        metric: ``accuracy_loss``, ``test_accuracy``, … or ``leakage``: the advantage of ``attack``; or a list of
            metrics (not ``leakage``), a panel each.
        attack: for ``leakage``, None: every attack; of other metrics, those that belong to an attack.
        definition: which attribute advantage: ``gap`` or ``released``.
        threshold: of membership attacks: ``best``, chosen on other records, or the attack's ``own``.
        neighbours: count only ε for this neighbouring relation; None: the accountant's own.
        y_max: end of the axis upward.
    """
    frame = chosen(metrics, settings)
    leaks = settings["metric"] == "leakage"
    measured = (
        attack_rows(frame, settings["attack"], settings["definition"], settings["threshold"])
        if leaks
        else pd.concat(
            [metric_rows(frame, metric, attack=settings["attack"]) for metric in listed(settings["metric"])]
        ).assign(attack="")
    )
    budgets = spent(frame, settings["neighbours"])
    if budgets.empty:
        raise UserError(
            "figure of kind 'spent_axis': no ε spent is known for these cells"
            + (f" with neighbours '{settings['neighbours']}'" if settings["neighbours"] else "")
        )
    joined = measured.merge(budgets, how="left", on=["dataset", "model", "defense"])
    joined = joined[joined["epsilon_spent"].notna() | ~is_private(joined)]
    rows = drawn_numbers(joined, published, extra=["attack", "epsilon_spent", "spent_accountant", "spent_neighbours"])
    rows = bound_columns(rows, "epsilon_spent") if leaks else rows
    relations = " or ".join(name(relation) for relation in sorted(set(budgets["spent_neighbours"]) - {""}))
    figure = draw_series(
        rows,
        x="epsilon_spent",
        x_label=f"ε really spent  (→ weaker protection)\n{relations} neighbours",
        by=("attack", "dataset", "model") if leaks else ("dataset", "model", "metric"),
        named=None if leaks else ("dataset", "model"),
        sharey=leaks or len(listed(settings["metric"])) == 1,
        y_max=settings["y_max"],
        behind=bound_lines if leaks else None,
        notes=[
            *([*threshold_notes(rows), *bound_notes(rows)] if leaks else []),
            *remarks(frame),
            *spent_notes(rows, settings),
        ],
        title=settings.get("title"),
    )
    return figure, rows
