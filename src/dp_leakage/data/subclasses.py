"""Subclasses: k_sub groups of the records of each class, the units of subclass-level privacy (zhang2020)."""

from collections.abc import Callable

import numpy as np

Partition = Callable[[np.ndarray, np.ndarray, int, int], np.ndarray]


def by_kmeans(x: np.ndarray, y: np.ndarray, k_sub: int, seed: int) -> np.ndarray:
    """Cluster each class's features by k-means, as in zhang2020.

    The clusters depend on the records. The ε of (sub)class-level privacy takes them as given, so what they reveal is
    outside the budget.

    Args:
        x: features (n, …).
        y: int64 (n,), classes from 0.
        k_sub: subclasses of each class, ≥ 1; a class with fewer different records has one for each.
        seed: of the starting points, ≥ 0.

    Returns:
        int64 (n,): class · k_sub + subclass, in 0 … classes · k_sub − 1. A number may occur nowhere.
    """
    import warnings

    from sklearn.cluster import KMeans
    from sklearn.exceptions import ConvergenceWarning

    flat = x.reshape(len(x), -1)
    groups = y.astype(np.int64) * k_sub
    for label in np.unique(y):
        own = np.flatnonzero(y == label)
        with warnings.catch_warnings():  # the warning that equal records give fewer clusters
            warnings.simplefilter("ignore", ConvergenceWarning)
            groups[own] += KMeans(min(k_sub, len(own)), n_init=1, random_state=seed % 2**32).fit_predict(flat[own])
    return groups


def at_random(x: np.ndarray, y: np.ndarray, k_sub: int, seed: int) -> np.ndarray:
    """Assign a random subclass to each record, by a number that does not depend on the other records. Arguments as
    `by_kmeans`.
    """
    return y.astype(np.int64) * k_sub + np.random.default_rng(seed).integers(k_sub, size=len(y))


PARTITIONS: dict[str, Partition] = {"kmeans": by_kmeans, "random": at_random}
