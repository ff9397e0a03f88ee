"""Files of an ONNX model: the model and any external weight files. Reads the format without its library.

A model is a message of protocol buffers (github.com/onnx/onnx, onnx.proto). A tensor anywhere in it may lie in another
file, which its ``external_data`` names.
"""

import mmap
import os
import stat
from collections.abc import Iterator
from functools import partial
from hashlib import sha256
from pathlib import Path, PurePosixPath
from typing import Any

from dp_leakage.common.errors import UserError
from dp_leakage.data.trees import content_of, is_folder

# A kind of message → the fields in which messages are that can hold tensors, and their kinds.
FIELDS: dict[str, dict[int, str]] = {
    "model": {7: "graph", 20: "training", 25: "function"},
    "training": {1: "graph", 2: "graph"},
    "graph": {1: "node", 5: "tensor", 15: "sparse"},
    "function": {7: "node", 11: "attribute"},
    "node": {5: "attribute"},
    "attribute": {5: "tensor", 6: "graph", 10: "tensor", 11: "graph", 22: "sparse", 23: "sparse"},
    "sparse": {1: "tensor", 2: "tensor"},
}
ENTRY, LOCATION, EXTERNAL = 13, 14, 1  # fields of a tensor: what describes the file, and whether there is one
DEEPEST = 100  # messages in messages, as the format's own library allows
FIXED = {1: 8, 5: 4}  # bytes of numbers of fixed length, by the kind of field
Part = tuple[int, int]  # where a message begins and ends


def content_of_model(path: Path) -> str:
    """Return the SHA-256 of a model with all of its files, so that an edit of any of them is noticed.

    Raises:
        UserError: as `data_files`.
    """
    digests = [content_of(file) for file in (path, *data_files(path))]
    return sha256(" ".join(digests).encode()).hexdigest() if len(digests) > 1 else digests[0]


def data_files(path: Path) -> list[Path]:
    """Return the files with weights that a model names, sorted; most models have none.

    Raises:
        UserError: the model cannot be read, or one of the files is not in the model's folder.
    """
    if is_folder(path):
        raise UserError(f"{path} is a folder; it must be an ONNX model")
    try:
        with path.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as content:
            names = sorted(set(_locations(content)))
    except (ValueError, IndexError, OSError) as error:
        raise UserError(f"{path} is not a readable ONNX model ({error})") from None
    return [_beside(path, name) for name in names]


def _beside(path: Path, name: str) -> Path:
    file, place = path.parent / name, PurePosixPath(name)
    plain = not place.is_absolute() and ".." not in place.parts and "\\" not in name and "\0" not in name
    if not plain or not os.path.realpath(file).startswith(os.path.realpath(path.parent) + os.sep):
        raise UserError(
            f"{path} has weights in {name!r}, which must be a file in the model's own folder; save it again"
        )
    if not os.path.isfile(file) or not stat.S_ISREG(os.stat(file).st_mode):
        raise UserError(f"{path} has weights in {name!r}, which must be in the same folder; put that file there")
    return file


def _locations(content: Any) -> Iterator[str]:
    """Yield the names of the files that store a model's tensors. Raises ValueError or IndexError for another
    format.
    """
    todo = [("model", (0, len(content)), 0)]
    while todo:
        kind, part, depth = todo.pop()
        if depth > DEEPEST:
            raise ValueError("its parts are nested too deeply")
        if kind == "tensor":
            yield from _location(content, part)
            continue
        for field, value in _fields(content, *part):
            if field in FIELDS[kind] and isinstance(value, tuple):
                todo.append((FIELDS[kind][field], value, depth + 1))


def _location(content: Any, part: Part) -> list[str]:
    """Return the name of a tensor's file, if it has one."""
    external, found = False, []
    for field, value in _fields(content, *part):
        if field == LOCATION:
            external = value == EXTERNAL
        elif field == ENTRY and isinstance(value, tuple):
            words = {key: content[slice(*text)] for key, text in _fields(content, *value) if isinstance(text, tuple)}
            if words.get(1) == b"location":
                found.append(words.get(2, b"").decode())
    return found if external else []


def _fields(content: Any, start: int, end: int) -> Iterator[tuple[int, int | Part]]:
    """Yield the fields of a message: number, and the value of a whole number or the range of a longer field."""
    number = partial(_whole, content)
    while start < end:
        key, start = number(start)
        field, kind = key >> 3, key & 7
        if kind == 0:
            value, start = number(start)
            yield field, value
        elif kind == 2 or kind in FIXED:
            length, start = number(start) if kind == 2 else (FIXED[kind], start)
            if start + length > end:
                raise ValueError("it ends early")
            yield field, (start, start + length)
            start += length
        else:
            raise ValueError(f"it has fields of kind {kind}")


def _whole(content: Any, start: int) -> tuple[int, int]:
    """Return a whole number of variable length, and where it ends."""
    value = 0
    for place in range(10):
        byte = content[start + place]
        value |= (byte & 127) << (7 * place)
        if byte < 128:
            return value, start + place + 1
    raise ValueError("a number has no end")
