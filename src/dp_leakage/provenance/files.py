"""Reading and writing of every cached file: atomic, without pickle, with embedded provenance.

A file carries its ``identity`` (a hash of the step's resolved settings, its code and the identities of its inputs),
the settings themselves, and a checksum: the SHA-256 of all its bytes, with zeros in place of the checksum's digits. A
reader that expects another identity, or finds one changed byte, refuses the file by name.
"""

import glob
import json
import os
import stat
import zipfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from hashlib import sha256
from mmap import ACCESS_READ, mmap
from pathlib import Path
from typing import Any
from uuid import uuid4

import numpy as np

from dp_leakage.common.errors import UserError
from dp_leakage.provenance.contents import check_sizes

Json = dict[str, Any]
REBUILD = "delete it and run the same command again; only what depends on it is rebuilt"
CHECKSUM = b"sha256 of this file: "  # its digits follow
DIGITS = 64
BLANK_CHECKSUM = CHECKSUM.decode() + "0" * DIGITS  # written into a file once; `_write_checksum` fills it
VALUES = 2**29  # the most in a table, 4 GB
CHECKSUM_AT_THE_END = (".npz", ".parquet")  # the other formats hold it before any text of the user's


@contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """Yield a temporary sibling of ``path``, which is renamed to ``path`` when the block ends without an exception.

    Raises:
        UserError: the disk is full or not writable. A file that was there before is unchanged.
    """
    # The suffix stays last: writers such as matplotlib and numpy look at it.
    temporary = path.with_name(f".{path.stem}.{uuid4().hex[:8]}.part{path.suffix}")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        yield temporary
        with temporary.open("rb") as written:
            os.fsync(written.fileno())
        temporary.replace(path)
        for left in path.parent.glob(f".{glob.escape(path.stem)}.*.part{path.suffix}"):  # by a killed writer
            left.unlink(missing_ok=True)
    except OSError as error:
        why = error.strerror or str(error)
        raise UserError(f"{path} cannot be written: {why}; fix that and run the same command again") from None
    finally:
        with suppress(OSError):
            temporary.unlink(missing_ok=True)


def write_text(path: Path, text: str) -> None:
    """Write UTF-8 text atomically."""
    with replacing(path) as temporary:
        temporary.write_text(text, encoding="utf-8")


def write_page(path: Path, text: str) -> None:
    """Write a text with its checksum. The text holds `BLANK_CHECKSUM` before anything that users wrote."""
    with replacing(path) as temporary:
        temporary.write_text(text, encoding="utf-8")
        _write_checksum(temporary)


def write_json(path: Path, value: Json) -> None:
    """Write JSON with sorted keys, atomically, with an embedded checksum."""
    write_page(path, json.dumps({"digest": BLANK_CHECKSUM} | value, sort_keys=True, indent=1) + "\n")


def read_json(path: Path) -> Json:
    """Read what ``write_json`` wrote, with its checksum. Raises UserError as ``read_arrays`` does."""
    verify_checksum(path)
    with _refusing(path):
        value: Json = json.loads(path.read_text(encoding="utf-8"))
    return value


def write_arrays(path: Path, arrays: Mapping[str, np.ndarray], provenance: Json) -> None:
    """Write named arrays as ``.npz`` (uncompressed, no pickle) and provenance; the checksum is its comment."""
    stamp = np.array(json.dumps(provenance, sort_keys=True))
    with replacing(path) as temporary:
        with temporary.open("wb") as out:
            np.savez(out, allow_pickle=False, **arrays, provenance=stamp)
        with zipfile.ZipFile(temporary, "a") as archive:
            archive.comment = BLANK_CHECKSUM.encode()
        _write_checksum(temporary)


def read_arrays(path: Path, identity: str | None = None) -> tuple[dict[str, np.ndarray], Json]:
    """Read what ``write_arrays`` wrote: (arrays, provenance).

    Raises:
        UserError: the file is damaged, not one of ours, or of another identity.
    """
    verify_checksum(path)
    with _refusing(path), zipfile.ZipFile(path) as packed:
        check_sizes(packed, path.stat().st_size)
    with _refusing(path), np.load(path, allow_pickle=False) as archive:
        arrays = {name: archive[name] for name in archive.files}
        provenance = json.loads(str(arrays.pop("provenance")[()]))
    _check_identity(path, provenance, identity)
    return arrays, provenance


def write_tensors(path: Path, tensors: Mapping[str, np.ndarray], provenance: Json) -> None:
    """Write named arrays as ``.safetensors``; the provenance and the checksum are its metadata."""
    from safetensors import SafetensorError
    from safetensors.numpy import save_file

    contiguous = {name: np.ascontiguousarray(array) for name, array in sorted(tensors.items())}
    # One key: the library writes several in an order that changes from run to run.
    stamp = json.dumps({"digest": BLANK_CHECKSUM, "provenance": provenance}, sort_keys=True)
    with replacing(path) as temporary:
        try:
            save_file(contiguous, temporary, {"dp_leakage": stamp})
        except SafetensorError as error:  # the library's own exception for a full disk
            raise OSError(str(error)) from None
        _write_checksum(temporary)


def read_tensors(path: Path, identity: str | None = None) -> tuple[dict[str, np.ndarray], Json]:
    """Read what ``write_tensors`` wrote: (arrays, provenance). Raises UserError as ``read_arrays`` does."""
    from safetensors import safe_open

    verify_checksum(path)
    with _refusing(path), safe_open(path, framework="numpy") as file:
        provenance = json.loads(file.metadata()["dp_leakage"])["provenance"]
        tensors = {name: file.get_tensor(name) for name in sorted(file.keys())}
    _check_identity(path, provenance, identity)
    return tensors, provenance


