"""Refuted privacy claims: the page's alarm, and a run's last lines. `share` withholds these models.

No answer names a refuted setting, and its proofs do not count.
"""

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import pandas as pd

from dp_leakage.common.rounding import decimals_down, decimals_up, rounded_down, rounded_up
from dp_leakage.metrics.rows import CELL
from dp_leakage.metrics.spent import contradicted
from dp_leakage.privacy.defenses import CLAIMED
from dp_leakage.report.claims import REFUTED, Claim, ClaimWriter
from dp_leakage.report.exceeded import Exceeded, exceeded
from dp_leakage.table.frames import chosen
from dp_leakage.table.words import name

Spell = Callable[[float, int], str]
DIGITS = range(3, 18)  # from what all numbers have to what tells any two apart


def refuted_claims(metrics: pd.DataFrame) -> list[Claim]:
    """Return a claim for each lower bound above the accounted (or target) ε, and for each attack above a proven limit.

    ``metrics``: rows of all cells, also of single repeats.
    """
    bounds = contradicted(chosen(metrics, {})).sort_values("value", ascending=False, kind="stable")
    told = [_above(row) for row in bounds.drop_duplicates([*CELL, "relation"]).to_dict("records")]
    told += [_exceeded(one) for one in exceeded(metrics)]
    return [replace(claim, id=f"{claim.dataset}.{REFUTED}.{place}") for place, claim in enumerate(told)]


def refuted_cells(content: Mapping[str, Any]) -> set[tuple[str, str, str]]:
    """Return (data set, model, defense) of the refuted cells, from the content of ``claims.json``."""
    told = [claim for claim in content["claims"] if claim["kind"] == REFUTED]
    return {(claim["dataset"], *cell) for claim in told for cell in claim["cells"]}


def _above(row: Mapping[str, Any]) -> Claim:
    where = {key: row[key] for key in CELL}
    writer = ClaimWriter(where | ({"neighbors": row["relation"]} if row["relation"] else {}))
    counted = f" for {name(row['relation'])} neighbors" if row["relation"] else ""
    shown = _apart(row["value"], row["allowed"], rounded_down, rounded_up)
    bound = writer("epsilon_lower_bound", row["value"], shown[0])
    most = writer("epsilon_allowed", row["allowed"], shown[1])
    sure = f"with {writer('confidence', 0.95, '95')} % confidence for all bounds of the study at once"
    words = f"an attack shows ε ≥ {bound}{counted} ({sure})"
    if row["accountant"] != CLAIMED:
        return _claim(where, f"{words}; the accounting allows {most}.", writer)
    who = row["accounting_note"].removeprefix("ε as claimed by ")
    said = f"{who} claims"
    if row["allowed"] != row["epsilon"]:  # twice the claim, of an exchange
        said = f"follows from {who}'s claim of ε = {writer.plain('claimed_epsilon', row['epsilon'])}"
    return _claim(where, f"{words}, more than the {most} that {said}.", writer)


def _exceeded(one: Exceeded) -> Claim:
    """Return the claim on an advantage, or on a share of members or pictures, above its limit."""
    dataset, model, defense = one.cell
    where = {"dataset": dataset, "model": model, "defense": defense}
    attack = str(one.row["of"] or one.row["attack"])
    writer = ClaimWriter(where | {"attack": attack})
    if one.metric == "reached_advantage":
        unit, shown = "", _apart(one.low, one.limit, decimals_down, decimals_up)
    else:
        unit, shown = " %", _apart(100 * one.low, 100 * one.limit, _percent_down, _percent_up)
    reached = writer(one.metric, one.low, shown[0], among=one.among) + unit
    limit = writer(one.proven, one.limit, shown[1]) + unit
    together = ""
    if one.among > 1:
        together = f" for all {writer.count(one.among)} numbers at once that are compared with such a limit"
    confidence = f"with {writer('confidence', 0.95, '95')} % confidence{together}"
    said = SAID[one.metric](one.row, reached, writer)
    return _claim(where, f"{name(attack)} {said} ({confidence}); the accounting allows {limit}.", writer)


def _identifies(row: Mapping[str, Any], reached: str, writer: ClaimWriter) -> str:
    rate = writer("fpr", row["fpr"], f"{100 * row['fpr']:g}")
    return f"identifies at least {reached} of the members at {rate} % false positives"


def _recognizes(row: Mapping[str, Any], reached: str, writer: ClaimWriter) -> str:
    many = writer.plain("candidates", row["candidates"])
    return f"tells which of {many} equally likely records was in a step in at least {reached} of the cases"


SAID = {
    "reached_advantage": lambda row, reached, writer: f"has an advantage of at least {reached}",
    "reached_tpr": _identifies,
    "recognized": _recognizes,
}


def _apart(bound: float, limit: float, down: Spell, up: Spell) -> tuple[str, str]:
    """Format a lower bound, rounded down, and the limit it exceeds, rounded up, with enough digits to differ."""
    pairs = ((down(bound, digits), up(limit, digits)) for digits in DIGITS)
    return next((pair for pair in pairs if float(pair[0]) > float(pair[1])), (str(bound), str(limit)))


def _percent_down(value: float, digits: int) -> str:
    """Format a fraction as a percentage, rounded down: 9.0. It has two decimals fewer than the fraction."""
    return decimals_down(value, digits - 2)


def _percent_up(value: float, digits: int) -> str:
    return decimals_up(value, digits - 2)


def _claim(where: Mapping[str, str], words: str, writer: ClaimWriter) -> Claim:
    dataset, model, defense = (where[key] for key in CELL)
    said = f"{name(dataset)} · {name(model)} · {defense}: {words}"
    return writer.claim("", REFUTED, dataset, said, cells=((model, defense),), screen=0)
