"""Engine ``onnx``: a trained model in the format that PyTorch, TensorFlow, scikit-learn and LightGBM export."""

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from dp_leakage.common.config import Json
from dp_leakage.common.errors import UserError
from dp_leakage.common.paths import is_file, user_path
from dp_leakage.data.dataset import Dataset
from dp_leakage.data.outputs import SUM, are_probabilities, log_probabilities, log_softmax
from dp_leakage.engines.answers import Answers, trained_on
from dp_leakage.engines.onnx_files import data_files
from dp_leakage.engines.onnx_structure import structure_of
from dp_leakage.engines.structure import known

ROWS = 1024  # records asked about at once
MOST_ROWS = 65_536  # the same, of a model that takes no other number
MOST_PIXEL = 65_535.0  # the largest number of an image
MOST = 1e30  # the largest logit; beyond the squares of some that attacks take, numbers are infinite
ROUNDING = 1e-4, 1e-5  # relative and absolute difference of two answers that count as the same
BEFORE = re.compile(r"^\[ONNXRuntimeError\] : \d+ : \w+ : |Load model from .* failed:|(?<!\w)(Fatal )?[Ee]rror: ")
DIVISOR = "numbers_divided_by"  # a note in a released model's file: how its raw numbers become the records of a study
TYPES = {"tensor(float)": np.float32, "tensor(double)": np.float64, "tensor(float16)": np.float16}


def answers(settings: Json, data: Dataset, subsets: list[np.ndarray], seeds: list[int]) -> Answers:
    """Return the outputs of the model in file ``name`` on the unchanged records. It was trained on the only subset.

    Outputs in 0 to 1 that sum to 1 count as probabilities, others as logits.

    Args:
        settings: of step ``train``.
        data: the records.
        subsets: the training records.
        seeds: unused.

    Raises:
        UserError: the file is no ONNX model, does not fit the records or the classes, or answers differently each time.
    """
    path = user_path(settings["architecture"]["name"])
    said = log_classes(outputs_of(path, data.x), data.n_classes, str(path))
    found = Answers.of(trained_on(data, subsets[:1]), said[None], data.y)
    if not settings.get("structure"):
        return found
    rows = subsets[0]
    return found._replace(**known([structure_of(path, data.x[rows], data.y[rows])]))


def outputs_of(path: Path, x: np.ndarray) -> np.ndarray:
    """Return the class outputs, (n, C) or (n,), of an ONNX model for records float32 (n, …).

    Args:
        path: of the model.
        x: the records.

    Raises:
        UserError: as `answers`.
    """
    import onnxruntime

    if not is_file(path):
        raise UserError(f"{path}: no such file; expected an ONNX model")
    data_files(path)  # refuses those elsewhere
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    options.log_severity_level = 4
    try:
        session = onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
    except Exception as error:  # the library raises exceptions of its own
        raise UserError(f"{path} is not a readable ONNX model ({_first_line(error)})") from None
    inputs = session.get_inputs()
    if len(inputs) != 1 or inputs[0].type not in TYPES:
        found = ", ".join(f"{one.name}: {one.type}" for one in inputs) or "nothing"
        raise UserError(f"{path} takes {found}; expected one input of floating-point numbers, the records")
    rows, padded = _batch(inputs[0].shape, x, path)
    times = _divisor(session.get_modelmeta().custom_metadata_map, path)

    def ask(part: np.ndarray) -> np.ndarray:
        filled = np.concatenate([part, np.repeat(part[-1:], rows - len(part), 0)]) if padded else part
        try:
            given = session.run(None, {inputs[0].name: (filled * times).astype(TYPES[inputs[0].type])})
            said = _class_output(given, path)
        except UserError:
            raise
        except Exception as error:
            raise UserError(f"{path} cannot be run on the records ({_first_line(error)})") from None
        if len(said) != len(filled):
            raise UserError(
                f"{path} gives {len(said)} rows of outputs for {len(filled)} records; expected one for each"
            )
        return said[: len(part)]

    parts = [ask(x[start : start + rows]) for start in range(0, len(x), rows)]
    check_same(parts[0], ask(x[:rows]), str(path))
    half = len(parts[0]) // 2  # the same records in other company
    if half and not np.allclose(parts[0][:half], ask(x[:half]), *ROUNDING, equal_nan=True):
        raise UserError(
            f"{path}: its answer for one record depends on the other records of its batch; expected a model that takes "
            "each record by itself, for example in evaluation mode"
        )
    return np.concatenate(parts)


