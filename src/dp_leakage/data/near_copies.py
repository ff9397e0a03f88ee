"""Records that are nearly another record, such as several scans of one person."""

import numpy as np

ASKED = 1000  # records whose neighbors are looked for, among all
BLOCK = 4096  # records that they are compared with at once: 32 MiB in float64
DIRECTIONS = 64  # random ones that stand for more features (Johnson & Lindenstrauss 1984)
NEAR, FAR = 20, 100  # neighbors between which the density around a record is measured
UNLIKELY = 0.001  # a chance so small that no neighbor is so near
FEWEST = 300  # records below which nothing is said


def share_of_near_copies(x: np.ndarray, seed: int = 0) -> float:
    """The share of records whose nearest other record is much nearer than the density of records there explains.

    Args:
        x: (n, …) features; columns count in units of their own spread.
        seed: of the records that are asked about and of the directions.

    Where records are spread evenly in m dimensions around one, (d₁/d₂₀)^m is the smallest of 20 uniform numbers over
    the largest, so it is below t with a chance of 1 − (1 − t)¹⁹ (the distances to the nearest and the 20th neighbor).
    m is the median over the records of log 5/log(d₁₀₀/d₂₀) (Levina & Bickel 2004). In a table with columns of numbers,
    those of categories are left out: the few records that agree in all of them would be near for that alone. Equal
    records do not count: they are found by `splits.duplicates`. Time grows with n: 8 s for 60,000 × 784 on a busy core.
    """
    n = len(x)
    if n < FEWEST:
        return 0.0
    if x.ndim == 2:
        x = _without_categories(x)
    rng = np.random.default_rng(seed)
    asked = np.sort(rng.permutation(n)[:ASKED])
    points = _directions(x.reshape(n, -1), rng)
    squares = (points**2).sum(axis=1)
    nearest = np.full((len(asked), FAR), np.inf)
    for start in range(0, n, BLOCK):
        block = slice(start, start + BLOCK)
        apart = squares[asked, None] + squares[block] - 2 * points[asked] @ points[block].T
        # Rounding leaves about 1e-15 of the squares between equal records, which do not count.
        apart[apart <= 1e-12 * (squares[asked, None] + squares[block])] = np.inf
        nearest = np.partition(np.concatenate([nearest, apart], axis=1), FAR - 1, axis=1)[:, :FAR]
    first, near, far = np.sqrt(np.sort(nearest, axis=1))[:, [0, NEAR - 1, FAR - 1]].T
    known = np.isfinite(far) & (far > near)
    if not known.any():
        return 0.0
    dimensions = float(np.median(np.log(FAR / NEAR) / np.log(far[known] / near[known])))
    chance = -np.expm1((NEAR - 1) * np.log1p(-np.minimum((first[known] / near[known]) ** dimensions, 1 - 1e-12)))
    return float((chance < UNLIKELY).sum() / len(asked))


def _without_categories(x: np.ndarray) -> np.ndarray:
    """(n, d) without columns of at most `NEAR` different values, unless all are such."""
    ordered = np.sort(x, axis=0)
    numbers = (ordered[1:] != ordered[:-1]).sum(axis=0) >= NEAR
    return x[:, numbers] if numbers.any() else x


def _directions(x: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """float64 (n, d): features centered, in units of their spread, or few random combinations of many."""
    spread = x.std(axis=0)
    scale = np.where(spread > 0, 1 / np.where(spread > 0, spread, 1), 0).astype(np.float64)
    if x.shape[1] <= DIRECTIONS:
        return np.asarray((x - x.mean(axis=0, dtype=np.float64)) * scale)
    mixed = rng.normal(size=(x.shape[1], DIRECTIONS)) * scale[:, None]
    center = x.mean(axis=0, dtype=np.float64) @ mixed
    return np.concatenate([x[start : start + BLOCK] @ mixed for start in range(0, len(x), BLOCK)]) - center
