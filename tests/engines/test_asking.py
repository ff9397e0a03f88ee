"""Models are asked in a process of their own, with limits where they come from anywhere."""

import sys

import numpy as np
import pytest

from dp_leakage.common.apart import Limits
from dp_leakage.common.errors import UserError
from dp_leakage.data.dataset import Dataset
from dp_leakage.engines import asking, estimator
from dp_leakage.engines.asking import asked, limits_of

X = np.random.default_rng(0).random((60, 2)).astype(np.float32)
DATA = Dataset(X, np.arange(60) % 2, {}, np.array([], dtype=np.int64))
ROWS = np.arange(30)


def onnx_of(path, nodes):
    from onnx import TensorProto, helper

    sides = [[helper.make_tensor_value_info(name, TensorProto.FLOAT, [None, 2])] for name in ("x", "z")]
    model = helper.make_model(
        helper.make_graph(nodes(helper), "g", *sides), opset_imports=[helper.make_opsetid("", 13)]
    )
    model.ir_version = 7
    path.write_bytes(model.SerializeToString())
    return {"architecture": {"name": str(path)}, "role": "target"}


def class_of(tmp_path, monkeypatch, name, fit="pass", says="np.full((len(x), 2), 0.5)", classes="np.array([0, 1])"):
    text = f"""
import numpy as np
class D:
    def fit(self, x, y):
        self.classes_ = {classes}
        {fit}
    def predict_proba(self, x):
        return {says}
"""
    (tmp_path / f"{name}.py").write_text(text)
    monkeypatch.syspath_prepend(tmp_path)
    return {"architecture": {"name": f"{name}:D"}, "role": "target"}


def test_the_answers_are_those_of_the_engine():
    how = {"architecture": {"name": "sklearn.naive_bayes:GaussianNB"}, "role": "target"}
    here, there = estimator.answers(how, DATA, [ROWS], [1]), asked("estimator", how, DATA, [ROWS], [1])
    assert here.tensors().keys() == there.tensors().keys()
    for name, ours in here.tensors().items():
        np.testing.assert_array_equal(ours, getattr(there, name))
        assert ours.dtype == getattr(there, name).dtype


def test_a_model_whose_answers_depend_on_the_batch_is_refused(tmp_path):
    how = onnx_of(
        tmp_path / "m.onnx",
        lambda h: [h.make_node("ReduceMean", ["x"], ["m"], axes=[0]), h.make_node("Sub", ["x", "m"], ["z"])],
    )
    with pytest.raises(UserError, match="its answer for one record depends on the other records of its batch"):
        asked("onnx", how, DATA, [ROWS], [1])


def test_a_model_that_answers_differently_each_time_is_refused(tmp_path):
    how = onnx_of(
        tmp_path / "m.onnx",
        lambda h: [h.make_node("RandomNormalLike", ["x"], ["r"], seed=1.0), h.make_node("Add", ["x", "r"], ["z"])],
    )
    with pytest.raises(UserError, match="gives different outputs for the same records"):
        asked("onnx", how, DATA, [ROWS], [0])


def test_a_model_that_takes_too_long_is_stopped(tmp_path, monkeypatch):
    names = ["x", *(f"n{k}" for k in range(8000)), "z"]
    how = onnx_of(
        tmp_path / "m.onnx",
        lambda h: [h.make_node("Neg", [a], [b]) for a, b in zip(names[:-1], names[1:], strict=True)],  # noqa: RUF007
    )
    monkeypatch.setattr(asking, "limits_of", lambda *_: Limits(seconds=0.01))
    with pytest.raises(UserError, match=r"m.onnx takes more than 0.01 s, and was stopped"):
        asked("onnx", how, DATA, [ROWS], [0])


def test_limits_hold_for_models_from_anywhere(tmp_path):
    (tmp_path / "m.onnx").write_bytes(bytes(10**6))
    name = str(tmp_path / "m.onnx")
    assert limits_of("onnx", name, 12, True) == (5.01, 8 * 2**30)
    assert limits_of("onnx", name, 100, False) == (260.01, 8 * 2**30)
    assert limits_of("onnx", "nowhere", 0, True).seconds == 5
    for engine in ("estimator", "module", "outputs"):
        assert limits_of(engine, "a:B", 100, False) == Limits()


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"fit": "import sys; sys.exit(0)"}, r"cannot be trained on these records \(.*SystemExit: 0"),
        (
            {"fit": "import os; os._exit(0)"},
            r"cannot be trained on these records \(.*os._exit\(0\) would end",
        ),
        (
            {"says": "np.tile([-1, 2], (len(x), 1))"},
            "gives a probability of -1; expected numbers from 0 that sum to 1",
        ),
        ({"says": "np.ones((len(x), 2))"}, "gives probabilities that sum to 2"),
        ({"classes": "[0, 10**6]"}, r"has classes_ \[0, 1000000\]; expected different classes from 0 to 1"),
        ({"classes": "['a', 'b']"}, "has classes_ "),
        ({"fit": "del self.classes_"}, "AttributeError"),
    ],
)
def test_a_class_that_does_anything_else_is_one_sentence(change, words, tmp_path, monkeypatch):
    name = f"classes_{abs(hash(str(change)))}"
    how = class_of(tmp_path, monkeypatch, name, **change)
    with pytest.raises(UserError, match=words):
        asked("estimator", how, DATA, [ROWS], [1])
    assert name not in sys.modules, "it was imported here"
