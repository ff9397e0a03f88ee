"""Weights in files beside an ONNX model: every one is found, wherever its tensor is, and none elsewhere is read."""

import os

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from dp_leakage.common.errors import UserError
from dp_leakage.engines.onnx import outputs_of
from dp_leakage.engines.onnx_files import content_of_model, data_files

X = np.ones((3, 4), np.float32)
WEIGHT = np.arange(8, dtype=np.float32).reshape(4, 2)


def tensor(name, location=None):
    made = numpy_helper.from_array(WEIGHT, name)
    if location is not None:
        made.ClearField("raw_data")
        made.data_location = TensorProto.EXTERNAL
        made.external_data.add(key="location", value=location)
        made.external_data.add(key="length", value=str(WEIGHT.nbytes))
    return made


def saved(folder, *, initializer=None, nodes=(), functions=()):
    """A linear model, with other tensors where they may be."""
    x, y = (helper.make_tensor_value_info(name, TensorProto.FLOAT, ["n", k]) for name, k in (("x", 4), ("y", 2)))
    product = helper.make_node("MatMul", ["x", "w"], ["y"])
    graph = helper.make_graph([*nodes, product], "g", [x], [y], [initializer or tensor("w")])
    opsets = [helper.make_opsetid("", 17), helper.make_opsetid("own", 1)]
    model = helper.make_model(graph, functions=functions, opset_imports=opsets, ir_version=8)
    path = folder / "model.onnx"
    path.write_bytes(model.SerializeToString())
    return path


def constant(location):
    return helper.make_node("Constant", [], ["unused"], value=tensor("c", location))


def branches(location):
    graph = helper.make_graph([constant(location)], "b", [], [helper.make_empty_tensor_value_info("unused")])
    return helper.make_node("If", ["condition"], ["chosen"], then_branch=graph, else_branch=graph)


PLACES = {
    "weights": lambda folder: saved(folder, initializer=tensor("w", "e.bin")),
    "a constant": lambda folder: saved(folder, nodes=[constant("e.bin")]),
    "a branch": lambda folder: saved(folder, nodes=[branches("e.bin")]),
    "a function": lambda folder: saved(
        folder, functions=[helper.make_function("own", "f", [], ["unused"], [constant("e.bin")], [])]
    ),
}


@pytest.mark.parametrize("place", PLACES)
def test_a_changed_file_of_weights_is_noticed_wherever_its_tensor_is(tmp_path, place):
    path = PLACES[place](tmp_path)
    (tmp_path / "e.bin").write_bytes(WEIGHT.tobytes())
    assert data_files(path) == [tmp_path / "e.bin"]
    before = content_of_model(path)
    (tmp_path / "e.bin").write_bytes((WEIGHT + 1).tobytes())
    assert content_of_model(path) != before


def test_weights_of_an_exported_model_are_found_and_used(tmp_path):
    path = saved(tmp_path)
    assert data_files(path) == []
    inside = outputs_of(path, X)
    onnx.save_model(onnx.load(path), path, save_as_external_data=True, location="sub.bin", size_threshold=0)
    assert data_files(path) == [tmp_path / "sub.bin"]
    np.testing.assert_array_equal(outputs_of(path, X), inside)


@pytest.mark.parametrize(
    "name", ["/etc/passwd", "../e.bin", "a/../../e.bin", "..\\e.bin", "link.bin", "", ".", "no.bin"]
)
def test_weights_elsewhere_are_refused(tmp_path, name):
    folder = tmp_path / "model"
    folder.mkdir()
    (tmp_path / "e.bin").write_bytes(WEIGHT.tobytes())
    (folder / "link.bin").symlink_to(tmp_path / "e.bin")
    path = saved(folder, initializer=tensor("w", name))
    for read in (data_files, content_of_model, lambda path: outputs_of(path, X)):
        with pytest.raises(UserError, match=r"has weights in .*which must"):
            read(path)


def test_a_pipe_beside_the_model_is_refused(tmp_path):
    os.mkfifo(tmp_path / "e.bin")
    with pytest.raises(UserError, match="which must be in the same folder"):
        data_files(saved(tmp_path, initializer=tensor("w", "e.bin")))


OTHERS = [b"", b"\x80" * 40, b"\x3a\xff\xff\x01", b"\x3b", b"PK\x03\x04", b"\x00" * 9 + b"\xff"]


@pytest.mark.parametrize("content", OTHERS)
def test_another_format_is_refused(tmp_path, content):
    path = tmp_path / "model.onnx"
    path.write_bytes(content)
    with pytest.raises(UserError, match="is not a readable ONNX model"):
        data_files(path)


def test_messages_in_messages_without_end_are_refused(tmp_path):
    branch, one = b"", lambda field, content: bytes([field << 3 | 2]) + size(len(content)) + content
    for _ in range(500):
        branch = one(1, one(5, one(6, branch)))  # a graph's node's attribute's graph
    (tmp_path / "model.onnx").write_bytes(one(7, branch))
    with pytest.raises(UserError, match="nested too deeply"):
        data_files(tmp_path / "model.onnx")


def size(number):
    """A number as the format writes it."""
    low = bytes([number & 127 | (128 if number > 127 else 0)])
    return low + size(number >> 7) if number > 127 else low
