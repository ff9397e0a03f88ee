"""Canaries of an audit: rows of the training set whose content is chosen at random.

The training set keeps its usual size, so that the mechanism and its accounting equal the cell's. The two data sets of
each random choice are neighbors: with and without a record, or with another record in its row.
"""

from typing import NamedTuple

import numpy as np

from dp_leakage.common.errors import UserError, nearest
from dp_leakage.data.dataset import Dataset

PAIRED = ("natural", "mislabeled")  # a member, or a non-member in its place
KINDS = (*PAIRED, "optimized", "feature", "blank", "gradient")
FAR = 10.0  # length of a feature canary in mean lengths of the records; clipped unless a model is sure of it


class Canaries(NamedTuple):
    """Records to train and audit on.

    Attributes:
        x: float32 (rows, …), the records with the canaries; y: int64 (rows,).
        fixed: int64 rows that every model trains on.
        held, other: int64 (r,) rows; random inclusion decides which of the two fills each place.
        of: int64 (r,), the canary of each of the two, 0 to m − 1. Only a person can have several rows.
        person: int64 (rows,), the owner of each record, with ``held`` and ``other`` a person's of their own; or None.
        first: rows from here on are not records; they stand for nothing, or for a gradient.
    """

    x: np.ndarray
    y: np.ndarray
    fixed: np.ndarray
    held: np.ndarray
    other: np.ndarray
    of: np.ndarray
    person: np.ndarray | None
    first: int


def place(data: Dataset, kind: str, count: int, replaced: bool, seed: int) -> Canaries:
    """Replace ``count`` of the target's members by canaries.

    ``natural``: a member, or a non-member of its class. ``mislabeled``: the same, but both have a wrong label.
    ``optimized``: a vector, or its negative, that has the records' mean length and points in the directions in which
    they vary least, so that the other records hardly move a model's answer about it (ClipBKD; Jagielski, Ullman &
    Oprea 2020, algorithm 2). ``feature``: a long vector, or its negative, along a feature that is zero in all other
    records; it adds coordinates to a step's sum that no other record touches. ``blank``: zeros with one label, or
    zeros with another. ``gradient``: no records; the training puts gradients in their places.

    If owners are known, canaries are people, in place of people with all their records. A ``natural`` or
    ``mislabeled`` one has all records of a member, or of a non-member with about as many, both cut to the smaller
    number; any other has one record.

    Args:
        data: features, labels, roles and perhaps people; the features must be flat, (n, d), for ``feature``.
        kind: one of `KINDS`.
        count: m ≥ 1.
        replaced: the coin decides between the two; otherwise between the first and nothing.
        seed: draws the members that give way, the pairs, and the labels.

    Raises:
        UserError: an unknown kind; too few members, or too few of one class to pair; a feature canary among images.
    """
    if kind not in KINDS:
        raise UserError(f"canary {kind!r} is unknown; {nearest(kind, KINDS)}")
    rng = np.random.default_rng(seed)
    members = data.trainable
    paired = kind in PAIRED
    if data.person is not None:
        pairs = _persons(data, data.person, paired, rng)
    elif paired:
        pairs = [(chosen[None], twin[None]) for chosen, twin in _pairs(data, rng)]
    else:
        pairs = [(chosen[None], chosen[None]) for chosen in rng.permutation(members)]
    if count > len(pairs):
        same = "" if data.person is not None else " of the same classes"
        where = f"that the members and non-members{same} give" if paired else "of the target's members"
        raise UserError(f"an audit asks for {count} {kind} canaries; expected up to {len(pairs)}, the number {where}")
    if kind == "feature" and data.x.ndim != 2:
        raise UserError("canary 'feature' needs flat records, and these are images; use blank or gradient")
    chosen, twins = (np.concatenate(rows) for rows in zip(*pairs[:count], strict=True))
    of = np.arange(count).repeat([len(rows) for rows, _ in pairs[:count]])
    if data.person is None:
        fixed = np.setdiff1d(members, chosen)
    else:
        fixed = members[~np.isin(data.person[members], data.person[chosen])]
    x, y = np.concatenate([data.x[rows] for rows in (fixed, chosen, twins)]), data.y[[*fixed, *chosen, *twins]]
    held = np.arange(len(fixed), len(fixed) + len(chosen))
    other = held + len(chosen)
    person = None
    if data.person is not None:
        own = data.person.max() + 1 + of
        person = np.concatenate([data.person[fixed], own, own])
    match kind:
        case "mislabeled":
            wrong = rng.integers(1, data.n_classes, size=len(held))
            y[held], y[other] = (y[held] + wrong) % data.n_classes, (y[other] + wrong) % data.n_classes
        case "optimized":
            directions = _least(data.x[members], count)
            x[held], x[other] = directions, -directions
            y[held] = rng.integers(data.n_classes, size=count)
            y[other] = y[held]
        case "feature":
            x, y = _with_features(x, y, held, other, data.n_classes, rng)
        case "blank":
            x[held], x[other] = 0, 0
            y[held] = rng.integers(data.n_classes, size=count)
            y[other] = (y[held] + rng.integers(1, data.n_classes, size=count)) % data.n_classes
        case "gradient":
            x[held], x[other] = 0, 0
    if not replaced:
        x[other] = 0
    first = held[0] if kind == "gradient" else len(x) if replaced else other[0]
    return Canaries(x, y, np.arange(len(fixed)), held, other, of, person, int(first))


