"""Disclosure by the structure of a model, without any attack: small cells, cells of one class, too many parameters,
and training records that the model stores.

Statistical offices check tables and regressions in this way before they release them; the checks apply to models of
tables as well (Smith, Preen, Albashir, Rahat et al. 2025, "Safe machine learning model release from trusted research
environments: the SACRO-ML package", arXiv 2502.09396). The results are exact counts, not estimates.
"""

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

import numpy as np

SMALL = 10  # training records below which a cell is small, as in the tables of statistical offices


class Anonymity(NamedTuple):
    """k-anonymity of records in a set of cells.

    Attributes:
        smallest: records in the smallest cell (k of k-anonymity).
        in_small: the share of the records that are in a cell of fewer than `SMALL`.
        disclosed: share of the records in cells of one class. Anyone who knows that a person was in training, and the
            model's output, knows that person's class.
    """

    smallest: float
    in_small: float
    disclosed: float


def anonymity(cells: np.ndarray, y: np.ndarray) -> Anonymity:
    """Compute the k-anonymity of n ≥ 1 training records from their cells int64 (n,) and classes int64 (n,)."""
    cell, size = np.unique(cells, return_inverse=True, return_counts=True)[1:]
    cell = cell.reshape(-1)
    classes = np.bincount(np.unique(np.stack([cell, y], axis=1), axis=0)[:, 0])
    return Anonymity(float(size.min()), float((size[cell] < SMALL).mean()), float((classes[cell] == 1).mean()))


def of_trees(leaves: np.ndarray, y: np.ndarray) -> Anonymity:
    """Compute the k-anonymity of n training records in the leaves of T trees, (n, T).

    The result has the smallest leaf of all trees, and the largest shares of all trees.
    """
    each = np.array([anonymity(tree, y) for tree in leaves.T])
    return Anonymity(float(each[:, 0].min()), float(each[:, 1].max()), float(each[:, 2].max()))


def alike(log_probability: np.ndarray) -> np.ndarray:
    """Group n records with equal outputs, (n, C), to the last digit: int64 (n,)."""
    return np.unique(log_probability, axis=0, return_inverse=True)[1].reshape(-1).astype(np.int64)


def parameters_of(estimator: Any) -> int | None:
    """Count a trained model's fitted numbers; None if it is neither made of trees nor linear.

    A tree has two for each split, feature and threshold, and for each leaf its value: one class fewer than there are,
    or one number where trees add up. A linear model has its coefficients and intercepts.
    """
    estimator = _last(estimator)
    if hasattr(estimator, "booster_"):
        nodes = estimator.booster_.trees_to_dataframe()
        leaves = int(nodes["split_feature"].isna().sum())
        return 2 * (len(nodes) - leaves) + leaves
    if trees := _trees(estimator):
        return sum(_of_tree(tree) for tree in trees)
    if hasattr(estimator, "coef_"):
        return int(np.size(estimator.coef_) + np.size(estimator.intercept_))
    return None


def leaves_of(estimator: Any, x: np.ndarray) -> np.ndarray | None:
    """Return the leaf of each tree for each record, (n, d): int64 (n, T); None if the model is not made of trees."""
    for step in getattr(estimator, "steps", [])[:-1]:
        x = step[1].transform(x)
    estimator = _last(estimator)
    if hasattr(estimator, "booster_"):
        return np.asarray(estimator.predict(x, pred_leaf=True), np.int64).reshape(len(x), -1)
    if not (trees := _trees(estimator)):
        return None
    return np.stack([np.asarray(tree.apply(x.astype(np.float32)), np.int64) for tree in trees], axis=1)


def stored_in(estimator: Any, x: np.ndarray) -> int:
    """Count the training records (n, d) that a trained model stores as they are, as support vectors or neighbors do.

    Every table in the model with as many columns as the records have is searched, whatever the model's class: also in
    each step of a pipeline, for the records as that step gets them.
    """
    steps = [step for _, step in estimator.steps] if hasattr(estimator, "steps") else [estimator]
    stored = np.zeros(len(x), bool)
    for step in steps:
        stored |= stored_rows(_tables(step, set()), x)
        x = np.asarray(step.transform(x)) if step is not steps[-1] else x
    return int(stored.sum())


