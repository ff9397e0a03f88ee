"""The structure of models in ONNX files, against that of the models from which they were written."""

import numpy as np
import pytest
from lightgbm import LGBMClassifier
from onnx import helper
from onnxruntime import InferenceSession
from skl2onnx import to_onnx
from sklearn.datasets import load_iris
from sklearn.ensemble import ExtraTreesClassifier, GradientBoostingClassifier, RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.neighbors import KNeighborsClassifier
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC
from sklearn.tree import DecisionTreeClassifier

from dp_leakage.data.dataset import Dataset
from dp_leakage.engines import onnx
from dp_leakage.engines.onnx_structure import is_read, structure_of
from dp_leakage.engines.structure import leaves_of, of_trees, parameters_of, stored_in
from dp_leakage.metrics.structure import measure_structure

X, Y = load_iris(return_X_y=True)
X = X.astype(np.float32)
SEEN = np.arange(0, 150, 2)
MODELS = {
    "tree": DecisionTreeClassifier(max_depth=4, random_state=0),
    "forest": RandomForestClassifier(7, max_depth=3, random_state=0),
    "extra trees": ExtraTreesClassifier(5, max_depth=3, random_state=0),
    "boosted": GradientBoostingClassifier(n_estimators=4, max_depth=2, random_state=0),
    "scaled tree": make_pipeline(StandardScaler(), DecisionTreeClassifier(max_depth=3, random_state=0)),
    "linear": LogisticRegression(max_iter=500),
    "scaled linear": make_pipeline(StandardScaler(), LogisticRegression()),
}


def saved(model, path, y=Y):
    model.fit(X[SEEN], y[SEEN])
    final = model.steps[-1][1] if hasattr(model, "steps") else model
    path.write_bytes(to_onnx(model, X[:1], options={id(final): {"zipmap": False}}).SerializeToString())
    return path


@pytest.mark.parametrize("classes", [2, 3])
@pytest.mark.parametrize("name", MODELS)
def test_a_file_has_the_structure_of_the_model_that_was_written_to_it(name, classes, tmp_path):
    model, y = MODELS[name], np.minimum(Y, classes - 1)
    path = saved(model, tmp_path / "model.onnx", y)
    assert is_read(path)
    _, parameters, leaves, stored = structure_of(path, X[SEEN], y[SEEN])
    assert parameters == parameters_of(model)
    assert stored == 0
    expected = leaves_of(model, X[SEEN])
    if expected is None:
        assert leaves is None
        return
    assert leaves.shape == expected.shape
    for own, other in zip(leaves.T, expected.T, strict=True):  # leaves have other numbers, but the same records
        assert (
            len(set(own.tolist()))
            == len(set(other.tolist()))
            == len(set(zip(own.tolist(), other.tolist(), strict=True)))
        )
    assert of_trees(leaves, y[SEEN]) == of_trees(expected, y[SEEN])


def written(booster, path, features):
    """The trees of LightGBM as a converter writes them: two-way splits by ≤, and a number for each leaf."""
    own = {name: [] for name in ("treeids", "nodeids", "modes", "featureids", "values", "truenodeids", "falsenodeids")}
    told = {name: [] for name in ("treeids", "nodeids", "ids", "weights")}

    def add(tree, node):
        at = own["treeids"].count(tree)
        leaf = "leaf_value" in node
        given = (
            tree,
            at,
            *(("LEAF", 0, 0.0) if leaf else ("BRANCH_LEQ", node["split_feature"], node["threshold"])),
            0,
            0,
        )
        for values, value in zip(own.values(), given, strict=True):
            values.append(value)
        if leaf:
            for values, value in zip(told.values(), (tree, at, 0, node["leaf_value"]), strict=True):
                values.append(value)
            return at
        place = len(own["treeids"]) - 1
        for side, below in (("truenodeids", "left_child"), ("falsenodeids", "right_child")):
            own[side][place] = add(tree, node[below])
        return at

    for tree, found in enumerate(booster.dump_model()["tree_info"]):
        add(tree, found["tree_structure"])
    attributes = {f"nodes_{name}": values for name, values in own.items()}
    attributes |= {f"target_{name}": values for name, values in told.items()}
    node = helper.make_node("TreeEnsembleRegressor", ["x"], ["y"], domain="ai.onnx.ml", n_targets=1, **attributes)
    shapes = [helper.make_tensor_value_info(*of) for of in (("x", 1, [None, features]), ("y", 1, [None, 1]))]
    opsets = [helper.make_opsetid("ai.onnx.ml", 3), helper.make_opsetid("", 17)]
    graph = helper.make_graph([node], "trees", shapes[:1], shapes[1:])
    path.write_bytes(helper.make_model(graph, opset_imports=opsets, ir_version=8).SerializeToString())
    return path


