"""Reading and writing of every cached file: atomic, without pickle, and each file says what made it.

A file carries its ``identity`` (a hash of the step's resolved settings, its code and the identities of what it was made
from), the settings themselves, and a digest of its content and of these. A reader that expects another identity, or
finds another digest, refuses the file by name.
"""

import glob
import json
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from hashlib import sha256
from pathlib import Path
from typing import Any
from uuid import uuid4

import numpy as np

from dp_leakage.errors import UserError

Json = dict[str, Any]
REBUILD = "delete it and run the same command again; only what depends on it is rebuilt"


@contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """Yields a temporary path beside ``path`` that takes its name once the block ends without an exception.

    Raises:
        UserError: the disk is full or may not be written; what was there before still is.
    """
    # The suffix stays last: writers such as matplotlib and numpy look at it.
    temporary = path.with_name(f".{path.stem}.{uuid4().hex[:8]}.part{path.suffix}")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        yield temporary
        with temporary.open("rb") as written:
            os.fsync(written.fileno())
        temporary.replace(path)
        for left in path.parent.glob(f".{glob.escape(path.stem)}.*.part{path.suffix}"):  # by a writer that was killed
            left.unlink(missing_ok=True)
    except OSError as error:
        why = error.strerror or str(error)
        raise UserError(f"{path} cannot be written: {why}; mend that and run the same command again") from None
    finally:
        with suppress(OSError):
            temporary.unlink(missing_ok=True)


def write_text(path: Path, text: str) -> None:
    """Writes UTF-8 text atomically."""
    with replacing(path) as temporary:
        temporary.write_text(text, encoding="utf-8")


def write_json(path: Path, value: object) -> None:
    """Writes JSON with sorted keys, atomically."""
    write_text(path, json.dumps(value, sort_keys=True, indent=1) + "\n")


def write_arrays(path: Path, arrays: Mapping[str, np.ndarray], provenance: Json) -> None:
    """Writes named arrays as ``.npz`` (uncompressed, no pickle) with their provenance."""
    stamp = np.array(json.dumps(provenance, sort_keys=True))
    with replacing(path) as temporary, temporary.open("wb") as out:
        np.savez(out, allow_pickle=False, **arrays, provenance=stamp)


def read_arrays(path: Path, identity: str | None = None) -> tuple[dict[str, np.ndarray], Json]:
    """Reads what ``write_arrays`` wrote: (arrays, provenance).

    Raises:
        UserError: damaged (the zip's checksums are verified), not ours, or of another identity.
    """
    with _refusing(path), np.load(path, allow_pickle=False) as archive:
        arrays = {name: archive[name] for name in archive.files}
        provenance = json.loads(str(arrays.pop("provenance")[()]))
    _check_identity(path, provenance, identity)
    return arrays, provenance


def write_tensors(path: Path, tensors: Mapping[str, np.ndarray], provenance: Json) -> None:
    """Writes named arrays as ``.safetensors``; the provenance and a digest of the content are its metadata."""
    from safetensors import SafetensorError
    from safetensors.numpy import save_file

    contiguous = {name: np.ascontiguousarray(array) for name, array in sorted(tensors.items())}
    # One key: the library writes several in an order that changes from run to run.
    stamp = json.dumps({"provenance": provenance, "digest": _digest(contiguous, provenance)}, sort_keys=True)
    with replacing(path) as temporary:
        try:
            save_file(contiguous, temporary, {"dp_leakage": stamp})
        except SafetensorError as error:  # a full disk, in the library's own class
            raise OSError(str(error)) from None


def read_tensors(path: Path, identity: str | None = None) -> tuple[dict[str, np.ndarray], Json]:
    """Reads what ``write_tensors`` wrote: (arrays, provenance). Raises UserError as ``read_arrays`` does."""
    from safetensors import safe_open

    with _refusing(path), safe_open(path, framework="numpy") as file:
        stamp = json.loads((file.metadata() or {})["dp_leakage"])
        tensors = {name: file.get_tensor(name) for name in sorted(file.keys())}
        if _digest(tensors, stamp["provenance"]) != stamp["digest"]:
            raise ValueError("its content does not match its own digest")
    _check_identity(path, stamp["provenance"], identity)
    return tensors, stamp["provenance"]


