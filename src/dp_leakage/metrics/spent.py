"""Accounted ε of trainings, from metric rows, and the audits' lower bounds that contradict it."""

import numpy as np
import pandas as pd

from dp_leakage.metrics.rows import CELL
from dp_leakage.privacy.defenses import CLAIMED
from dp_leakage.privacy.mechanism import holds_groups

# The relations of spent ε that an audit's bound is compared with, by the bound's own neighbors.
COMPARED = {"replace_one": ("replace_one",), "presence": ("add_remove", "zero_out")}
POISSON = "hypothetical_poisson"  # sampling of an ε that would be, had the batches been Poisson samples
OF_A_CLAIM = dict.fromkeys(("presence", "add_remove", "zero_out"), ("",))  # the same where another library claims ε


def is_hypothetical(rows: pd.DataFrame) -> "pd.Series[bool]":
    """Return the rows whose ε assumes other batches than those of the training."""
    return rows["sampling"].str.startswith("hypothetical").astype(bool)


def spent(frame: pd.DataFrame, neighbors: str | None = None) -> pd.DataFrame:
    """Return the accounted ε of each private cell: the smallest that a valid accountant proves for its training.

    Rows that are not ``valid`` (printed formulas outside their conditions), or whose ``sampling`` is hypothetical (for
    other batches than the training's), do not count. The ε of different neighbors mean different things, so the
    smallest is taken over accountants, never over neighbors.

    Args:
        frame: rows over all repeats.
        neighbors: count this neighboring relation only. None: of each cell the relation of the study's own attacks, for
            which its proven limits hold; if it has no known ε or limit, the most common relation.

    Returns:
        A row a cell: dataset, model, defense, epsilon_spent, spent_accountant, spent_neighbors.
    """
    rows = known(frame)
    if neighbors is None:
        games = relations_of_games(frame)
        most = {relation: place for place, relation in enumerate(relations(rows))}
        keys = zip(*(rows[column] for column in CELL), strict=True)
        own = [games.get(key) == relation for key, relation in zip(keys, rows["spent_neighbors"], strict=True)]
        rank = [-1 if game else most[relation] for game, relation in zip(own, rows["spent_neighbors"], strict=True)]
        rows = rows.assign(rank=rank)
    else:
        rows = rows[rows["spent_neighbors"] == neighbors].assign(rank=0)
    best = rows.sort_values([*CELL, "rank", "epsilon_spent", "spent_accountant"], kind="stable").drop_duplicates(CELL)
    return best[[*CELL, "epsilon_spent", "spent_accountant", "spent_neighbors"]].reset_index(drop=True)


def spent_alike(frame: pd.DataFrame, neighbors: str | None = None) -> tuple[pd.DataFrame, str]:
    """Return the accounted ε of all cells for one neighboring relation, and that relation, so that cells can share an
    axis.

    Args:
        frame: rows over all repeats.
        neighbors: the relation; None: the most common one.

    Returns:
        Rows as `spent` gives them, none for cells without a known ε for this relation; "" where no ε is known at all.
    """
    relation = next(iter(relations(known(frame))), "") if neighbors is None else neighbors
    return spent(frame, relation), relation


def known(frame: pd.DataFrame) -> pd.DataFrame:
    """Return the rows of accounted ε that count, with ``epsilon_spent``, ``spent_accountant`` and ``spent_neighbors``.

    Neighbors are those of records (or people), also where a mechanism's units are (sub)classes. A record more or fewer
    changes what its class is, so an accountant's ε for exchanging a class counts as ``add_remove`` of a record here.
    Its ε for a class more or fewer does not apply to records.
    """
    rows = frame[frame["metric"] == "epsilon_spent"]
    rows = rows[rows["valid"].fillna(True).astype(bool) & ~is_hypothetical(rows) & rows["value"].notna()]
    if "unit" in rows:
        grouped = rows["unit"].map(_is_group).astype(bool)
        rows = rows[~grouped | (rows["neighbors"] == "replace_one")]
        rows = rows.assign(neighbors=rows["neighbors"].mask(grouped, "add_remove"))
    return rows.rename(
        columns={"value": "epsilon_spent", "accounted_by": "spent_accountant", "neighbors": "spent_neighbors"}
    )