def stored_rows(tables: Iterator[np.ndarray], x: np.ndarray) -> np.ndarray:
    """Return which of n records (n, d) stand in a table of nothing but such records: bool (n,).

    Tables of one row, or of equal rows, do not count: one vector of coefficients may be zero, as a record may be.
    """
    found = np.zeros(len(x), bool)
    places: dict[bytes, list[int]] = {}
    for row, record in enumerate(np.ascontiguousarray(x, np.float32)):
        places.setdefault(record.tobytes(), []).append(row)
    for table in tables:
        if table.ndim != 2 or table.shape[1] != x.shape[1] or table.dtype.kind not in "fiub":
            continue
        rows = {record.tobytes() for record in np.ascontiguousarray(table, np.float32)}
        if len(rows) > 1 and rows <= places.keys():
            found[[row for record in rows for row in places[record]]] = True
    return found


def _tables(thing: Any, seen: set[int]) -> Iterator[np.ndarray]:
    """Return every array in a trained model, in the objects and collections that it consists of."""
    if id(thing) in seen:
        return
    seen.add(id(thing))
    if isinstance(thing, np.ndarray) and thing.dtype != object:
        yield thing
    elif hasattr(thing, "toarray") and hasattr(thing, "nnz"):  # a sparse matrix
        yield thing.toarray()
    elif isinstance(thing, Mapping):
        for value in thing.values():
            yield from _tables(value, seen)
    elif isinstance(thing, list | tuple | set) or (isinstance(thing, np.ndarray) and thing.size):
        for value in np.ravel(thing).tolist() if isinstance(thing, np.ndarray) else thing:
            yield from _tables(value, seen)
    elif hasattr(thing, "__dict__") and not isinstance(thing, type):
        yield from _tables(vars(thing), seen)


def _last(estimator: Any) -> Any:
    """Return the model at the end of a pipeline."""
    return estimator.steps[-1][1] if hasattr(estimator, "steps") else estimator


def _trees(estimator: Any) -> list[Any]:
    """Return the scikit-learn trees of a model."""
    members = [estimator] if hasattr(estimator, "tree_") else np.ravel(getattr(estimator, "estimators_", [])).tolist()
    return members if all(hasattr(one, "tree_") for one in members) else []


def _of_tree(tree: Any) -> int:
    leaves = int((tree.tree_.children_left == tree.tree_.children_right).sum())
    values = tree.tree_.n_classes[0] - 1 if hasattr(tree, "classes_") else 1
    return of_tree_counts(tree.tree_.node_count, leaves, values + 1)


def of_tree_counts(nodes: int, leaves: int, told: int) -> int:
    """Count the fitted numbers of trees with this many nodes, leaves, and numbers stored per leaf (e.g. one per
    class).
    """
    return int(2 * (nodes - leaves) + leaves * max(told - 1, 1))


class Structure(NamedTuple):
    """What the structure of one trained model shows of its n training records.

    Attributes:
        y: int64 (n,), their classes.
        parameters: number of fitted parameters; None if it is not known.
        leaves: int64 (n, T), the leaf of each record in each of T trees; None if the model is not made of trees.
        stored: number of the records that the model stores as they are.
    """

    y: np.ndarray
    parameters: int | None
    leaves: np.ndarray | None
    stored: int


def known(models: list[Structure]) -> dict[str, np.ndarray]:
    """Return the structure fields of `answers.Answers` for all models."""
    found = {}
    if models:
        found["stored"] = np.array([model.stored for model in models], np.int64)
    if models and all(model.parameters is not None for model in models):
        found["parameters"] = np.array([model.parameters for model in models], np.int64)
    if models and all(model.leaves is not None for model in models):
        found["leaves"] = np.array([of_trees(model.leaves, model.y) for model in models if model.leaves is not None])
    return found
