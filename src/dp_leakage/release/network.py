"""Released model as one ONNX file, from raw rows as in the user's file to probabilities.

A table with texts goes in column by column, each (records, 1): numbers as float32, texts as strings. All else goes in
as one array ``record``: a table of numbers (records, columns), images (records, channels, height, width) with the
pixels of the file.
"""

import io
import json
import warnings
from collections.abc import Mapping
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from dp_leakage.common.errors import UserError
from dp_leakage.data.projection import Fitted
from dp_leakage.data.raw import Column, Raw, own_columns
from dp_leakage.engines.onnx import DIVISOR
from dp_leakage.models.layers import Layers, Parameters, forward, module

OPSET = 17
RECORD, OUTPUT = "record", "probability"
NEAR = 1e-5  # how far an answer of the file may lie from the model's
ROWS = 1024  # records asked at once


class FromRaw(nn.Module):
    """Map from raw records, with one-hot texts, to class probabilities.

    Args:
        model: the trained network.
        fitted: map from records to features.
        divisor: of the raw numbers.
        fill: replacement of missing numbers, in the shape of a record, NaN without one; None if no number is replaced.
    """

    def __init__(self, model: nn.Module, fitted: Fitted, divisor: float, fill: np.ndarray | None) -> None:
        super().__init__()
        self.model, self.divisor, self.row_norm = model, divisor, fitted.row_norm
        self.learned = None if fitted.learned is None else fitted.learned.module
        self.fill = None if fill is None else torch.from_numpy(fill)
        self.scaling = None
        if fitted.shift is not None and fitted.stretch is not None:
            self.scaling = torch.from_numpy(fitted.shift), torch.from_numpy(fitted.stretch)
        self.projection = None
        if (known := fitted.projection) is not None:
            matrix = known.components.T / (np.sqrt(known.variance) if fitted.whiten else 1.0)
            self.projection = torch.from_numpy(known.mean), torch.from_numpy(matrix)

    def forward(self, record: Tensor) -> Tensor:
        """Return outputs (records, classes) of inputs (records, …), float32, rounded where `data.projection` rounds."""
        return self.model(self.features(record)).softmax(1)

    def features(self, record: Tensor) -> Tensor:
        """Return the records as inputs of the network."""
        if self.fill is not None:
            record = torch.where(record.isnan(), self.fill, record)
        x = record / self.divisor if self.divisor != 1 else record
        if self.learned is not None:
            x = self.learned(x)
        if self.scaling is not None:
            x = ((x.double() - self.scaling[0]) / self.scaling[1]).float()
        if self.projection is not None:
            x = ((x.double().flatten(1) - self.projection[0]) @ self.projection[1]).float()
        if self.row_norm:
            norm = x.flatten(1).double().square().sum(1).sqrt().float().view(-1, *[1] * (x.dim() - 1))
            x = x / torch.where(norm > 0, norm, torch.ones_like(norm))
        return x


def onnx_of(raw: Raw, fitted: Fitted, layers: Layers, parameters: Parameters) -> bytes:
    """Return the ONNX file.

    Args:
        raw: the source's records; only its columns, classes and divisor go into the file, and the shape of a record.
        fitted: map from records to features.
        layers, parameters: the model.
    """
    import onnx

    network = module(layers)
    network.load_state_dict(parameters)
    texts = any(column.categories for column in raw.columns)
    whole = FromRaw(network, fitted, raw.divisor, _fill(raw)).eval()
    output = OUTPUT
    while output in {column.name for column in raw.columns}:
        output += "_"
    model = onnx.load_from_string(_exported(whole, raw.x.shape[1:], output))
    if texts:
        model = onnx.compose.add_prefix(model, "model:", rename_outputs=False)
        _take_columns(model, raw.columns)
    told = {"classes": list(raw.class_names), "columns": columns_told(raw), DIVISOR: raw.divisor}
    for key, value in told.items():
        entry = model.metadata_props.add()
        entry.key, entry.value = key, json.dumps(value, ensure_ascii=False)
    onnx.checker.check_model(model, full_check=True)
    return bytes(model.SerializeToString(deterministic=True))


def columns_told(raw: Raw) -> list[dict[str, Any]]:
    """Return the columns of a table, in words for programs; empty for images."""
    columns = raw.columns or tuple(Column(name) for name in raw.feature_names)
    return [
        {
            "name": column.name,
            "kind": "text" if column.categories else "number",
            "categories": list(column.categories),
            "missing_as": column.fill,
        }
        for column in columns
    ]


