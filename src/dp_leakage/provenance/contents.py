"""Validation of the arrays of a result file. A digest only shows that a file is complete, not that its contents are
valid.
"""

import zipfile
from collections.abc import Mapping
from math import prod
from typing import NamedTuple

import numpy as np

from dp_leakage.common.errors import UserError


class Expected(NamedTuple):
    """Requirements on an array.

    Attributes:
        dtype: its type as NumPy names it, such as ``int64``; ``text`` for texts of any length.
        axes: a letter for each axis, such as ``Rn``. Axes with the same letter are equally long in all arrays of a
            file. Every axis is at least 1 long.
        least, most: of its values; None for no bound. Floating-point numbers must be finite in any case.
    """

    dtype: str
    axes: str
    least: float | None = None
    most: float | None = None


def check_arrays(arrays: Mapping[str, np.ndarray], expected: Mapping[str, Expected], where: str) -> dict[str, int]:
    """Refuse unexpected arrays; return the length of each axis by its letter.

    Args:
        arrays: name → array.
        expected: name → what it must be; all of them must be there, and no others.
        where: begins the error message.

    Raises:
        UserError: an array is missing, unknown, or not as expected.
    """
    for name in [*expected, *sorted(arrays)]:
        if (name in expected) != (name in arrays):
            found = "is missing" if name in expected else "is unknown"
            raise UserError(f"{where}: array {name!r} {found}; it must hold {', '.join(expected)}, and nothing else")
    lengths: dict[str, int] = {}
    for name, one in expected.items():
        _check(arrays[name], one, lengths, f"{where}: array {name!r}")
    return lengths


def _check(array: np.ndarray, expected: Expected, lengths: dict[str, int], where: str) -> None:
    dtype = "text" if array.dtype.kind == "U" else str(array.dtype)
    if dtype != expected.dtype:
        raise UserError(f"{where} must be of type {expected.dtype}; got {dtype}")
    known = [lengths.get(axis, "any") for axis in expected.axes]
    fits = array.ndim == len(known) and all(k in ("any", s) for k, s in zip(known, array.shape, strict=True))
    if not fits or not array.size:
        words = ", ".join(f"{axis} = {size}" for axis, size in zip(expected.axes, known, strict=True))
        raise UserError(f"{where} must have the axes {words}, none of them empty; got the shape {array.shape}")
    lengths.update(zip(expected.axes, array.shape, strict=True))
    if array.dtype.kind not in "iuf":
        return
    if array.dtype.kind == "f" and not np.isfinite(array).all():
        raise UserError(f"{where} must hold finite numbers; got {array[~np.isfinite(array)][0]}")
    low, high = array.min(), array.max()
    if (expected.least is not None and low < expected.least) or (expected.most is not None and high > expected.most):
        bounds = [f"{word} {value:g}" for word, value in (("at least", expected.least), ("at most", expected.most))
                  if value is not None]  # fmt: skip
        raise UserError(f"{where} must be {' and '.join(bounds)}; got {low} to {high}")


def check_distinct(array: np.ndarray, where: str) -> None:
    """Refuse an array, (n,), with a repeated value."""
    values, counts = np.unique(array, return_counts=True)
    if len(values) < len(array):
        raise UserError(f"{where} must hold each value once; got {values[counts.argmax()]} {counts.max()} times")


def declared_size(archive: zipfile.ZipFile, info: zipfile.ZipInfo) -> tuple[np.dtype, int, int]:
    """Return the type of an array in an ``.npz``, and its bytes: as its header declares, and as the archive does.

    Reads the header alone. Raises whatever the readers of zip and of arrays raise.
    """
    with archive.open(info) as member:
        version = np.lib.format.read_magic(member)
        read = np.lib.format.read_array_header_1_0 if version == (1, 0) else np.lib.format.read_array_header_2_0
        shape, _, dtype = read(member)
        return dtype, prod(shape) * dtype.itemsize, info.file_size - member.tell()


def check_sizes(archive: zipfile.ZipFile, size: int) -> None:
    """Refuse an ``.npz`` of ``size`` bytes that would unpack to more than it contains, before unpacking.

    Raises:
        ValueError: arrays are packed, larger or smaller than they declare, without values, or stand twice.
    """
    infos = archive.infolist()
    if len({info.filename for info in infos}) < len(infos):
        raise ValueError("an array occurs twice")
    if sum(info.file_size for info in infos) > size or any(info.compress_type for info in infos):
        raise ValueError("its arrays are larger than the file")
    for info in infos:
        dtype, declared, there = declared_size(archive, info)
        if declared != there or not dtype.itemsize or dtype.kind not in "biufU":
            raise ValueError(f"{info.filename} declares {declared:,} bytes of {dtype} and has {there:,}")