def _is_group(unit: object) -> bool:
    """Return whether a row's unit is a (sub)class; a claim by another library has no known unit."""
    return isinstance(unit, str) and unit != "" and holds_groups(unit)


def relations(rows: pd.DataFrame) -> list[str]:
    """Return the neighboring relations of rows of `known`, the most common one first."""
    cells = rows.drop_duplicates([*CELL, "spent_neighbors"])["spent_neighbors"].value_counts()
    return sorted(cells.index, key=lambda relation: (-cells[relation], relation != "replace_one", relation))


def relations_of_games(frame: pd.DataFrame) -> dict[tuple[str, str, str], str]:
    """Return (data set, model, defense) → the neighbors that the study's attacks distinguish, as its limits state."""
    rows = frame[frame["metric"] == "advantage_proven"]
    keys = zip(*(rows[column] for column in CELL), strict=True)
    return dict(zip(keys, rows["neighbors"], strict=True))


def contradicted(frame: pd.DataFrame) -> pd.DataFrame:
    """Return the lower bounds that exceed the accounted ε and so prove an error: rows of `compared`."""
    rows = compared(frame)
    return rows[rows["value"] > rows["allowed"]]


def compared(frame: pd.DataFrame) -> pd.DataFrame:
    """Return the lower bounds, each with the ε that it must not exceed.

    A bound with ``neighbors`` is compared with the ε spent for these neighbors. If no ε is known for replace_one, the
    bound's ``presence`` row is compared with the ε for add/remove and zero-out neighbors. Any other bound is compared
    with the ε spent for the study's own attacks, otherwise with the claim. Another library's claim has unknown
    neighbors: a ``presence`` bound is compared with the claim, a replace_one bound with twice the claim, which holds
    for either relation.

    Args:
        frame: rows over all repeats.

    Returns:
        Their rows, with ``allowed``, the ε that was spent (NaN if none is known), and ``relation``, for which neighbors
        ("" if not known).
    """
    bounds = frame[frame["metric"] == "epsilon_lower_bound"]
    if bounds.empty:
        return bounds.assign(relation="", allowed=np.nan)
    said = bounds["neighbors"].tolist()
    theirs = (bounds["accountant"] == CLAIMED).tolist()
    pairs = [
        (i, relation)
        for i, (said_, claim) in enumerate(zip(said, theirs, strict=True))
        for relation in (OF_A_CLAIM if claim else COMPARED).get(said_, (said_,))
    ]
    rows = bounds.iloc[[i for i, _ in pairs]]
    rows = rows.assign(relation=[relation for _, relation in pairs])
    known = pd.concat(
        [spent(frame, relation or None).assign(relation=relation) for relation in sorted(set(rows["relation"]))]
    )
    rows = rows.merge(known[[*CELL, "relation", "epsilon_spent"]], how="left", on=[*CELL, "relation"])
    exchanged = spent(frame, "replace_one")[CELL].assign(exchanged=True)
    converted = rows["relation"].isin(COMPARED["presence"]) & (rows["neighbors"] == "presence")
    rows = rows[~converted | rows[CELL].merge(exchanged, how="left", on=CELL)["exchanged"].isna()]
    allowed = rows["epsilon_spent"].where(rows["epsilon_spent"].notna() | (rows["relation"] != ""), rows["epsilon"])
    exchange = (rows["accountant"] == CLAIMED) & (rows["relation"] == "replace_one")
    allowed = allowed.where(~exchange, 2 * rows["epsilon"])
    return rows.assign(allowed=allowed)
