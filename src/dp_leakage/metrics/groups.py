"""Advantage of an attack within each group of records, and its excess over all other records.

The attacker uses one threshold for everybody, chosen on other records than it is judged on (`reached`), as an attacker
who ignores groups does.
"""

from collections.abc import Iterator, Mapping

import numpy as np
import pandas as pd

from dp_leakage.metrics import coins, roc
from dp_leakage.metrics.intervals import Estimate, Influences, crossed
from dp_leakage.metrics.measure import AUC, REACHED, Judge
from dp_leakage.metrics.reached import named_by_best_threshold
from dp_leakage.metrics.rows import row
from dp_leakage.metrics.runs import ALL, by_repeat

FEWEST = 10  # members, and others, that a group has in every repeat; smaller groups are left out
LIMITS = (-2.0, 2.0)  # of a difference of advantages


def measure_groups(frames: Mapping[str, pd.DataFrame], groups: Mapping[str, Mapping[str, np.ndarray]]) -> list[dict]:
    """Return rows of the membership attacks on one cell, for every group with enough members and non-members.

    Args:
        frames: attack → scores as for `measure.measure_membership`, of the same models and records.
        groups: criterion → name of a group → its records, int64.

    Returns:
        For each attack and group, of single repeats and of all: group_advantage, TPR − FPR within the group; and
            group_excess, which subtracts the advantage among all records outside the group, if there are enough. For
            all repeats also group_auc, within the group; and, without an attack, group_records, the group's number of
            records.
    """
    rows: list[dict] = []
    for attack, frame in frames.items():
        (score, record), member = by_repeat(frame, ["score", "record"], ["record"])
        named = named_by_best_threshold(score, member).astype(np.float64)
        for by, group, inside in _large_enough(groups, record[0], member):
            where, own = {"by": by, "group": group}, member[..., inside]
            if attack == next(iter(frames)):
                rows.append(row("group_records", ALL, Estimate(float(inside.sum()), np.nan, np.nan), **where))
            where = {"attack": attack} | where
            rows += _each_and_all("group_advantage", where, REACHED, named[:, inside], own)
            rows.append(row("group_auc", ALL, AUC(score[:, inside], own), **where))
            if _enough(member[..., ~inside]):
                rows += _each_and_all("group_excess", where, _excess_of(inside), named, member)
    return rows


def _excess_of(inside: np.ndarray) -> Judge:
    return lambda named, member: excess(named, member, inside)


def excess(named: np.ndarray, member: np.ndarray, inside: np.ndarray) -> Estimate:
    """Return the advantage within a group minus the advantage among all other records, with a 95 % interval over
    records and repeats.

    The two have no record in common, but all repeats.

    Args:
        named: float (R, n), whether the attacker identifies the record.
        member: bool, (n,) if all repeats have the same members, otherwise (R, n).
        inside: bool (n,), the group.
    """
    own, rest = (_advantage(named[:, side], member[..., side]) for side in (inside, ~inside))
    blocks = tuple(_side_by_side(a, b) for a, b in zip(own.blocks, rest.blocks, strict=True))
    return crossed(Influences(own.value - rest.value, blocks), LIMITS)


def _advantage(named: np.ndarray, member: np.ndarray) -> Influences:
    if member.ndim == 1:
        return roc.gap(named[:, member], named[:, ~member])
    return coins.rate_difference(named, member)


def _side_by_side(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Return the block of a − b, from the blocks (R, n) and (R, m) of two numbers measured on different records."""
    every = a.shape[1] + b.shape[1]
    return np.hstack([a * (every / a.shape[1]), -b * (every / b.shape[1])])


def _large_enough(
    groups: Mapping[str, Mapping[str, np.ndarray]], record: np.ndarray, member: np.ndarray
) -> Iterator[tuple[str, str, np.ndarray]]:
    """Yield each group's criterion, its name, and its records, bool (n,)."""
    for by, named in groups.items():
        for name, rows in named.items():
            inside = np.isin(record, rows)
            if _enough(member[..., inside]):
                yield by, name, inside


def _enough(member: np.ndarray) -> bool:
    """Return whether every repeat has enough members and non-members among these records."""
    members = np.atleast_2d(member).sum(axis=1)
    return bool(min(members.min(), (member.shape[-1] - members).min()) >= FEWEST)


def _each_and_all(
    metric: str, where: Mapping[str, str], judge: Judge, values: np.ndarray, member: np.ndarray
) -> list[dict]:
    """Return rows of each repeat, with fixed members, and of all repeats together."""
    members = np.broadcast_to(member, values.shape)
    alone = [judge(values[r : r + 1], members[r]) for r in range(len(values))]
    rows = [row(metric, str(r), found, **where) for r, found in enumerate(alone)]
    return [*rows, row(metric, ALL, judge(values, member), **where)]
