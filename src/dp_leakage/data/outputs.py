"""Outputs of models on records, from one of the user's files: a table (csv, tsv, parquet) or arrays (npz).

A table has a line per record, or per record, model and query. Its columns are

- ``label``, the record's class; ``member``, whether the model was trained on it;
- one of: ``probability_CLASS`` for every class, ``score_CLASS`` (logits) for every class, ``loss`` (cross-entropy in
  nats), ``margin`` (ln p/(1 − p) of the label's probability);
- ``record``, its name or number, needed if a record has several lines or is in several files; ``model`` and ``query``,
  names or numbers, if there are several.

An ``.npz`` holds the same as arrays: ``record`` and ``label`` (n,), ``member`` (n,) or (R, n), ``probability`` or
``score`` (n, C) or (R, n, C), ``loss`` or ``margin`` (n,), (R, n) or (Q, R, n). ``classes`` (C,) names the columns of
``probability`` or ``score``; without it they are 0 … C-1.
"""

from collections.abc import Mapping, Sequence
from math import prod
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from dp_leakage.common.errors import UserError
from dp_leakage.common.paths import is_file
from dp_leakage.data.raw import encode_labels, member_flags

if TYPE_CHECKING:
    import pandas as pd

SUFFIXES = (".csv", ".tsv", ".parquet", ".npz")
KINDS = ("probability", "score", "loss", "margin")
NUMERIC = "biuf"  # kinds of NumPy's types
ARRAYS = dict.fromkeys(("record", "label", "member", "classes"), NUMERIC + "US") | dict.fromkeys(KINDS, NUMERIC)
SUM = 1e-3  # how far the sum of a record's probabilities may be from 1
FLOOR = 1e-7  # the least probability: exact zeros of trees or of rounding would mean certainty


class Outputs(NamedTuple):
    """Outputs of R models on n records.

    Attributes:
        record: text (n,), the records' different names, in the order of the file.
        label: (n,), their classes as the file has them.
        member: bool (R, n), which model was trained on which record; None if the file does not say.
        classes: text (C,), the classes that have outputs; empty if the file has only losses or margins.
        log_probability: float64 (R, n, C), of the first query; None if the file has only losses or margins.
        margin: float64 (Q, R, n).
    """

    record: np.ndarray
    label: np.ndarray
    member: np.ndarray | None
    classes: np.ndarray
    log_probability: np.ndarray | None
    margin: np.ndarray


def read_outputs(path: Path, member: bool = True) -> Outputs:
    """Read a file of outputs. ``member``: whether it must say which records were trained on.

    Raises:
        UserError: whatever is wrong with the file, in one sentence that names it.
    """
    if not is_file(path):
        raise UserError(f"{path}: no such file; expected a table of outputs ({', '.join(SUFFIXES)})")
    if path.suffix.lower() not in SUFFIXES:
        raise UserError(f"{path} ends in {path.suffix!r}; expected {', '.join(SUFFIXES)}")
    frame = _from_arrays(path) if path.suffix.lower() == ".npz" else _table(path)
    return _outputs(frame, path, member)


def are_probabilities(values: np.ndarray) -> bool:
    """Return whether numbers (…, C) are probabilities up to rounding: converters write −4e-7 for 0 and
    1.0000004 for 1.
    """
    return bool((values >= -SUM).all() and (np.abs(values.sum(axis=-1) - 1) <= SUM).all())


def log_probabilities(probability: np.ndarray) -> np.ndarray:
    """Return ln p, float64, of probabilities (…, C), at least ln `FLOOR`."""
    return np.log(np.maximum(probability.astype(np.float64), FLOOR))


def log_softmax(score: np.ndarray) -> np.ndarray:
    """Return ln p, float64, of class scores (…, C) that are logits."""
    shifted = score.astype(np.float64) - score.max(axis=-1, keepdims=True)
    return shifted - np.log(np.exp(shifted).sum(axis=-1, keepdims=True))


