"""Computes the answer of a study: the smallest budget that is accurate enough, and what leaks there."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

import numpy as np
import pandas as pd

from dp_leakage.figures.frames import chosen, is_private, series_of
from dp_leakage.figures.style import Series, order
from dp_leakage.metrics.intervals import Estimate
from dp_leakage.metrics.spent import spent
from dp_leakage.report.context import TOLERANCE
from dp_leakage.report.leak import Leak, leaks
from dp_leakage.report.proven import Proven, proven_of
from dp_leakage.report.tuned import Tuned, tuned_of

CELL = ["dataset", "model", "defense"]
Verdict = Literal["met", "open", "missed", "guessing"]


@dataclass(frozen=True)
class Answer:
    """The answer for one data set and model.

    Attributes:
        dataset, model: names.
        verdict: ``met``: the interval of the loss lies below the tolerance; ``open``: the loss does, its interval does
            not; ``missed``: no private model is accurate enough; the numbers are those of the most accurate one;
            ``guessing``: the undefended model is not surely better than guessing, so that no loss means anything.
        defense: the cell that the numbers come from.
        row: the cell's columns.
        claimed: its nominal ε; NaN if it has none.
        spent: the ε that its training spent; NaN if not known.
        neighbours: the relation of that ε: ``add_remove``, ``zero_out``, ``replace_one`` or "".
        loss: accuracy lost, a fraction of the undefended accuracy.
        accuracy, undefended_accuracy: test accuracies.
        guessing: the accuracy of always naming the members' most frequent class; NaN if not known.
        leak: what an attacker reaches there; None if no membership attack was run.
        undefended_leak: the same on the undefended model.
        unproven: the same under defences that prove nothing (an ℓ2 penalty, dropout, …).
        proven: the most that any attack could reach; None if nothing is proven.
        tried: private cells of the data set, among which the recommended one was chosen.
        tuned: how the cell's learning rate was found; None if it was given.
    """

    dataset: str
    model: str
    verdict: Verdict
    defense: str
    row: pd.Series
    claimed: float
    spent: float
    neighbours: str
    loss: Estimate
    accuracy: Estimate | None
    undefended_accuracy: Estimate | None
    guessing: float
    leak: Leak | None
    undefended_leak: Leak | None
    unproven: Mapping[Series, Leak]
    proven: Proven | None
    tried: int
    tuned: Tuned | None = None

    @property
    def budget(self) -> float:
        """The ε by which budgets are ranked: the spent one if it is known, else the claimed one."""
        return self.spent if np.isfinite(self.spent) else self.claimed

    @property
    def at_chance(self) -> bool:
        """Whether it is uncertain that the cell's model beats guessing."""
        return self.accuracy is not None and self.accuracy.low <= self.guessing


def answers(metrics: pd.DataFrame, tolerance: float, guessing: Mapping[str, float] | None = None) -> list[Answer]:
    """One answer per data set and model that has private cells with a measured loss, in their order.

    Args:
        metrics: rows of all cells.
        tolerance: acceptable accuracy loss, a fraction of the undefended accuracy.
        guessing: data set → the accuracy of guessing, if it is known.
    """
    frame = chosen(metrics, {})
    losses = frame[(frame["metric"] == "accuracy_loss") & is_private(frame) & frame["value"].notna()]
    losses = losses.merge(spent(frame), how="left", on=CELL)
    losses = losses[np.isfinite(losses["epsilon_spent"])]  # an unknown ε cannot be recommended
    accuracy = frame[frame["metric"] == "test_accuracy"].rename(columns={"low": "accuracy_low"})
    losses = losses.merge(accuracy[[*CELL, "accuracy_low"]], how="left", on=CELL)
    losses = losses.assign(guessing=losses["dataset"].map(guessing or {}).astype(float))
    tried = losses.groupby("dataset").size()
    return [
        _answer(frame, part, tolerance, int(tried[dataset]))
        for (dataset, _), part in losses.groupby(["dataset", "model"], sort=False)
    ]


