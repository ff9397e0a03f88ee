"""The answer of a study, computed: the smallest budget that is accurate enough, and what leaks there."""

from dataclasses import dataclass
from typing import Literal

import numpy as np
import pandas as pd

from dp_leakage.figures.frames import chosen, is_private, parse_setting, spent
from dp_leakage.intervals import Estimate
from dp_leakage.privacy.bounds import advantage_bound

CELL = ["dataset", "model", "defense"]


@dataclass(frozen=True)
class Answer:
    """For one data set and model.

    Attributes:
        dataset, model: names.
        verdict: ``met``: the interval of the loss lies below the tolerance; ``barely``: the loss does, its interval
            does not; ``missed``: no private model is accurate enough; the numbers are those of the most accurate one.
        defense: the cell that they are of.
        row: the cell's columns.
        claimed: its nominal ε; NaN if it has none.
        spent: the ε that its training spent; NaN if not known.
        neighbours: for which data sets that counts: ``add_remove``, ``zero_out``, ``replace_one`` or "".
        loss: accuracy lost, a fraction of the undefended accuracy.
        accuracy, undefended_accuracy: test accuracies.
        attack: the membership attack with the largest advantage on the cell; "" if none was run.
        leak: that advantage; chosen as the largest, its interval is a little too good for the attacker.
        undefended_attack, undefended_leak: the same on the undefended model.
        guaranteed: the most that any attack could reach at the spent ε.
    """

    dataset: str
    model: str
    verdict: Literal["met", "barely", "missed"]
    defense: str
    row: pd.Series
    claimed: float
    spent: float
    neighbours: str
    loss: Estimate
    accuracy: Estimate | None
    undefended_accuracy: Estimate | None
    attack: str
    leak: Estimate | None
    undefended_attack: str
    undefended_leak: Estimate | None
    guaranteed: float

    @property
    def budget(self) -> float:
        """The ε by which budgets are ranked: the spent one where it is known, else the claimed."""
        return self.spent if np.isfinite(self.spent) else self.claimed


def answers(metrics: pd.DataFrame, tolerance: float) -> list[Answer]:
    """One answer per data set and model that has private cells with a measured loss, in their order.

    Args:
        metrics: rows of all cells.
        tolerance: acceptable accuracy loss, a fraction of the undefended accuracy.
    """
    frame = chosen(metrics, {})
    losses = frame[(frame["metric"] == "accuracy_loss") & is_private(frame) & frame["value"].notna()]
    losses = losses.merge(spent(frame), how="left", on=CELL)
    replaced = spent(frame, "replace_one").rename(columns={"epsilon_spent": "epsilon_replaced"})
    losses = losses.merge(replaced[[*CELL, "epsilon_replaced"]], how="left", on=CELL)
    return [_answer(frame, part, tolerance) for _, part in losses.groupby(["dataset", "model"], sort=False)]


def best_of(found: list[Answer]) -> list[Answer]:
    """Per data set the answer to lead with: tolerance met before missed, then the smallest budget, then accuracy."""
    rank = {"met": 0, "barely": 1, "missed": 2}

    def key(answer: Answer) -> tuple[float, ...]:
        budget = answer.budget if np.isfinite(answer.budget) else np.inf
        return rank[answer.verdict], budget, -answer.accuracy.value if answer.accuracy else 0.0

    ordered = sorted(found, key=key)
    best = {answer.dataset: answer for answer in reversed(ordered)}
    return [best[dataset] for dataset in dict.fromkeys(answer.dataset for answer in found)]


def _answer(frame: pd.DataFrame, losses: pd.DataFrame, tolerance: float) -> Answer:
    verdict, enough = _accurate_enough(losses, tolerance)
    budgets = enough["epsilon_spent"].where(np.isfinite(enough["epsilon_spent"]), enough["epsilon"])
    # Of equal budgets (or none) the more accurate.
    row = enough.assign(budget=budgets).sort_values(["budget", "value", "defense"], kind="stable").iloc[0]
    here = frame[(frame["dataset"] == row["dataset"]) & (frame["model"] == row["model"])]
    attack, undefended_attack = _strongest(here, row["defense"]), _strongest(here, "none")
    return Answer(
        dataset=row["dataset"],
        model=row["model"],
        verdict=verdict,
        defense=row["defense"],
        row=row,
        claimed=float(row["epsilon"]),
        spent=float(row["epsilon_spent"]),
        neighbours=row["spent_neighbours"] if isinstance(row["spent_neighbours"], str) else "",
        loss=Estimate(row["value"], row["low"], row["high"]),
        accuracy=_estimate(here, row["defense"], "test_accuracy"),
        undefended_accuracy=_estimate(here, "none", "test_accuracy"),
        attack=attack,
        leak=_estimate(here, row["defense"], "membership_advantage", attack),
        undefended_attack=undefended_attack,
        undefended_leak=_estimate(here, "none", "membership_advantage", undefended_attack),
        guaranteed=guaranteed(row["epsilon_spent"], row["spent_neighbours"], row["epsilon_replaced"], row["delta"]),
    )


def _accurate_enough(losses: pd.DataFrame, tolerance: float) -> tuple[Literal["met", "barely", "missed"], pd.DataFrame]:
    if (losses["high"] <= tolerance).any():
        return "met", losses[losses["high"] <= tolerance]
    if (losses["value"] <= tolerance).any():
        return "barely", losses[losses["value"] <= tolerance]
    return "missed", losses[losses["value"] == losses["value"].min()]


def guaranteed(epsilon: float, neighbours: object, epsilon_replaced: float, delta: float) -> float:
    """The largest advantage that differential privacy allows in the game of a member against a non-member.

    The game replaces one record. Where neighbours differ by a record's presence that is two steps: 2ε and (1 + e^ε)δ.

    Args:
        epsilon, neighbours: the ε spent, and for which neighbours.
        epsilon_replaced: the ε spent for replace_one neighbours; NaN if not known.
        delta: δ of both.

    Returns:
        The smaller of the two bounds; NaN if no ε is known.
    """
    with np.errstate(over="ignore"):
        twice = advantage_bound(2 * epsilon, min((1 + np.exp(epsilon)) * delta, 1.0))
    once = advantage_bound(epsilon_replaced, delta)
    return float(once if neighbours == "replace_one" else np.fmin(once, twice))


def _strongest(here: pd.DataFrame, defense: str) -> str:
    rows = here[(here["defense"] == defense) & (here["metric"] == "membership_advantage") & here["value"].notna()]
    return "" if rows.empty else parse_setting(rows.loc[rows["value"].idxmax(), "setting"]).get("attack", "")


def _estimate(here: pd.DataFrame, defense: str, metric: str, attack: str | None = None) -> Estimate | None:
    rows = here[(here["defense"] == defense) & (here["metric"] == metric)]
    if attack is not None:
        rows = rows[[parse_setting(setting).get("attack") == attack for setting in rows["setting"]]]
    return None if rows.empty else Estimate(*(float(rows.iloc[0][column]) for column in ("value", "low", "high")))