def margins_of(log_probability: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Return ln p_y/(1 − p_y), float64 (…, n), of ln p (…, n, C) and classes int64 (n,); 1 − p_y sums the other
    classes.
    """
    places = np.broadcast_to(y[:, None], (*log_probability.shape[:-1], 1))
    own = np.take_along_axis(log_probability, places, -1)[..., 0]
    others = log_probability.copy()
    np.put_along_axis(others, places, -np.inf, -1)
    top = others.max(axis=-1)
    return own - top - np.log(np.exp(others - top[..., None]).sum(axis=-1))


def from_losses(loss: np.ndarray) -> np.ndarray:
    """Return the margins of cross-entropies ≥ 0 in nats. A loss of 0 is treated as the probability 1 − `FLOOR`."""
    loss = np.maximum(loss.astype(np.float64), -np.log1p(-FLOOR))
    return -loss - np.log(-np.expm1(-loss))


# ---------------------------------------------------------------------- reading
def _table(path: Path) -> "pd.DataFrame":
    from dp_leakage.data.sources.tables import read_frame

    return read_frame(path, "parquet" if path.suffix.lower() == ".parquet" else "csv", ["record"])


def _from_arrays(path: Path) -> "pd.DataFrame":
    """Return the arrays as a table."""
    import pandas as pd

    from dp_leakage.data.sources.arrays import read_archive

    arrays = read_archive(path)
    given = [kind for kind in KINDS if kind in arrays]
    if "label" not in arrays or len(given) != 1:
        raise UserError(
            f"{path} holds the arrays {', '.join(sorted(arrays)) or 'none'}; expected label and one of "
            f"{', '.join(KINDS)}"
        )
    (kind,) = given
    if arrays["label"].ndim != 1 or not arrays["label"].size:
        raise UserError(f"{path}: label has the shape {arrays['label'].shape}; expected (n,), one for each record")
    for name, types in ARRAYS.items():
        if name in arrays and arrays[name].dtype.kind not in types:
            words = "numbers" if types == NUMERIC else "numbers or texts"
            raise UserError(f"{path}: {name} must hold {words}; got the type {arrays[name].dtype}")
    if not arrays[kind].size:
        raise UserError(f"{path}: {kind} has the shape {arrays[kind].shape}; it must have outputs for every record")
    values, n = arrays[kind], len(arrays["label"])
    axes = 4 if kind in ("probability", "score") else 3
    while values.ndim < axes:
        values = values[None]
    if values.ndim != axes or values.shape[2] != n:
        raise UserError(
            f"{path}: {kind} has the shape {arrays[kind].shape}, label {arrays['label'].shape}; the number of "
            "records must agree"
        )
    queries, models = values.shape[:2]
    columns: dict[str, np.ndarray] = {}
    for name, each in (("record", arrays.get("record", np.arange(n))), ("label", arrays["label"])):
        if each.shape != (n,):
            raise UserError(f"{path}: {name} has the shape {each.shape}; expected ({n},), one for each record")
        columns[name] = np.tile(each, queries * models)
    if "member" in arrays:
        if arrays["member"].shape not in ((n,), (models, n)):
            raise UserError(
                f"{path}: member has the shape {arrays['member'].shape}; expected ({n},) or ({models}, {n})"
            )
        columns["member"] = np.broadcast_to(arrays["member"], (queries, models, n)).ravel()
    columns["model"] = np.tile(np.repeat(np.arange(models), n), queries)
    columns["query"] = np.repeat(np.arange(queries), models * n)
    if axes == 3:
        return pd.DataFrame(columns | {kind: values.ravel()})
    classes = arrays.get("classes", np.arange(values.shape[3]))
    if classes.shape != values.shape[3:]:
        raise UserError(
            f"{path}: classes has the shape {classes.shape}; expected {values.shape[3:]}, a name for each column"
        )
    flat = values.reshape(-1, values.shape[3])
    return pd.DataFrame(columns | {f"{kind}_{name}": flat[:, c] for c, name in enumerate(classes)})


# ---------------------------------------------------------------------- checking
def _outputs(frame: "pd.DataFrame", path: Path, member: bool) -> Outputs:
    kind, names = _kind(frame, path)
    for column in ("label", *(["member"] if member else [])):
        if column not in frame:
            why = "; add it: row order does not identify members" if column == "member" else ""
            there = ", ".join(map(str, frame.columns[:20]))
            raise UserError(f"{path} has no column {column!r}{why}; it has {there}")
    order, record = _places(frame, path)  # (Q, R, n), line numbers of the file
    label = _agreed(frame, "label", order, path)
    values = np.stack([_numbers(frame[name], f"{path}: column {name!r}") for name in names], axis=-1)[order]
    said = None
    if "member" in frame:
        said = member_flags(frame["member"].to_numpy(), str(path))[order]
        _require(
            (said == said[:1]).all(axis=0),
            f"{path}: record {{record}} is both a member and none, by its queries",
            record,
        )
        said = said[0]
    if kind in ("loss", "margin"):
        if kind == "loss":
            _require(
                (values >= 0)[..., 0],
                f"{path}: record {{record}} has a loss below 0; expected cross-entropies",
                record,
            )
        margin = from_losses(values[..., 0]) if kind == "loss" else values[..., 0].astype(np.float64)
        return Outputs(record, label, said, np.array([], dtype=str), None, margin)
    classes = np.array([name.removeprefix(f"{kind}_") for name in names])
    texts = [_text(value) for value in label.tolist()]
    missing = sorted(set(texts) - set(classes.tolist()))
    if missing:
        raise UserError(
            f"{path}: label {missing[0]!r} of record {record[texts.index(missing[0])]} has no column "
            f"{kind}_{missing[0]}; there are outputs for the classes {', '.join(classes[:20])}"
        )
    if kind == "probability":
        _check_probabilities(values, path, record)
    elif are_probabilities(values):
        raise UserError(
            f"{path}: its scores are probabilities, which add up to 1 for each record; expected logits, or "
            "the name probability"
        )
    log_probability = log_probabilities(values) if kind == "probability" else log_softmax(values)
    place = {name: c for c, name in enumerate(classes.tolist())}
    y = np.array([place[text] for text in texts])
    return Outputs(record, label, said, classes, log_probability[0], margins_of(log_probability, y))


def _kind(frame: "pd.DataFrame", path: Path) -> tuple[str, list[str]]:
    """Return the kind of the columns with outputs, and their names."""
    found = {
        kind: [name for name in frame if name == kind or (kind in KINDS[:2] and str(name).startswith(f"{kind}_"))]
        for kind in KINDS
    }
    given = {kind: names for kind, names in found.items() if names}
    if len(given) != 1:
        words = f"has {' and '.join(given)}" if given else f"has the columns {', '.join(map(str, list(frame)[:20]))}"
        raise UserError(
            f"{path} {words}; expected one of probability_CLASS or score_CLASS for every class, loss, or margin"
        )
    ((kind, names),) = given.items()
    if kind in KINDS[:2] and (kind in names or len(names) < 2):
        raise UserError(
            f"{path}: column {names[0]!r} alone; expected a column {kind}_CLASS for each of two or more classes"
        )
    return kind, names


def _places(frame: "pd.DataFrame", path: Path) -> tuple[np.ndarray, np.ndarray]:
    """Return line numbers, (Q, R, n), of every query, model and record, and the records' names."""
    import pandas as pd

    if "record" not in frame and {"model", "query"} & set(frame):
        raise UserError(f"{path} has several lines for a record, but no column 'record' to group them")
    codes, sizes = [], []
    for key in ("query", "model", "record"):
        column = (
            frame[key]
            if key in frame
            else pd.Series(np.arange(len(frame)) if key == "record" else np.zeros(len(frame), int))
        )
        if column.isna().any():
            raise UserError(
                f"{path}: line {int(column.isna().argmax()) + 1} of the records has no {key}; every line needs one"
            )
        code, names = pd.factorize(column.map(_text), sort=key != "record")
        codes.append(code)
        sizes.append(len(names))
    order = np.lexsort(codes[::-1])
    sorted_codes = np.stack(codes)[:, order]
    same = (sorted_codes[:, 1:] == sorted_codes[:, :-1]).all(axis=0)
    if same.any():
        twice = names[sorted_codes[2, same.argmax()]]
        raise UserError(f"{path}: record {twice} occurs twice for one model and query; keep one")
    # Never makes an array of all places, since a nonsensical table can have as many as the cube of its lines.
    due = _place(np.arange(len(frame)), sizes)
    if len(frame) < prod(sizes):
        missing = (sorted_codes != due).any(axis=0)
        query, model, row = _place(int(missing.argmax()) if missing.any() else len(frame), sizes)
        raise UserError(
            f"{path}: record {names[row]} is missing for model {model + 1} of {sizes[1]}, query {query + 1} of "
            f"{sizes[0]}; every model needs every record"
        )
    return order.reshape(sizes), np.asarray(names, dtype=str)


def _place(line: Any, sizes: Sequence[int]) -> tuple[Any, Any, Any]:
    """Return query, model and record of one or several lines, if lines of these sizes are complete and in order."""
    _, models, records = sizes
    return line // (models * records), line // records % models, line % records


def _agreed(frame: "pd.DataFrame", column: str, order: np.ndarray, path: Path) -> np.ndarray:
    """Return a column's value for each record, (n,), which must be the same on all of its lines."""
    values = frame[column].to_numpy()
    if frame[column].isna().any():
        raise UserError(f"{path}: record on line {int(frame[column].isna().argmax()) + 1} has no {column}")
    first = values[order[0, 0]]
    same = (values[order] == first).all(axis=(0, 1))
    if not same.all():
        raise UserError(f"{path}: a record has several values of {column}, such as {first[~same][0]!r}; expected one")
    encode_labels(first, f"{path}: column {column!r}")
    return first


def _numbers(column: "pd.Series", where: str) -> np.ndarray:
    if column.dtype.kind not in "iufb":
        raise UserError(f"{where} holds {column.iloc[0]!r}; expected numbers")
    values = column.to_numpy(np.float64)
    if not np.isfinite(values).all():
        line = int(np.flatnonzero(~np.isfinite(values))[0])
        raise UserError(f"{where} holds {values[line]} on line {line + 1} of the records; expected finite numbers")
    return values


def _check_probabilities(values: np.ndarray, path: Path, record: np.ndarray) -> None:
    _require(
        np.all((values >= 0) & (values <= 1), axis=(0, 1, 3)),
        f"{path}: record {{record}} has a probability outside 0 to 1; logits belong in columns score_CLASS",
        record,
    )
    sums = values.sum(axis=3)
    off = np.abs(sums - 1).max(axis=(0, 1))
    worst = float(sums[..., off.argmax()].ravel()[0])
    _require(
        off <= SUM, f"{path}: the probabilities of record {{record}} add up to {worst:.4g}; expected 1", record, off
    )


def _require(good: np.ndarray, complaint: str, record: np.ndarray, badness: np.ndarray | None = None) -> None:
    """Raise UserError if a condition fails. ``good`` ends in the records' axis; the message names the first (or
    worst) bad record.
    """
    each = good.reshape(-1, len(record)).all(axis=0)
    if not each.all():
        row = int(np.flatnonzero(~each)[0]) if badness is None else int(badness.argmax())
        raise UserError(complaint.format(record=record[row]))


def _text(value: object) -> str:
    """Return a class's or record's name: whole numbers are spelled without a point, however they were stored."""
    if isinstance(value, float | np.floating) and float(value).is_integer():
        return str(int(value))
    return str(value)


def aligned(given: Outputs, path: Path, known: Outputs, of: Path) -> Outputs:
    """Return the outputs of ``path`` for the records of another file, ``of``, in its order.

    Raises:
        UserError: a record is missing, or has another label.
    """
    record = known.record
    place: Mapping[str, int] = {name: row for row, name in enumerate(given.record.tolist())}
    missing = [name for name in record.tolist() if name not in place]
    if missing:
        raise UserError(
            f"{path}: record {missing[0]} is missing ({len(missing)} of {len(record)}); expected every record of "
            "the models under attack, by the same name"
        )
    rows = np.array([place[name] for name in record.tolist()])
    for name, label, other in zip(record.tolist(), known.label.tolist(), given.label[rows].tolist(), strict=True):
        if str(label) != str(other):
            raise UserError(f"record {name} has the label {label} in {of} and {other} in {path}; labels must agree")
    return Outputs(
        record,
        given.label[rows],
        None if given.member is None else given.member[:, rows],
        given.classes,
        None if given.log_probability is None else given.log_probability[:, rows],
        given.margin[:, :, rows],
    )
