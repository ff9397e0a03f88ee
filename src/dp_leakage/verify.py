"""Are the files of a study whole? Quickly, by their sizes and ends; or to the last byte, by the digests they hold."""

import json
import struct
from collections.abc import Callable, Iterable
from pathlib import Path

from dp_leakage.errors import UserError
from dp_leakage.files import REBUILD, read_arrays, read_table, read_tensors

SHOWN = 5  # names in a complaint
ENDS = {".html": b"</html>", ".json": b"}", ".pdf": b"%%EOF", ".png": b"IEND\xaeB`\x82"}


def check_whole(paths: Iterable[Path]) -> None:
    """Refuse files that end early: a cut file with an old date is taken for a result as long as nothing reads it.

    A few bytes of each are read. Files that are missing are passed over: they will be made.

    Raises:
        UserError: names them.
    """
    _complain([str(path) for path in paths if not _ends_well(path)], "is damaged, too short or too long")


def check_content(paths: Iterable[Path]) -> int:
    """Refuse files whose content is not what was written, all of it read; returns how many were read.

    Arrays, models and tables hold their own digests, a figure's picture its own and that of its numbers.

    Raises:
        UserError: names them.
    """
    paths = [path for path in paths if path.suffix in READERS]
    bad = []
    for path in paths:
        try:
            READERS[path.suffix](path)
        except UserError:
            bad.append(str(path))
    _complain(bad, "is damaged")
    return len(paths)


def _complain(bad: list[str], what: str) -> None:
    if bad:
        more = f" and {len(bad) - SHOWN} more" if len(bad) > SHOWN else ""
        each = ", each" if len(bad) > 1 else ""
        raise UserError(f"{', '.join(bad[:SHOWN])}{more}{each} {what}: {REBUILD}")


def _ends_well(path: Path) -> bool:
    try:
        with path.open("rb") as file:
            size = file.seek(0, 2)
            file.seek(max(size - 64, 0))
            end = file.read()
            if path.suffix == ".safetensors":
                file.seek(0)
                return size == _tensors_size(file.read)
    except FileNotFoundError:
        return True
    except (OSError, ValueError, KeyError, TypeError, struct.error):
        return False
    if path.suffix == ".npz":
        at = end.rfind(b"PK\x05\x06")  # the directory's size and place, before a comment of length 0
        return 0 <= at == len(end) - 22 and sum(struct.unpack("<II", end[at + 12 : at + 20])) == size - 22
    if path.suffix == ".parquet":
        return end[-4:] == b"PAR1" and 0 < struct.unpack("<I", end[-8:-4])[0] < size
    if path.suffix == ".csv":
        return end.endswith(b"\n")
    return end.rstrip().endswith(ENDS.get(path.suffix, b""))


def _tensors_size(read: Callable[[int], bytes]) -> int:
    """Bytes that a ``.safetensors`` file must have by what its header says."""
    (length,) = struct.unpack("<Q", read(8))
    if length > 100_000_000:  # the format's own limit
        raise ValueError("no header")
    header = json.loads(read(length))
    ends = [tensor["data_offsets"][1] for name, tensor in header.items() if name != "__metadata__"]
    return 8 + length + max(ends, default=0)


def _figure(png: Path) -> None:
    from dp_leakage.figures.files import read_figure

    read_figure(png.with_suffix(".pdf"), png, png.with_suffix(".csv"))


def _ended(path: Path) -> None:
    check_whole([path])


READERS: dict[str, Callable[[Path], object]] = {
    ".npz": read_arrays,
    ".safetensors": read_tensors,
    ".parquet": read_table,
    ".png": _figure,  # with its csv
    ".pdf": _ended,
    ".html": _ended,
    ".json": _ended,
}
