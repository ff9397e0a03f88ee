"""Near-copies: records that are almost equal to another one, e.g. several scans of one person."""

from typing import NamedTuple

import numpy as np
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components

from dp_leakage.data.raw import Raw

BLOCK = 512  # records whose neighbors are looked for at once: 120 MB for 60,000 records
DIRECTIONS = 64  # random ones that stand for more features (Johnson & Lindenstrauss 1984)
NEAR, FAR = 20, 100  # neighbors between which the density around a record is measured

TOGETHER = "together"  # the value of a source's key ``copies``
EXPECTED = 0.05  # links at most that chance makes in all, so that of 20 data sets without copies one has a group


class Copies(NamedTuple):
    """Near-copies among some records.

    Attributes:
        records: number of records with a copy.
        groups: number of groups that they form.
        among: number of records.
    """

    records: int
    groups: int
    among: int


def together(raw: Raw) -> Raw:
    """Return the records with near-copies assigned to one person, and a note on their number."""
    group = copy_groups(raw.x)
    found = counted(group)
    note = (
        f"{found.records:,} of {found.among:,} records are copies of others, or nearly so. Their {found.groups:,} "
        "groups count as one person each, with one coin (the source's key copies: together)."
    )
    return raw._replace(person=group, notes=(*raw.notes, note))


def counted(group: np.ndarray) -> Copies:
    """Count the records that have a copy, from int64 (n,) group numbers."""
    sizes = np.bincount(group)
    return Copies(int(sizes[sizes > 1].sum()), int((sizes > 1).sum()), len(group))


def copy_groups(x: np.ndarray, seed: int = 0) -> np.ndarray:
    """Group near-copies: int64 (n,) from 0 on, in the order of the groups' first records. A record without a copy is a
    group of its own.

    Two records are linked if they are equal, or if they are so near on both sides that chance has it for less than .05
    of n records. Where records are spread evenly in m dimensions around one, (d/d₂₀)^m is uniform for those of its 20
    nearest that are nearer than the last, so that for the nearest it is below t with a chance of 1 − (1 − t)¹⁹. m is
    the median over the records of log 5/log(d₁₀₀/d₂₀) (Levina & Bickel 2004). Below 300 records smaller ranks stand for
    20 and 100. More than 20 equal records are usual for the data, not copies. Groups are connected components. A copy
    that is not found may still exist. Time grows with n².

    Args:
        x: (n, …) features; columns count in units of their own spread. In a table with columns of numbers, columns of
            categories are left out: the few records that agree in all of them would be near for that alone.
        seed: of the directions.
    """
    links = np.concatenate([_equal(x), _near(x, seed)])
    graph = coo_array((np.ones(len(links)), tuple(links.T)), shape=(len(x), len(x)))
    group = connected_components(graph, directed=False)[1]
    _, first, group = np.unique(group, return_index=True, return_inverse=True)
    return np.argsort(np.argsort(first))[group.reshape(-1)]


def _equal(x: np.ndarray) -> np.ndarray:
    """Return pairs, (k, 2), of equal records: each record with the first of at most `NEAR` equal ones."""
    rows = np.ascontiguousarray(x.reshape(len(x), -1) + 0)  # + 0 makes -0.0 and 0.0 the same bytes
    keys = rows.view(np.dtype((np.void, rows.dtype.itemsize * rows.shape[1]))).reshape(-1)
    _, first, place, count = np.unique(keys, return_index=True, return_inverse=True, return_counts=True)
    place = place.reshape(-1)
    copies = np.flatnonzero((count[place] <= NEAR) & (first[place] != np.arange(len(x))))
    return np.stack([first[place[copies]], copies], axis=1)


def _near(x: np.ndarray, seed: int) -> np.ndarray:
    """Return pairs, (k, 2), of records that are nearer than chance explains, on both sides."""
    n = len(x)
    far = min(FAR, n // 3)
    near = min(NEAR, far // 3)
    if near < 2:
        return np.empty((0, 2), np.int64)
    x = _without_categories(x) if x.ndim == 2 else x
    points = directions(x.reshape(n, -1), np.random.default_rng(seed))
    fast = points.astype(np.float32)
    squares = (fast**2).sum(axis=1)
    ends, pairs, apart = np.empty((n, 2)), [], []
    for start in range(0, n, BLOCK):
        rows = np.arange(start, min(start + BLOCK, n))
        away = squares[rows, None] + squares - 2 * fast[rows] @ fast.T
        away[rows - start, rows] = np.inf
        ends[rows] = np.partition(away, (near - 1, far - 1), axis=1)[:, [near - 1, far - 1]]
        i, j = np.nonzero(away < ends[rows, :1])
        pairs.append(np.stack([rows[i], j], axis=1))
        apart.append(np.sqrt(((points[rows[i]] - points[j]) ** 2).sum(axis=1)))
    ends, found, distance = np.sqrt(np.maximum(ends, 0.0)), np.concatenate(pairs), np.concatenate(apart)
    known = (ends[:, 1] > ends[:, 0]) & (ends[:, 0] > 0)
    if not known.any():
        return np.empty((0, 2), np.int64)
    dimensions = float(np.median(np.log(far / near) / np.log(ends[known, 1] / ends[known, 0])))
    ratio = np.minimum(distance / ends[found[:, 0], 0], 1.0)
    chance = -np.expm1((near - 1) * np.log1p(-np.minimum(ratio**dimensions, 1 - 1e-12)))
    close = found[(chance < EXPECTED / n) & known[found[:, 0]]]
    both = {(int(i), int(j)) for i, j in close}
    return np.array([(i, j) for i, j in close.tolist() if i < j and (j, i) in both], np.int64).reshape(-1, 2)


def _without_categories(x: np.ndarray) -> np.ndarray:
    """Return (n, d) without columns of at most `NEAR` different values, unless all columns are of this kind."""
    ordered = np.sort(x, axis=0)
    numbers = (ordered[1:] != ordered[:-1]).sum(axis=0) >= NEAR
    return x[:, numbers] if numbers.any() else x


def directions(x: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Return float64 (n, d): centered features in units of their spread, or `DIRECTIONS` random combinations if
    there are more.
    """
    spread = x.std(axis=0)
    scale = np.where(spread > 0, 1 / np.where(spread > 0, spread, 1), 0).astype(np.float64)
    center = x.mean(axis=0, dtype=np.float64)
    if x.shape[1] <= DIRECTIONS:
        return np.asarray((x - center) * scale)
    mixed = rng.normal(size=(x.shape[1], DIRECTIONS)) * scale[:, None]
    parts = [x[start : start + BLOCK] @ mixed for start in range(0, len(x), BLOCK)]
    return np.concatenate(parts) - center @ mixed
