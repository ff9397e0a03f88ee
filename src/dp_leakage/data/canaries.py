"""Canaries of an audit: places in the training set at which a coin puts the one or the other of two records.

Either way the training set has its usual size, so that the mechanism and its accounting are the cell's own; and the two
data sets that a coin decides between are neighbours in the sense of ``replace_one``.
"""

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np

from dp_leakage.data.dataset import Dataset
from dp_leakage.errors import UserError

KINDS = ("natural", "mislabelled", "gradient")
FAR = 10.0  # length of a gradient canary, in mean lengths of the records: clipped for sure


class Canaries(NamedTuple):
    """Records to train and audit on.

    Attributes:
        x: float32 (rows, …), the records with the canaries; y: int64 (rows,).
        fixed: int64 rows that every model trains on.
        held, other: int64 (m,) rows: a coin decides which of the two takes a place.
        kind: (m,) the kind of each pair.
    """

    x: np.ndarray
    y: np.ndarray
    fixed: np.ndarray
    held: np.ndarray
    other: np.ndarray
    kind: np.ndarray


def place(data: Dataset, counts: Mapping[str, int], seed: int) -> Canaries:
    """Pairs of canaries in place of as many of the target's members.

    Both records of a pair have one label, so that they are in one class. ``natural``: a member and a non-member of its
    class. ``mislabelled``: the same, both with a label that is wrong for them. ``gradient``: a long vector along a
    feature of its own that is zero in all other records, and its negative: what it adds to a step's sum are
    coordinates that no other record touches.

    Args:
        data: features, labels and roles; the features must be flat, (n, d), for ``gradient``.
        counts: pairs of each kind, one of `KINDS`.
        seed: draws who is paired, the wrong labels and the labels of gradient canaries.

    Raises:
        UserError: too few members and non-members of one class to pair.
    """
    rng = np.random.default_rng(seed)
    pairs = _pairs(data, rng)
    kind = np.repeat(list(counts), list(counts.values()))
    if len(kind) > len(pairs):
        raise UserError(
            f"key 'audit.canaries' asks for {len(kind)} pairs of records; valid is up to {len(pairs)}, which the "
            "members and non-members of the same classes give"
        )
    held, other = pairs[: len(kind)].T
    fixed = np.setdiff1d(data.trainable, held)
    rows = np.concatenate([fixed, held, other])
    x, y = data.x[rows], data.y[rows].copy()
    places = np.arange(len(fixed), len(fixed) + len(kind))
    twins = places + len(kind)
    wrong, own = kind == "mislabelled", kind == "gradient"
    y[places[wrong]] = (y[places[wrong]] + rng.integers(1, data.n_classes, size=wrong.sum())) % data.n_classes
    y[places[own]] = rng.integers(data.n_classes, size=own.sum())
    y[twins] = y[places]
    if own.any():
        x = np.concatenate([x, np.zeros((len(x), own.sum()), dtype=x.dtype)], axis=1)
        x[places[own]], x[twins[own]] = 0, 0
        column = data.x.shape[1] + np.arange(own.sum())
        length = FAR * np.linalg.norm(data.x[fixed], axis=1).mean()
        x[places[own], column], x[twins[own], column] = length, -length
    return Canaries(x, y, np.arange(len(fixed)), places, twins, kind)


def _pairs(data: Dataset, rng: np.random.Generator) -> np.ndarray:
    """All (member, non-member) of one class that can be had at once, in random order: int64 (pairs, 2)."""
    members, outsiders = (rng.permutation(rows) for rows in (data.trainable, data.roles["target_nonmembers"]))
    found = [
        np.array(pair)
        for label in range(data.n_classes)
        for pair in zip(members[data.y[members] == label], outsiders[data.y[outsiders] == label], strict=False)
    ]
    return rng.permutation(np.array(found, dtype=np.int64).reshape(-1, 2))
