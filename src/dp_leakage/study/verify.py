"""Checks that a study's files are whole: quickly by their sizes and ends, or completely by the digests they hold."""

import json
import struct
from collections.abc import Callable, Iterable
from pathlib import Path

from dp_leakage.common.errors import UserError
from dp_leakage.provenance.files import REBUILD, check_seal

SHOWN = 5  # the most names in a complaint
END = 256  # bytes that are read at a file's end
ENDS = {".html": b"</html>", ".json": b"}", ".pdf": b"%%EOF", ".png": b"IEND\xaeB`\x82"}


def check_whole(paths: Iterable[Path]) -> None:
    """Refuses files that end early. Otherwise a cut file with an old date would count as a result until something reads
    it.

    Reads a few bytes of each file. Skips missing files, since they will be made.

    Raises:
        UserError: names them.
    """
    _complain([str(path) for path in paths if not _ends_well(path)], "is damaged, too short or too long")


def check_content(paths: Iterable[Path]) -> int:
    """Refuses files in which even one byte has changed; returns how many were read.

    Each file holds a digest of itself. A figure's PNG holds the digests of its CSV and its PDF.

    Raises:
        UserError: names them.
    """
    paths = [path for path in paths if path.suffix in CHECKS]
    bad = []
    for path in paths:
        try:
            CHECKS[path.suffix](path)
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
            file.seek(max(size - END, 0))
            end = file.read()
            if path.suffix == ".safetensors":
                file.seek(0)
                return size == _tensors_size(file.read)
    except FileNotFoundError:
        return True
    except (OSError, ValueError, KeyError, TypeError, struct.error):
        return False
    if path.suffix == ".npz":
        return _directory_ends(end, size)
    if path.suffix == ".parquet":
        return end[-4:] == b"PAR1" and 0 < struct.unpack("<I", end[-8:-4])[0] < size
    if path.suffix == ".csv":
        return end.endswith(b"\n")
    return end.rstrip().endswith(ENDS.get(path.suffix, b""))


def _directory_ends(end: bytes, size: int) -> bool:
    """Whether a zip of this size has its directory where its end says, and nothing after its comment."""
    at = end.rfind(b"PK\x05\x06")
    if not 0 <= at <= len(end) - 22:
        return False
    length, place, comment = struct.unpack("<IIH", end[at + 12 : at + 22])
    return at + 22 + comment == len(end) and length + place + 22 + comment == size


def _tensors_size(read: Callable[[int], bytes]) -> int:
    """The size in bytes that the header of a ``.safetensors`` file implies."""
    (length,) = struct.unpack("<Q", read(8))
    if length > 100_000_000:  # the format's own limit
        raise ValueError("no header")
    header = json.loads(read(length))
    ends = [tensor["data_offsets"][1] for name, tensor in header.items() if name != "__metadata__"]
    return 8 + length + max(ends, default=0)


def _of_figure(path: Path) -> None:
    from dp_leakage.figures.files import check_file

    check_file(path)


CHECKS: dict[str, Callable[[Path], None]] = {
    **dict.fromkeys((".npz", ".safetensors", ".parquet", ".json", ".html"), check_seal),
    **dict.fromkeys((".png", ".pdf", ".csv"), _of_figure),
}
