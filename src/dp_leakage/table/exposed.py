"""Members identified at a small false positive rate, counted in two ways."""

import pandas as pd

from dp_leakage.table.numbers import beside_prints, count, rows_by_budget
from dp_leakage.table.tables import Table

COUNTINGS = {"mean": "mean over the runs", "all_runs": "flagged in every run"}
BY_COINS = COUNTINGS | {"all_runs": "flagged in every run with it"}


def tossed(part: pd.DataFrame) -> bool:
    """Return whether random inclusion decides in each run which records are members."""
    return "n_records" in part and bool((part["n_records"] > part["n_members"]).any())


def of_whom(part: pd.DataFrame) -> str:
    """Describe the number of members behind the counts; with random inclusion, per run."""
    members = f"{part['n_members'].iloc[0]:,.0f}"
    if not tossed(part):
        return f"of {members} members"
    return f"of about {members} members in each run"


def exposed_table(heading: str, part: pd.DataFrame) -> Table:
    """Return a table of both counts at each rate, and of the counts of a random guess."""
    part = part.assign(column=[f"{way} {rate:g}" for way, rate in zip(part["counting"], part["fpr"], strict=True)])
    words = {rate: f"at {100 * rate:g} %" for rate in sorted(set(part["fpr"]))}
    by_way = {
        way: beside_prints(part, {f"{way} {rate:g}": head for rate, head in words.items()}, nothing="")
        for way in COUNTINGS
    }
    lines = rows_by_budget(part, lambda cell: [[text for _, texts in by_way.values() for text in texts(cell)]])
    chance = {head: count(part["n_members"].iloc[0] * rate) for rate, head in words.items()}
    guesser = [chance.get(head, "") if way == "mean" else "" for way, (heads, _) in by_way.items() for head in heads]
    countings = BY_COINS if tossed(part) else COUNTINGS
    return Table(
        f"{heading}: members exposed, {of_whom(part)}",
        ["defense", "ε", *(head for heads, _ in by_way.values() for head in heads)],
        [*lines, ["a guesser", "", *guesser]],
        [("", 2), *((countings[way], len(heads)) for way, (heads, _) in by_way.items())],
    )
