"""Privacy claims that an attack refutes: the page's alarm, the first lines of a run's end, and what is not shared.

No answer names such a setting, and nothing counts as proven of it.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from decimal import ROUND_CEILING, ROUND_FLOOR, Context, Decimal
from typing import Any

import pandas as pd

from dp_leakage.figures.frames import chosen
from dp_leakage.figures.style import name
from dp_leakage.metrics.rows import CELL
from dp_leakage.metrics.spent import contradicted
from dp_leakage.privacy.defenses import CLAIMED
from dp_leakage.report.answer import Answer, Setting
from dp_leakage.report.claims import REFUTED, Claim, Telling

DIGITS = range(3, 18)  # from what all numbers have to what tells any two apart


def refuted_claims(metrics: pd.DataFrame, found: Sequence[Answer] = ()) -> list[Claim]:
    """A claim for each lower bound above the spent (or else the claimed) ε, and for each attack that surely reaches
    more than is proven of any. Something there is wrong.

    Args:
        metrics: rows of all cells.
        found: their answers.
    """
    bounds = contradicted(chosen(metrics, {})).sort_values("value", ascending=False, kind="stable")
    told = [_above(row) for row in bounds.drop_duplicates([*CELL, "relation"]).to_dict("records")]
    told += [_beaten(one) for answer in found for one in answer.settings if one.beaten is not None]
    return [replace(claim, id=f"{claim.dataset}.{REFUTED}.{place}") for place, claim in enumerate(told)]


def refuted_cells(content: Mapping[str, Any]) -> set[tuple[str, str, str]]:
    """(data set, model, defense) of the cells whose claims are refuted, from the content of ``claims.json``."""
    told = [claim for claim in content["claims"] if claim["kind"] == REFUTED]
    return {(claim["dataset"], *cell) for claim in told for cell in claim["cells"]}


def _above(row: Mapping[str, Any]) -> Claim:
    where = {key: row[key] for key in CELL}
    tell = Telling(where | ({"neighbors": row["relation"]} if row["relation"] else {}))
    counted = f" for {name(row['relation'])} neighbors" if row["relation"] else ""
    shown = _apart(row["value"], row["allowed"], _significant)
    bound = tell("epsilon_lower_bound", row["value"], shown[0])
    most = tell("epsilon_allowed", row["allowed"], shown[1])
    words = f"an attack proves ε ≥ {bound}{counted}"
    if row["accountant"] != CLAIMED:
        return _claim(where, f"{words}; the accounting allows {most}.", tell)
    who = row["accounting_note"].removeprefix("ε as claimed by ")
    said = f"{who} claims"
    if row["allowed"] != row["epsilon"]:  # twice the claim, of an exchange
        said = f"follows from {who}'s claim of ε = {tell.plain('claimed_epsilon', row['epsilon'])}"
    return _claim(where, f"{words}, more than the {most} that {said}.", tell)


def _beaten(one: Setting) -> Claim:
    assert one.leak is not None  # an attack exceeds what was proven
    assert one.advantage_held is not None
    assert one.beaten is not None
    where = {"dataset": one.dataset, "model": one.model, "defense": one.defense}
    tell = Telling(where)
    shown = _apart(one.advantage_held.low, one.beaten.advantage, _decimal)
    reached = tell("reached_advantage", one.advantage_held.low, shown[0], attack=one.leak.attack)
    limit = tell("advantage_proven", one.beaten.advantage, shown[1])
    tell("confidence", 0.95, "95")
    words = (
        f"{name(one.leak.attack)} has an advantage of at least {reached} (with 95 % confidence for all private "
        f"settings at once); the accounting allows {limit}."
    )
    return _claim(where, words, tell)


def _apart(bound: float, limit: float, spell: Callable[[float, int, str], str]) -> tuple[str, str]:
    """A lower bound rounded down and the limit that it exceeds rounded up, with as many digits as tell them apart."""
    pairs = ((spell(bound, digits, ROUND_FLOOR), spell(limit, digits, ROUND_CEILING)) for digits in DIGITS)
    return next((pair for pair in pairs if float(pair[0]) > float(pair[1])), (str(bound), str(limit)))


def _significant(value: float, digits: int, rounding: str) -> str:
    """1.004, 57200, 1e+06: a budget to so many significant digits."""
    return f"{float(Context(digits, rounding).create_decimal(repr(float(value)))):.{digits}g}"


def _decimal(value: float, digits: int, rounding: str) -> str:
    """0.090: with so many digits behind the point."""
    return str(Decimal(repr(float(value))).quantize(Decimal(1).scaleb(-digits), rounding))


def _claim(where: Mapping[str, str], words: str, tell: Telling) -> Claim:
    dataset, model, defense = (where[key] for key in CELL)
    said = f"{name(dataset)} · {name(model)} · {defense}: {words}"
    return tell.claim("", REFUTED, dataset, said, cells=((model, defense),), screen=0)