def _divisor(notes: Mapping[str, str], path: Path) -> np.float32:
    """Return the number by which a model divides its input: 1 by default. Raises UserError for an invalid
    declaration.
    """
    said = notes.get(DIVISOR, "1")
    try:
        if 0 < float(said) <= MOST_PIXEL:
            return np.float32(said)
    except ValueError:
        pass
    raise UserError(
        f"{path}: its note {DIVISOR!r} must be a number above 0 and up to {MOST_PIXEL:g}; got {said[:40]!r}"
    )


def _batch(shape: list[int | str | None], x: np.ndarray, path: Path) -> tuple[int, bool]:
    """Return a model's batch size, and whether it is fixed. Raises UserError for another input shape."""
    if not shape:
        raise UserError(f"{path} takes a single number; expected an input (records, …)")
    batch, *one = shape
    wanted = [size if isinstance(size, int) else None for size in one]
    if len(wanted) != x.ndim - 1 or any(w not in (None, s) for w, s in zip(wanted, x.shape[1:], strict=True)):
        words = " × ".join("any" if size is None else str(size) for size in wanted) or "no"
        raise UserError(f"{path} takes records of {words} numbers; the data have {' × '.join(map(str, x.shape[1:]))}")
    if not isinstance(batch, int) or batch < 1:
        return ROWS, False
    if batch > MOST_ROWS:
        raise UserError(
            f"{path} takes {batch:,} records at once; expected up to {MOST_ROWS:,}, or an export that takes any number"
        )
    return batch, True


def check_same(
    first: np.ndarray, second: np.ndarray, where: str, valid: str = "a model without random numbers"
) -> None:
    """Refuse a model with varying outputs: results would depend on the number of queries.

    Args:
        first, second: its outputs for the same records, of any shape.
        where, valid: the model and the valid form, for the error message.

    Raises:
        UserError: the outputs differ by more than rounding.
    """
    if first.shape != second.shape or not np.allclose(first, second, *ROUNDING, equal_nan=True):
        raise UserError(f"{where} gives different outputs for the same records; expected {valid}")


def log_classes(outputs: np.ndarray, n_classes: int, where: str) -> np.ndarray:
    """ln p, float64 (n, C), of outputs that are probabilities or logits. A single number is for the second of two
    classes.

    Raises:
        UserError: the number of classes is not ``n_classes``, or numbers are not finite or beyond 1e30.
    """
    outputs = outputs.astype(np.float64)
    if not np.isfinite(outputs).all():
        row = int(np.argwhere(~np.isfinite(outputs))[0][0])
        raise UserError(f"{where}: the output for record {row} is not finite")
    if np.abs(outputs).max(initial=0) > MOST:
        raise UserError(f"{where}: an output is {np.abs(outputs).max():g} in size; expected up to {MOST:g}")
    single = outputs.ndim == 1 or outputs.shape[1] == 1
    if single:
        second = outputs.reshape(-1)
        if second.min() < -SUM or second.max() > 1 + SUM:
            outputs = np.column_stack([np.zeros_like(second), second])
        else:
            outputs = np.column_stack([1 - second, second])
    if outputs.shape[1] != n_classes:
        given = "one number" if single else f"{outputs.shape[1]} outputs"
        raise UserError(f"{where} gives {given} for a record, the labels have {n_classes} classes")
    return log_probabilities(outputs.clip(0, 1)) if are_probabilities(outputs) else log_softmax(outputs)


def _class_output(given: list[Any], path: Path) -> np.ndarray:
    """Return the output of a model with a number for each class: the last one with floating-point numbers."""
    for output in reversed(given):
        if (
            isinstance(output, list) and output and isinstance(output[0], dict)
        ):  # scikit-learn's converter gives one map per record
            return np.array([[record[name] for name in sorted(record)] for record in output], dtype=np.float64)
        if isinstance(output, np.ndarray) and output.dtype.kind == "f" and output.ndim in (1, 2):
            return output
    raise UserError(f"{path} has no output of class probabilities or logits, (records, classes)")


def _first_line(error: Exception) -> str:
    """Return the library's message without its numbers and names of error types."""
    line = (str(error).strip().splitlines() or [type(error).__name__])[0]
    return BEFORE.sub("", line)[:160]