def write_table(path: Path, frame: Any, provenance: Json) -> None:
    """Writes a pandas DataFrame, or a mapping of columns, as ``.parquet``, with provenance and digest."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    columns = {name: frame[name] for name in frame}
    table = pa.table({name: pa.array(values) for name, values in columns.items()})
    stamp = {"provenance": json.dumps(provenance, sort_keys=True), "digest": _table_digest(table, provenance)}
    with replacing(path) as temporary:
        pq.write_table(table.replace_schema_metadata(stamp), temporary)


def read_table(path: Path, identity: str | None = None) -> tuple[Any, Json]:
    """Reads what ``write_table`` wrote: (pandas DataFrame, provenance). Raises UserError as ``read_arrays`` does."""
    import pyarrow.parquet as pq

    # One thread, no memory map: a job owns one core, and a file may be replaced while it is read.
    with _refusing(path), pq.ParquetFile(path, memory_map=False) as file:
        table = file.read(use_threads=False)
        metadata = {key.decode(): value.decode() for key, value in (table.schema.metadata or {}).items()}
        provenance = json.loads(metadata["provenance"])
        if file.metadata.metadata[b"provenance"].decode() != metadata["provenance"]:  # Parquet holds it twice
            raise ValueError("what it says of its making differs from itself")
        if _table_digest(table, provenance) != metadata["digest"]:
            raise ValueError("its content does not match its own digest")
    _check_identity(path, provenance, identity)
    return table.to_pandas(ignore_metadata=True), provenance


@contextmanager
def _refusing(path: Path) -> Iterator[None]:
    """Turns whatever a parser says about a missing, cut or foreign file into one sentence."""
    try:
        yield
    except FileNotFoundError:
        raise UserError(f"{path} is missing: run the step that makes it (snakemake does that by itself)") from None
    except (PermissionError, IsADirectoryError) as error:
        raise UserError(f"{path} cannot be read: {error.strerror}; give it back its read permission") from None
    except Exception as error:  # every parser has its own classes; this block does nothing but parse
        raise UserError(f"{path} is damaged or not a file of this workflow ({_first_line(error)}): {REBUILD}") from None


def _first_line(error: Exception) -> str:
    return (str(error).splitlines() or [type(error).__name__])[0][:160]


def _check_identity(path: Path, provenance: Json, identity: str | None) -> None:
    found = provenance.get("identity")
    if identity is not None and found != identity:
        made_by = provenance.get("settings", {})
        words = "/".join(str(made_by[key]) for key in ("study", "dataset", "model", "defense") if key in made_by)
        raise UserError(
            f"{path} was made by other settings or other code (it holds {words or 'an unknown cell'}, identity "
            f"{found}; expected {identity}): {REBUILD}"
        )


def _digest(arrays: Mapping[str, np.ndarray], provenance: Json) -> str:
    digest = sha256(json.dumps(provenance, sort_keys=True).encode())
    for name, array in sorted(arrays.items()):
        digest.update(f"{name}\0{array.dtype.str}\0{array.shape}\0".encode())
        digest.update(np.ascontiguousarray(array).view(np.uint8) if array.size else b"")
    return digest.hexdigest()


def _table_digest(table: Any, provenance: Json) -> str:
    digest = sha256(json.dumps(provenance, sort_keys=True).encode())
    for name in table.column_names:
        column = table.column(name).combine_chunks()
        digest.update(f"{name}\0{column.type}\0{len(column)}\0".encode())
        if str(column.type) in ("string", "large_string"):
            digest.update("\0".join("" if value is None else value for value in column.to_pylist()).encode())
        else:
            digest.update(np.ascontiguousarray(column.to_numpy(zero_copy_only=False)).tobytes())
    return digest.hexdigest()