def _with_features(
    x: np.ndarray, y: np.ndarray, held: np.ndarray, other: np.ndarray, n_classes: int, rng: np.random.Generator
) -> tuple[np.ndarray, np.ndarray]:
    length = FAR * np.linalg.norm(x[: held[0]], axis=1).mean() if held[0] else FAR
    column = x.shape[1] + np.arange(len(held))
    x = np.concatenate([x, np.zeros((len(x), len(held)), dtype=x.dtype)], axis=1)
    x[held], x[other] = 0, 0
    x[held, column], x[other, column] = length, -length
    y[held] = rng.integers(n_classes, size=len(held))
    y[other] = y[held]
    return x, y


def _least(x: np.ndarray, count: int) -> np.ndarray:
    """Return (count, …) vectors of the records' mean length, each along one of the directions of least variance."""
    flat = x.reshape(len(x), -1).astype(np.float64)
    directions = np.linalg.eigh(flat.T @ flat)[1].T  # the smallest first
    chosen = directions[np.arange(count) % len(directions)] * np.linalg.norm(flat, axis=1).mean()
    return chosen.reshape(count, *x.shape[1:]).astype(x.dtype)


def _pairs(data: Dataset, rng: np.random.Generator) -> np.ndarray:
    """Return as many disjoint same-class pairs (member, non-member) as possible, in random order: int64 (pairs, 2)."""
    members, nonmembers = (rng.permutation(rows) for rows in (data.trainable, data.roles["target_nonmembers"]))
    found = [
        np.array(pair)
        for label in range(data.n_classes)
        for pair in zip(members[data.y[members] == label], nonmembers[data.y[nonmembers] == label], strict=False)
    ]
    return rng.permutation(np.array(found, dtype=np.int64).reshape(-1, 2))


def _persons(
    data: Dataset, person: np.ndarray, paired: bool, rng: np.random.Generator
) -> list[tuple[np.ndarray, np.ndarray]]:
    """Return in random order, for each member, its rows and equally many rows that may replace them.

    If ``paired``, the replacements belong to a non-member with about as many records; both are cut to the smaller
    number. Otherwise both are one record of the member.
    """

    def records(rows: np.ndarray) -> list[np.ndarray]:
        return [rng.permutation(rows[person[rows] == one]) for one in rng.permutation(np.unique(person[rows]))]

    members = records(data.trainable)
    if not paired:
        return [(rows[:1], rows[:1]) for rows in members]
    others = records(data.roles["target_nonmembers"])
    count = min(len(members), len(others))
    ordered = (sorted(rows[:count], key=len) for rows in (members, others))
    pairs = [(held[: len(other)], other[: len(held)]) for held, other in zip(*ordered, strict=True)]
    return [pairs[place] for place in rng.permutation(count)]