def write_table(path: Path, frame: Any, provenance: Json) -> None:
    """Write a pandas DataFrame, or a mapping of columns, as ``.parquet``, with provenance and checksum."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    columns = {name: frame[name] for name in frame}
    table = pa.table({name: pa.array(values) for name, values in columns.items()})
    stamp = {"provenance": json.dumps(provenance, sort_keys=True), "digest": BLANK_CHECKSUM}
    with replacing(path) as temporary:
        pq.write_table(table.replace_schema_metadata(stamp), temporary)
        _write_checksum(temporary)


def read_table(path: Path, identity: str | None = None, columns: Sequence[str] | None = None) -> tuple[Any, Json]:
    """Read what ``write_table`` wrote, or only some columns: (pandas DataFrame, provenance).

    Raises UserError as ``read_arrays`` does.
    """
    import pyarrow.parquet as pq

    verify_checksum(path)
    # One thread, no memory map: a job owns one core, and a file may be replaced while it is read.
    with _refusing(path), pq.ParquetFile(path, memory_map=False) as file:
        if file.metadata.num_rows * file.metadata.num_columns > VALUES:  # a few bytes can declare any number of rows
            raise ValueError(f"it declares {file.metadata.num_rows:,} rows")
        table = file.read(columns=columns and list(columns), use_threads=False)
        provenance = json.loads(table.schema.metadata[b"provenance"])
    _check_identity(path, provenance, identity)
    return table.to_pandas(ignore_metadata=True), provenance


def is_current(path: Path, identity: str) -> bool:
    """Return whether a complete file with this identity exists at ``path``, so that it need not be made. JSON has no
    identity: its checksum suffices.
    """
    try:
        if path.suffix == ".json":
            read_json(path)
        else:
            READERS[path.suffix](path, identity)
    except UserError:
        return False
    return True


def check_made(path: Path, known: str) -> None:
    """Refuse a file that is damaged, or whose identity is not among the known ones.

    Raises:
        UserError: names the file.
    """
    _, made = READERS[path.suffix](path)
    if str(made.get("identity")) not in known:
        _check_identity(path, made, "one of the job's settings")


READERS: dict[str, Callable[..., tuple[Any, Json]]] = {
    ".parquet": read_table,
    ".npz": read_arrays,
    ".safetensors": read_tensors,
}


def verify_checksum(path: Path) -> None:
    """Read a file to its last byte.

    Raises:
        UserError: a byte differs from what was written, the file has no checksum, or it is a pipe or a device.
    """
    with _refusing(path):
        if not stat.S_ISREG(os.stat(path).st_mode):  # reading it might never end
            raise ValueError("it is not a regular file")
        with path.open("rb") as file, mmap(file.fileno(), 0, access=ACCESS_READ) as content:  # it may outgrow memory
            place = _index_of_checksum(content, path.suffix)
            if content[place : place + DIGITS] != _digits(content, place):
                raise ValueError("its content does not match its own digest")


def _write_checksum(path: Path) -> None:
    content = path.read_bytes()
    place = _index_of_checksum(content, path.suffix)
    with path.open("r+b") as file:
        file.seek(place)
        file.write(_digits(content, place))


def _index_of_checksum(content: bytes | mmap, suffix: str) -> int:
    """Return the index of the checksum's digits. Raises ValueError."""
    found = content.rfind(CHECKSUM) if suffix in CHECKSUM_AT_THE_END else content.find(CHECKSUM)
    if found < 0:
        raise ValueError("it has no digest")
    return found + len(CHECKSUM)


def _digits(content: bytes | mmap, place: int) -> bytes:
    with memoryview(content) as view, view[:place] as before, view[place + DIGITS :] as after:
        digest = sha256(before)
        digest.update(b"0" * DIGITS)
        digest.update(after)
    return digest.hexdigest().encode()


@contextmanager
def _refusing(path: Path) -> Iterator[None]:
    """Turn any error of a parser about a missing, cut or foreign file into one sentence."""
    try:
        yield
    except FileNotFoundError:
        raise UserError(f"{path} is missing: run the step that makes it (snakemake does that by itself)") from None
    except (PermissionError, IsADirectoryError) as error:
        raise UserError(f"{path} cannot be read: {error.strerror}; restore its read permission") from None
    except Exception as error:  # every parser has exceptions of its own; this block does nothing but parse
        raise UserError(f"{path} is damaged or not a file of this workflow ({_first_line(error)}): {REBUILD}") from None


def _first_line(error: Exception) -> str:
    return (str(error).splitlines() or [type(error).__name__])[0][:160]


def _check_identity(path: Path, provenance: Any, identity: str | None) -> None:
    if not isinstance(provenance, dict) or not isinstance(provenance.get("settings", {}), dict):
        raise UserError(f"{path} does not say how it was made: {REBUILD}")
    found = provenance.get("identity")
    if identity is not None and found != identity:
        made_by = provenance.get("settings", {})
        words = "/".join(str(made_by[key]) for key in ("study", "dataset", "model", "defense") if key in made_by)
        raise UserError(
            f"{path} was made by other settings or other code (it holds {words or 'an unknown cell'}, identity "
            f"{found}; expected {identity}): {REBUILD}"
        )
