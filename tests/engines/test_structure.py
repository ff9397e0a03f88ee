"""What models give away by their structure, against brute force on planted examples."""

from collections import defaultdict

import numpy as np
import pytest
from lightgbm import LGBMClassifier
from sklearn.datasets import load_iris
from sklearn.ensemble import GradientBoostingClassifier, RandomForestClassifier
from sklearn.gaussian_process import GaussianProcessClassifier
from sklearn.kernel_approximation import Nystroem
from sklearn.linear_model import LogisticRegression
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC
from sklearn.tree import DecisionTreeClassifier, export_text

from dp_leakage.data.dataset import Dataset
from dp_leakage.engines import estimator
from dp_leakage.engines.answers import Answers
from dp_leakage.engines.structure import (
    Anonymity,
    alike,
    anonymity,
    leaves_of,
    of_trees,
    parameters_of,
    stored_in,
    stored_rows,
)
from dp_leakage.metrics.structure import measure_structure

X, Y = load_iris(return_X_y=True)
X = X.astype(np.float32)


def brute(cells, y, small=10):
    """The same numbers, record by record."""
    groups = defaultdict(list)
    for cell, label in zip(cells, y, strict=True):
        groups[cell].append(label)
    mine = [groups[cell] for cell in cells]
    n = len(mine)
    return Anonymity(
        min(map(len, groups.values())),
        sum(len(group) < small for group in mine) / n,
        sum(len(set(group)) == 1 for group in mine) / n,
    )


@pytest.mark.parametrize("seed", range(20))
def test_cells_are_counted_as_by_hand(seed):
    rng = np.random.default_rng(seed)
    cells, y = rng.integers(-5, rng.integers(2, 30), 80), rng.integers(0, 2, 80)
    assert anonymity(cells, y) == pytest.approx(brute(cells.tolist(), y.tolist()))


def test_the_planted_record_is_seen():
    """Nine records of one class alone, one record by itself, the rest in a mixed cell."""
    cells, y = np.array([0] * 9 + [1] + [2] * 30), np.array([1] * 9 + [0] + [0, 1] * 15)
    assert anonymity(cells, y) == Anonymity(1.0, 0.25, 0.25)


def test_cells_of_a_tree_are_its_leaves_as_its_rules_tell_them():
    tree = DecisionTreeClassifier(max_depth=3, random_state=0).fit(X, Y)
    left, right, feature, cut = (
        tree.tree_.children_left, tree.tree_.children_right, tree.tree_.feature, tree.tree_.threshold,
    )  # fmt: skip

    def walk(record, node=0):
        while left[node] != -1:
            node = left[node] if record[feature[node]] <= cut[node] else right[node]
        return node

    leaves = leaves_of(tree, X)
    np.testing.assert_array_equal(leaves[:, 0], [walk(record) for record in X])
    assert of_trees(leaves, Y) == pytest.approx(brute(leaves[:, 0].tolist(), Y.tolist()))
    # Leaves of the same probabilities answer alike.
    said = alike(np.log(np.maximum(tree.predict_proba(X), 1e-7)))
    assert len(set(said)) == len({tuple(row) for row in tree.predict_proba(X).tolist()})


def test_parameters_are_those_that_the_rules_print():
    tree = DecisionTreeClassifier(max_depth=4, random_state=0).fit(X, Y)
    text = export_text(tree)
    splits, leaves = text.count("<="), text.count("class:")
    assert parameters_of(tree) == 2 * splits + 2 * leaves  # three classes: two probabilities a leaf
    forest = RandomForestClassifier(5, max_depth=3, random_state=0).fit(X, Y)
    assert parameters_of(forest) == sum(parameters_of(one) for one in forest.estimators_)
    assert leaves_of(forest, X).shape == (150, 5)
    boosted = GradientBoostingClassifier(n_estimators=4, max_depth=2, random_state=0).fit(X, Y)
    texts = [export_text(one) for one in boosted.estimators_.ravel()]
    assert parameters_of(boosted) == sum(2 * text.count("<=") + text.count("value:") for text in texts)
    assert parameters_of(LogisticRegression().fit(X, Y)) == 3 * 4 + 3
    assert parameters_of(make_pipeline(StandardScaler(), LogisticRegression()).fit(X, Y)) == 15
    assert parameters_of(GaussianNB().fit(X, Y)) is None
    assert leaves_of(LogisticRegression().fit(X, Y), X) is None


def test_trees_of_lightgbm_are_counted_as_its_dump_has_them():
    lightgbm = pytest.importorskip("lightgbm")
    model = lightgbm.LGBMClassifier(n_estimators=3, num_leaves=4, min_child_samples=5, verbose=-1).fit(X, Y)
    trees = [one["tree_structure"] for one in model.booster_.dump_model()["tree_info"]]

    def leaves(node):
        return 1 if "leaf_value" in node else leaves(node["left_child"]) + leaves(node["right_child"])

    total = sum(map(leaves, trees))
    assert parameters_of(model) == 2 * (total - len(trees)) + total
    assert leaves_of(model, X).shape == (150, len(trees))