def best_of(found: list[Answer]) -> list[Answer]:
    """For each data set, the answer to lead with: tolerance met before missed, then the smallest budget.

    Of several models that are accurate enough at the same budget, it is the one that leaks least; or the most accurate
    of those whose leakage may as well be the same and whose accuracy is surely higher, intervals apart. If none is
    accurate enough, it is the most accurate one.
    """
    best = {}
    for dataset in dict.fromkeys(answer.dataset for answer in found):
        ordered = sorted((answer for answer in found if answer.dataset == dataset), key=_rank)
        first, *others = ordered
        better = [other for other in others if _rank(other)[:2] == _rank(first)[:2] and _better(other, first)]
        best[dataset] = max(better, key=_accuracy, default=first)
    return list(best.values())


def _rank(answer: Answer) -> tuple[float, ...]:
    """Its place among the answers for a data set, the best first."""
    verdict = {"met": 0, "open": 1, "missed": 2, "guessing": 3}[answer.verdict]
    budget = answer.budget if np.isfinite(answer.budget) else np.inf
    leaking = answer.leak.advantage.value if answer.leak else 0.0
    enough = verdict < 2
    return verdict, *((budget, leaking, -_accuracy(answer)) if enough else (-_accuracy(answer), budget, leaking))


def _accuracy(answer: Answer) -> float:
    return answer.accuracy.value if answer.accuracy else 0.0


def _better(one: Answer, other: Answer) -> bool:
    """Whether one is surely more accurate than the other, and not surely leakier."""
    if one.accuracy is None or other.accuracy is None or one.leak is None or other.leak is None:
        return False
    leakier = one.leak.advantage.low > other.leak.advantage.high
    return one.accuracy.low > other.accuracy.high and not leakier


def singled_out(metrics: pd.DataFrame, guessing: Mapping[str, float]) -> set[tuple[str, str, str, str]]:
    """(data set, model, defense, attack): the strongest attack on each undefended model, and on the answers' models."""
    frame = chosen(metrics, {})
    told = {(answer.dataset, answer.model, answer.defense) for answer in answers(metrics, TOLERANCE, guessing)}
    return {(*cell, leak.attack) for cell, leak in leaks(frame).items() if cell[2] == "none" or cell in told}


def _answer(frame: pd.DataFrame, losses: pd.DataFrame, tolerance: float, tried: int) -> Answer:
    here = frame[(frame["dataset"] == losses["dataset"].iloc[0]) & (frame["model"] == losses["model"].iloc[0])]
    undefended = _estimate(here, "none", "test_accuracy")
    guessing = float(losses["guessing"].iloc[0])
    verdict: Verdict
    if undefended is not None and undefended.low <= guessing:
        verdict, enough = "guessing", losses[losses["value"] == losses["value"].min()]
    else:
        verdict, enough = _accurate_enough(losses, tolerance)
    budgets = enough["epsilon_spent"].where(np.isfinite(enough["epsilon_spent"]), enough["epsilon"])
    # For equal budgets (or none), the more accurate one.
    row = enough.assign(budget=budgets).sort_values(["budget", "value", "defense"], kind="stable").iloc[0]
    names = row["dataset"], row["model"]
    leak = leaks(here)
    plain = here[~is_private(here) & (here["defense"] != "none")].drop_duplicates("defense")
    unproven = {
        series: leak[*names, defense]
        for series, defense in zip(series_of(plain), plain["defense"], strict=True)
        if (*names, defense) in leak
    }
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
        undefended_accuracy=undefended,
        guessing=guessing,
        leak=leak.get((*names, row["defense"])),
        undefended_leak=leak.get((*names, "none")),
        unproven={series: unproven[series] for series in sorted(unproven, key=order)},
        proven=proven_of(here, row["defense"]),
        tried=tried,
        tuned=tuned_of(here[here["defense"] == row["defense"]]),
    )


def _accurate_enough(losses: pd.DataFrame, tolerance: float) -> tuple[Verdict, pd.DataFrame]:
    """The cells that may be chosen. A model that only guesses is never accurate enough, however little it loses."""
    useful = losses[~(losses["accuracy_low"] <= losses["guessing"])]
    if (useful["high"] <= tolerance).any():
        return "met", useful[useful["high"] <= tolerance]
    if (useful["value"] <= tolerance).any():
        return "open", useful[useful["value"] <= tolerance]
    return "missed", losses[losses["value"] == losses["value"].min()]


def _estimate(here: pd.DataFrame, defense: str, metric: str) -> Estimate | None:
    rows = here[(here["defense"] == defense) & (here["metric"] == metric)]
    return None if rows.empty else Estimate(*(float(rows.iloc[0][column]) for column in ("value", "low", "high")))
