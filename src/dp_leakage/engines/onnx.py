"""Engine ``onnx``: a trained model in the format that PyTorch, TensorFlow, scikit-learn and LightGBM export."""

import re
from collections.abc import Iterator
from contextlib import contextmanager
from math import inf
from pathlib import Path
from threading import Event, Thread
from time import process_time
from typing import Any

import numpy as np

from dp_leakage.common.config import Json
from dp_leakage.common.errors import UserError
from dp_leakage.common.paths import is_file, user_path
from dp_leakage.data.dataset import Dataset
from dp_leakage.data.outputs import SUM, log_probabilities, log_softmax
from dp_leakage.engines.answers import Answers, trained_on

ROWS = 1024  # records asked about at once
BEFORE = re.compile(r"^\[ONNXRuntimeError\] : \d+ : \w+ : |Load model from .* failed:|(?<!\w)(Fatal )?[Ee]rror: ")
TYPES = {"tensor(float)": np.float32, "tensor(double)": np.float64, "tensor(float16)": np.float16}


def answers(settings: Json, data: Dataset, subsets: list[np.ndarray], seeds: list[int]) -> Answers:
    """What the model in the file ``name`` says about the records as they are. It was trained on the only subset.

    Outputs in 0 to 1 that sum to 1 count as probabilities, others as logits.

    Args:
        settings: of step ``train``; and ``seconds`` of processor time that the model may take, where it is tried out.
        data: the records.
        subsets: who was trained on.
        seeds: unused.

    Raises:
        UserError: the file is no ONNX model, or does not fit the records or the classes, or takes longer.
    """
    path = user_path(settings["architecture"]["name"])
    seconds = settings.get("seconds", inf)
    said = log_classes(outputs_of(path, data.x, seconds), data.n_classes, str(path))
    return Answers.of(trained_on(data, subsets[:1]), said[None], data.y)


def outputs_of(path: Path, x: np.ndarray, seconds: float = inf) -> np.ndarray:
    """The class outputs, (n, C) or (n,), of an ONNX model for records float32 (n, …).

    Args:
        path: of the model.
        x: the records.
        seconds: of processor time that it may take: a model may hold loops, and those may never end.

    Raises:
        UserError: as `answers`.
    """
    import onnxruntime

    if not is_file(path):
        raise UserError(f"{path}: no such file; valid is an ONNX model")
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    options.log_severity_level = 4
    try:
        session = onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
    except Exception as error:  # the library raises exceptions of its own
        raise UserError(f"{path} is no ONNX model that can be read ({_first_line(error)})") from None
    inputs = session.get_inputs()
    if len(inputs) != 1 or inputs[0].type not in TYPES:
        found = ", ".join(f"{one.name}: {one.type}" for one in inputs)
        raise UserError(f"{path} takes {found}; valid is one input of floating-point numbers, the records")
    batch, *shape = inputs[0].shape
    wanted = [size if isinstance(size, int) else None for size in shape]
    fits = len(wanted) == x.ndim - 1 and all(w in (None, s) for w, s in zip(wanted, x.shape[1:], strict=True))
    if not fits:
        words = " × ".join("any" if size is None else str(size) for size in wanted)
        raise UserError(f"{path} takes records of {words} numbers; the data have {' × '.join(map(str, x.shape[1:]))}")
    rows = batch if isinstance(batch, int) and batch > 0 else ROWS
    parts = []
    for start in range(0, len(x), rows):
        part = x[start : start + rows]
        filled = np.concatenate([part, np.repeat(part[-1:], rows - len(part), 0)]) if isinstance(batch, int) else part
        with _limited(seconds) as run:
            try:
                given = session.run(None, {inputs[0].name: filled.astype(TYPES[inputs[0].type])}, run)
            except Exception as error:
                reason = f"it takes more than {seconds:g} s for {len(part)}" if run.terminate else _first_line(error)
                raise UserError(f"{path} cannot be run on the records ({reason})") from None
        said = _class_output(given, path)
        if len(said) != len(filled):
            raise UserError(
                f"{path} gives {len(said)} rows of outputs for {len(filled)} records; valid is one for each"
            )
        parts.append(said[: len(part)])
    return np.concatenate(parts)


@contextmanager
def _limited(seconds: float) -> Iterator[Any]:
    """Options of a run that is ended from another thread after these seconds of processor time."""
    import onnxruntime

    options, done, begun = onnxruntime.RunOptions(), Event(), process_time()

    def watch() -> None:
        while not done.wait(0.1):
            if process_time() - begun > seconds:
                options.terminate = True
                return

    watcher = Thread(target=watch, daemon=True)
    watcher.start()
    try:
        yield options
    finally:
        done.set()
        watcher.join()


def log_classes(outputs: np.ndarray, n_classes: int, where: str) -> np.ndarray:
    """ln p, float64 (n, C), of outputs that are probabilities or logits. A single number is for the second of two
    classes.

    Raises:
        UserError: the number of classes is not ``n_classes``, or numbers are not finite.
    """
    outputs = outputs.astype(np.float64)
    if not np.isfinite(outputs).all():
        row = int(np.argwhere(~np.isfinite(outputs))[0][0])
        raise UserError(f"{where}: the output for record {row} is not finite")
    if outputs.ndim == 1 or outputs.shape[1] == 1:
        second = outputs.reshape(-1)
        if second.min() < 0 or second.max() > 1:
            outputs = np.column_stack([np.zeros_like(second), second])
        else:
            outputs = np.column_stack([1 - second, second])
    if outputs.shape[1] != n_classes:
        raise UserError(f"{where} gives {outputs.shape[1]} outputs for a record, the labels have {n_classes} classes")
    probabilities = (outputs >= 0).all() and (np.abs(outputs.sum(axis=1) - 1) <= SUM).all()
    return log_probabilities(outputs) if probabilities else log_softmax(outputs)


def _class_output(given: list[Any], path: Path) -> np.ndarray:
    """The output of a model with a number for each class: the last one with floating-point numbers."""
    for output in reversed(given):
        if (
            isinstance(output, list) and output and isinstance(output[0], dict)
        ):  # scikit-learn's converter gives one map per record
            return np.array([[record[name] for name in sorted(record)] for record in output])
        if isinstance(output, np.ndarray) and output.dtype.kind == "f" and output.ndim in (1, 2):
            return output
    raise UserError(f"{path} has no output of class probabilities or logits, (records, classes)")


def _first_line(error: Exception) -> str:
    """What the library says, without its numbers and names for kinds of failures."""
    line = (str(error).strip().splitlines() or [type(error).__name__])[0]
    return BEFORE.sub("", line)[:160]
