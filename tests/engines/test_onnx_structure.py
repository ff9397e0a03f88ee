"""The structure of models in ONNX files, against that of the models from which they were written."""

import numpy as np
import pytest
from skl2onnx import to_onnx
from sklearn.datasets import load_iris
from sklearn.ensemble import ExtraTreesClassifier, GradientBoostingClassifier, RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.tree import DecisionTreeClassifier

from dp_leakage.data.dataset import Dataset
from dp_leakage.engines import onnx
from dp_leakage.engines.onnx_structure import is_read, structure_of
from dp_leakage.engines.structure import leaves_of, of_trees, parameters_of
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
    parameters, leaves = structure_of(path, X[SEEN])
    assert parameters == parameters_of(model)
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
    assert structure_of(path, X) == (None, None)