def test_a_tree_in_a_pipeline_falls_into_the_leaves_of_its_scaled_records():
    model = make_pipeline(StandardScaler(), DecisionTreeClassifier(max_depth=2, random_state=0)).fit(X, Y)
    scaled = model.steps[0][1].transform(X).astype(np.float32)
    np.testing.assert_array_equal(leaves_of(model, X)[:, 0], model.steps[1][1].apply(scaled))


def test_rows_are_those_of_each_model_and_the_worst_of_all():
    data = Dataset(X, Y.astype(np.int64), {}, np.array([], dtype=np.int64))
    how = {"architecture": {"name": "sklearn.tree:DecisionTreeClassifier", "max_depth": 3}, "structure": True}
    rows = [np.arange(0, 150, 2), np.arange(0, 150, 3)]
    said = estimator.answers(how, data, rows, [1, 2])
    assert Answers.from_tensors(said.tensors()).parameters is not None
    assert estimator.answers(how | {"structure": False}, data, rows, [1, 2]).leaves is None
    found = {(r["metric"], r.get("cells", ""), r["repeat"]): r["value"] for r in measure_structure(said, data.y)}
    for k, own in enumerate(rows):
        tree = DecisionTreeClassifier(max_depth=3, random_state=1 + k).fit(X[own], Y[own])
        by_hand = brute(tree.apply(X[own]).tolist(), Y[own].tolist())
        assert found["smallest_cell", "leaves", str(k)] == by_hand.smallest
        assert found["class_disclosed", "leaves", str(k)] == pytest.approx(by_hand.disclosed)
        answered = [tuple(row) for row in tree.predict_proba(X[own]).tolist()]
        assert found["smallest_cell", "answers", str(k)] == brute(answered, Y[own].tolist()).smallest
        assert found["residual_freedom", "", str(k)] == len(own) - parameters_of(tree)
    for metric, cells, worst in (
        ("smallest_cell", "leaves", min),
        ("residual_freedom", "", min),
        ("in_small_cells", "answers", max),
    ):
        both = [found[metric, cells, str(k)] for k in (0, 1)]
        assert found[metric, cells, "all"] == worst(both)


class Remembered:
    """A classifier of the user's own that keeps some records, in a list in an object in a mapping."""

    def fit(self, x, y):
        self.kept = {"some": type("Kept", (), {})()}
        self.kept["some"].rows = [x[:5].copy()]
        return self


# Model → the number of its training records that it stores; None for what scikit-learn's own attribute says.
STORING = {
    "neighbors": (KNeighborsClassifier(3), 75),
    "scaled neighbors": (make_pipeline(StandardScaler(), KNeighborsClassifier(3)), 75),
    "Gaussian process": (GaussianProcessClassifier(), 75),
    "landmarks before a linear model": (
        make_pipeline(Nystroem(n_components=20, random_state=0), LogisticRegression()),
        20,
    ),
    "support vectors": (SVC(), None),
    "a class of one's own": (Remembered(), 5),
    "tree": (DecisionTreeClassifier(random_state=0), 0),
    "forest": (RandomForestClassifier(5, random_state=0), 0),
    "boosted": (GradientBoostingClassifier(n_estimators=3, random_state=0), 0),
    "linear": (LogisticRegression(max_iter=500), 0),
    "naive Bayes": (GaussianNB(), 0),
    "LightGBM": (LGBMClassifier(n_estimators=3, verbose=-1), 0),
}


@pytest.mark.parametrize("name", STORING)
def test_records_that_a_model_stores_are_counted_as_the_library_says(name):
    model, count = STORING[name]
    x, y = X[::2] + np.random.default_rng(0).normal(0, 1e-3, X[::2].shape), Y[::2]  # so that no two records are equal
    model.fit(x, y)
    assert stored_in(model, x) == (len(model.support_) if count is None else count)


def test_coefficients_that_are_zero_are_not_a_record_of_zeros():
    x = np.concatenate([np.zeros((1, 4)), X])
    assert stored_rows(iter([np.zeros((3, 4))]), x).sum() == 0
    assert stored_rows(iter([np.concatenate([X[:2], [[9.0, 9, 9, 9]]])]), X).sum() == 0  # a table of other rows too


def test_rows_say_how_many_records_the_worst_model_stores():
    data = Dataset(X, Y.astype(np.int64), {}, np.array([], dtype=np.int64))
    how = {"architecture": {"name": "sklearn.neighbors:KNeighborsClassifier"}, "structure": True}
    said = estimator.answers(how, data, [np.arange(0, 150, 2), np.arange(0, 150, 3)], [1, 2])
    rows = measure_structure(Answers.from_tensors(said.tensors()), data.y)
    found = {row["repeat"]: row["value"] for row in rows if row["metric"] == "stored_records"}
    assert found == {"0": 75, "1": 50, "all": 75}
