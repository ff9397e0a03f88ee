"""Structure of trees and linear models in ONNX files, as converters write scikit-learn's and LightGBM's models."""

from pathlib import Path
from typing import Any

import numpy as np

from dp_leakage.engines.structure import Structure, of_tree_counts, stored_rows

TREES = {"TreeEnsembleClassifier": "class", "TreeEnsembleRegressor": "target"}  # operator → of whom its leaves tell
LINEAR = ("LinearClassifier", "LinearRegressor")
KERNEL = ("SVMClassifier", "SVMRegressor")
OPERATORS = (*TREES, *LINEAR)
# How a node compares a feature with its value; the first of its two children is for records where that is true.
COMPARED = {
    b"BRANCH_LEQ": np.less_equal, b"BRANCH_LT": np.less, b"BRANCH_GTE": np.greater_equal, b"BRANCH_GT": np.greater,
    b"BRANCH_EQ": np.equal, b"BRANCH_NEQ": np.not_equal,
}  # fmt: skip


def is_read(path: Path) -> bool:
    """Return whether a file that onnxruntime can run is one tree ensemble, or one linear model."""
    return _model_and_part(path) is not None


def structure_of(path: Path, x: np.ndarray, y: np.ndarray) -> Structure:
    """Return what the structure of the model in a file shows of its training records.

    Args:
        path: of a model that onnxruntime can run.
        x: float32 (n, d), the records.
        y: int64 (n,), their classes.

    Returns:
        As `structure.parameters_of`, `structure.leaves_of` and `structure.stored_in`, of the model that was written to
        the file. Scaling before the model counts as given.
    """
    stored, found = _stored(path, x), _model_and_part(path)
    if found is None:
        return Structure(y, None, None, stored)
    model, node, own = found
    if node.op_type in TREES:
        return Structure(y, _of_trees(node, own), _leaves(own, _given(model, node, x)), stored)
    return Structure(y, _of_linear(own), None, stored)


def _stored(path: Path, x: np.ndarray) -> int:
    """Count the records that stand in a constant table of the file, or among a kernel model's support vectors."""
    import onnx
    from sklearn.neighbors import NearestNeighbors

    model = onnx.load(path)
    tables = [onnx.numpy_helper.to_array(table) for table in model.graph.initializer]
    stored = stored_rows(iter(tables), x.reshape(len(x), -1))
    for node in [node for node in model.graph.node if node.op_type in KERNEL]:
        inputs = _given(model, node, x)
        table = np.array(
            [number for part in node.attribute if part.name == "support_vectors" for number in part.floats]
        )
        if table.size and table.size % inputs.shape[1] == 0:
            table = table.reshape(-1, inputs.shape[1])
            nearest = inputs[NearestNeighbors(n_neighbors=1).fit(inputs).kneighbors(table, return_distance=False)[:, 0]]
            # onnxruntime rounds otherwise than the library that scaled the records for the training.
            if np.allclose(table, nearest, rtol=1e-4, atol=1e-5):
                stored |= stored_rows(iter([nearest]), inputs)
    return int(stored.sum())


def _model_and_part(path: Path) -> tuple[Any, Any, dict[str, Any]] | None:
    """Return the model, its only tree or linear operator, and that operator's attributes; None for other models."""
    import onnx

    model = onnx.load(path)
    nodes = [node for node in model.graph.node if node.domain == "ai.onnx.ml" and node.op_type in OPERATORS]
    if len(nodes) != 1:
        return None
    own = {part.name: onnx.helper.get_attribute_value(part) for part in nodes[0].attribute}
    own |= {
        name.removesuffix("_as_tensor"): onnx.numpy_helper.to_array(value)
        for name, value in own.items()
        if name.endswith("_as_tensor")
    }
    return model, nodes[0], own


def _given(model: Any, node: Any, x: np.ndarray) -> np.ndarray:
    """Return the records as inputs of a node."""
    import onnx
    import onnxruntime

    if node.input[0] == model.graph.input[0].name:
        return x
    model.graph.output.append(onnx.ValueInfoProto(name=node.input[0]))
    session = onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    return np.asarray(session.run([node.input[0]], {session.get_inputs()[0].name: x})[0])


def _leaves(own: dict[str, Any], x: np.ndarray) -> np.ndarray:
    """Return the leaf of each tree for each record, int64 (n, T), by its index among all nodes."""
    named = list(zip(own["nodes_treeids"], own["nodes_nodeids"], strict=True))
    place = {name: row for row, name in enumerate(named)}
    mode, feature, value = (np.array(own[f"nodes_{part}"]) for part in ("modes", "featureids", "values"))
    split = mode != b"LEAF"
    child = {
        side: np.array(
            [
                place[tree, one] if there else row
                for row, ((tree, _), one, there) in enumerate(
                    zip(named, own[f"nodes_{side}nodeids"], split, strict=True)
                )
            ]
        )
        for side in ("true", "false")
    }
    below = set(np.concatenate([child[side][split] for side in child]).tolist())
    at = np.tile([row for row in range(len(named)) if row not in below], (len(x), 1))
    records = np.arange(len(x))[:, None]
    for _ in named:
        if not split[at].any():
            break
        seen, cut, how = x[records, feature[at]], value[at].astype(x.dtype), mode[at]
        goes = np.select(
            [how == name for name in COMPARED], [compare(seen, cut) for compare in COMPARED.values()], False
        )
        at = np.where(goes, child["true"][at], child["false"][at])
    return at.astype(np.int64)


def _of_trees(node: Any, own: dict[str, Any]) -> int:
    of = TREES[node.op_type]
    leaves = sum(mode == b"LEAF" for mode in own["nodes_modes"])
    told = np.unique(np.stack([own[f"{of}_treeids"], own[f"{of}_nodeids"]]), axis=1, return_counts=True)[1]
    return of_tree_counts(len(own["nodes_modes"]), leaves, int(told.max()))


def _of_linear(own: dict[str, Any]) -> int:
    """Count a linear model's parameters; for two classes converters write both, one with negated numbers."""
    coefficients, intercepts = (np.array(own.get(name, [])) for name in ("coefficients", "intercepts"))
    first, second = np.array_split(coefficients, 2)
    twice = len(intercepts) == 2 and len(first) == len(second) and np.array_equal(first, -second)
    return (len(coefficients) + len(intercepts)) // (2 if twice else 1)