def inputs_of(raw: Raw, rows: np.ndarray) -> dict[str, np.ndarray]:
    """Records of the source as the file's inputs: name → array, with gaps as they were filled."""
    x = raw.x[rows]
    if not any(column.categories for column in raw.columns):
        return {RECORD: x * np.float32(raw.divisor)}
    given = {}
    for column, part in own_columns(raw._replace(x=x)):
        values = column.values(part)
        given[column.name] = (np.array(column.categories, object)[values] if column.categories else values)[:, None]
    return given


def check_onnx(content: bytes, raw: Raw, x: np.ndarray, layers: Layers, parameters: Parameters) -> None:
    """Query the file about all records in onnxruntime, and the model about their features.

    Args:
        content: the file.
        raw: the source's records.
        x: the same as features.
        layers, parameters: the model.

    Raises:
        UserError: a probability differs by more than `NEAR`.
    """
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    session = onnxruntime.InferenceSession(content, options, providers=["CPUExecutionProvider"])
    one = {name: tensor[None] for name, tensor in parameters.items()}
    for start in range(0, len(x), ROWS):
        rows = np.arange(start, min(start + ROWS, len(x)))
        (said,) = session.run(None, inputs_of(raw, rows))
        with torch.no_grad():
            ours = forward(layers, one, torch.from_numpy(x[rows])[None])[0][0].softmax(1).numpy()
        if not (apart := float(np.abs(said - ours).max())) <= NEAR:
            words = f"the ONNX file must answer as the model to {NEAR:g}; its answers differ by {apart:.3g}"
            raise UserError(f"{words}, so nothing is released; take features of a smaller range (scale: standard)")


def _exported(whole: nn.Module, shape: tuple[int, ...], output: str) -> bytes:
    """Export by PyTorch's exporter without further packages; it records no paths or source lines."""
    buffer = io.BytesIO()
    axes = {RECORD: {0: "records"}, output: {0: "records"}}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the exporter is deprecated; the newer one needs onnxscript
        torch.onnx.export(
            whole,
            (torch.zeros(2, *shape),),
            buffer,
            input_names=[RECORD],
            output_names=[output],
            dynamic_axes=axes,
            opset_version=OPSET,
            dynamo=False,
        )
    return buffer.getvalue()


def _take_columns(model: Any, columns: tuple[Column, ...]) -> None:
    """Replace the model's input by one for each column of the table."""
    from onnx import TensorProto, helper, numpy_helper

    graph = model.graph
    record = graph.input[0].name
    del graph.input[:]
    nodes, parts = [], []
    for number, column in enumerate(columns):
        kind = TensorProto.STRING if column.categories else TensorProto.FLOAT
        graph.input.append(helper.make_tensor_value_info(column.name, kind, ["records", 1]))
        if not column.categories:
            parts.append(column.name)
            continue
        own = f"texts:{number}:"
        constants: Mapping[str, np.ndarray] = {
            own + "shape": np.array([-1, len(column.categories)], np.int64),
            **{own + name: value for name, value in zip(("matrix", "bias"), _of_texts(column), strict=True)},
        }
        graph.initializer.extend(numpy_helper.from_array(value, name) for name, value in constants.items())
        texts = [text.encode() for text in column.categories]
        nodes += [
            helper.make_node(
                "OneHotEncoder", [column.name], [own + "hot"], domain="ai.onnx.ml", cats_strings=texts, zeros=1
            ),
            helper.make_node("Reshape", [own + "hot", own + "shape"], [own + "flat"]),
            helper.make_node("MatMul", [own + "flat", own + "matrix"], [own + "known"]),
            helper.make_node("Add", [own + "known", own + "bias"], [own + "part"]),
        ]
        parts.append(own + "part")
    nodes.append(helper.make_node("Concat", parts, [record], axis=1))
    rest = list(graph.node)
    del graph.node[:]
    graph.node.extend([*nodes, *rest])
    model.opset_import.append(helper.make_opsetid("ai.onnx.ml", 3))


def _of_texts(column: Column) -> tuple[np.ndarray, np.ndarray]:
    """Return matrix and bias from one number per category to the columns of ``x``; without a category, the fill
    value.

    A text that is not a category gives zeros only, plus the bias.
    """
    count = len(column.categories)
    shown = np.eye(count, dtype=np.float32)[:, 1 if count == 2 else 0 :]
    usual = np.array([text == column.fill for text in column.categories], np.float32)
    return shown - usual @ shown, usual @ shown


def _fill(raw: Raw) -> np.ndarray | None:
    """Return the fill values for `FromRaw`."""
    fill: list[float] = []
    for column in raw.columns:
        number = isinstance(column.fill, float) and not column.categories
        fill += [float(column.fill) if number and column.fill is not None else np.nan] * column.width
    return np.array(fill, np.float32) if not np.isnan(fill).all() else None
