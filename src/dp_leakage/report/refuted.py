"""Privacy claims that an attack refutes: the page's alarm, the first lines of a run's end, and what is not shared.

No answer names such a setting, and nothing counts as proven of it.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import pandas as pd

from dp_leakage.figures.frames import chosen
from dp_leakage.figures.numbers import fraction
from dp_leakage.figures.style import name
from dp_leakage.metrics.rows import CELL
from dp_leakage.metrics.spent import contradicted
from dp_leakage.privacy.defenses import CLAIMED
from dp_leakage.report.answer import Answer, Setting
from dp_leakage.report.claims import REFUTED, Claim, Telling
from dp_leakage.report.guarantees import rounded_up


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
    bound, most = tell.plain("epsilon_lower_bound", row["value"]), tell.plain("epsilon_allowed", row["allowed"])
    allowed = f"the accounting allows {most}"
    if row["accountant"] == CLAIMED:
        allowed = f"more than the {most} that {row['accounting_note'].removeprefix('ε as claimed by ')} claims"
    return _claim(where, f"an attack proves ε ≥ {bound}{counted}, {allowed}.", tell)


def _beaten(one: Setting) -> Claim:
    assert one.leak is not None  # an attack exceeds what was proven
    assert one.advantage_held is not None
    assert one.beaten is not None
    where = {"dataset": one.dataset, "model": one.model, "defense": one.defense}
    tell = Telling(where)
    reached = tell(
        "reached_advantage", one.advantage_held.low, fraction(one.advantage_held.low), attack=one.leak.attack
    )
    limit = tell("advantage_proven", one.beaten.advantage, rounded_up(one.beaten.advantage))
    tell("confidence", 0.95, "95")
    words = (
        f"{name(one.leak.attack)} has an advantage of at least {reached} (with 95 % confidence for all settings at "
        f"once), the accounting allows {limit}."
    )
    return _claim(where, words, tell)


def _claim(where: Mapping[str, str], words: str, tell: Telling) -> Claim:
    dataset, model, defense = (where[key] for key in CELL)
    said = f"{name(dataset)} · {name(model)} · {defense}: {words}"
    return tell.claim("", REFUTED, dataset, said, cells=((model, defense),), screen=0)