def test_the_leaves_of_boosted_trees_are_those_that_their_own_library_names(tmp_path):
    """LightGBM's trees, whose file answers in onnxruntime as they do."""
    y = (Y == 1).astype(int)
    model = LGBMClassifier(n_estimators=2, num_leaves=6, min_child_samples=3, verbose=-1, n_jobs=1).fit(X, y)
    path = written(model.booster_, tmp_path / "model.onnx", X.shape[1])
    (said,) = InferenceSession(path, providers=["CPUExecutionProvider"]).run(None, {"x": X})
    np.testing.assert_allclose(said[:, 0], model.booster_.predict(X, raw_score=True), rtol=1e-5, atol=1e-6)
    _, parameters, leaves, _ = structure_of(path, X, y)
    assert parameters == parameters_of(model)
    expected = leaves_of(model, X)
    assert leaves.shape == expected.shape == (150, 2)
    for own, other in zip(leaves.T, expected.T, strict=True):
        pairs = set(zip(own.tolist(), other.tolist(), strict=True))
        assert len(pairs) == len(set(own.tolist())) == len(set(other.tolist())) == 6
    assert of_trees(leaves, y) == of_trees(expected, y)


def test_the_engine_says_it_of_the_training_records_if_asked(tmp_path):
    path = saved(MODELS["tree"], tmp_path / "model.onnx")
    data = Dataset(X, Y.astype(np.int64), {}, np.array([], dtype=np.int64))
    how = {"architecture": {"name": str(path)}, "structure": True}
    rows = measure_structure(onnx.answers(how, data, [SEEN], [0]), data.y)
    found = {(row["metric"], row.get("cells", "")): row["value"] for row in rows if row["repeat"] == "all"}
    by_hand = of_trees(leaves_of(MODELS["tree"], X[SEEN]), Y[SEEN])
    assert found["smallest_cell", "leaves"] == by_hand.smallest
    assert found["class_disclosed", "leaves"] == by_hand.disclosed
    assert found["residual_freedom", ""] == len(SEEN) - parameters_of(MODELS["tree"])
    assert onnx.answers(how | {"structure": False}, data, [SEEN], [0]).leaves is None


def test_a_network_has_no_structure_to_read(tmp_path):
    path = saved(MLPClassifier((5,), max_iter=20), tmp_path / "model.onnx")
    assert not is_read(path)
    assert structure_of(path, X, Y)[1:] == (None, None, 0)


@pytest.mark.parametrize(
    "model",
    [
        KNeighborsClassifier(3),
        SVC(probability=True, random_state=0),
        make_pipeline(StandardScaler(), SVC(probability=True)),
    ],
    ids=["neighbors", "support vectors", "support vectors of scaled records"],
)
def test_records_that_a_file_stores_are_those_that_its_model_stores(model, tmp_path):
    path = saved(model, tmp_path / "model.onnx")
    expected = stored_in(model, X[SEEN])
    assert 0 < structure_of(path, X[SEEN], Y[SEEN]).stored == expected
    new = X[SEEN] + np.float32(0.01)
    assert structure_of(path, new, Y[SEEN]).stored == 0
