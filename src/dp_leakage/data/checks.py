"""Checks of the data loaded by a plugin, since all later code relies on the promises of `raw.Raw`."""

import numpy as np

from dp_leakage.common.errors import UserError
from dp_leakage.data.raw import Raw, check_finite, check_range


def check_raw(raw: object, where: str) -> Raw:
    """Return the records that a plugin loaded.

    Args:
        raw: the plugin's result.
        where: plugin and function, for the error message.

    Raises:
        UserError: the result is not a `Raw`, or violates its documentation.
    """
    if not isinstance(raw, Raw):
        raise UserError(f"{where} returns {type(raw).__name__}; expected a dp_leakage.data.raw.Raw")
    x, y, classes = (
        _array(raw.x, "x", (2, 4), np.float32, where),
        _array(raw.y, "y", (1,), np.int64, where),
        raw.class_names,
    )
    if len(x) != len(y) or not len(y):
        raise UserError(
            f"{where}: x has {len(x)} records and y {len(y)}; expected one class per record, and at least one record"
        )
    columns = x.shape[1] if x.ndim == 2 else 0
    _as_many(raw.feature_names, columns, "feature_names", "columns", where)
    check_finite(x, where, raw.feature_names)
    check_range(y, len(classes), where)
    _as_many(classes, len(np.unique(y)), "class_names", "classes of y", where)
    if raw.names:
        _as_many(raw.names, len(x), "names", "records", where)
    if raw.person is not None:
        person = _array(raw.person, "person", (1,), np.int64, where)
        if len(person) != len(x) or not np.array_equal(np.unique(person), np.arange(person.max(initial=0) + 1)):
            raise UserError(
                f"{where}: person must hold numbers of people, counted from 0, one for each of {len(x)} records"
            )
    _places(raw.sensitive, "sensitive", columns, where)
    for name, rows in raw.given.items():
        _places(rows, f"given[{name!r}]", len(x), where)
    return raw


def _as_many(values: tuple[str, ...], count: int, name: str, what: str, where: str) -> None:
    if len(values) != count:
        raise UserError(f"{where}: {len(values)} {name}; expected one for each of {count} {what}")


def _array(value: object, name: str, axes: tuple[int, ...], dtype: type, where: str) -> np.ndarray:
    if isinstance(value, np.ndarray) and value.dtype == dtype and value.ndim in axes:
        return value
    found = f"{value.dtype} {value.shape}" if isinstance(value, np.ndarray) else type(value).__name__
    raise UserError(f"{where}: {name} is {found}; expected {dtype.__name__} with {' or '.join(map(str, axes))} axes")


def _places(value: object, name: str, count: int, where: str) -> None:
    """Refuse numbers that repeat or lie outside 0 … count − 1."""
    places = _array(value, name, (1,), np.int64, where)
    if len(np.unique(places)) != len(places) or ((places < 0) | (places >= count)).any():
        raise UserError(f"{where}: {name} must hold different numbers from 0 to {count - 1}")
