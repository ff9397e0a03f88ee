"""The folder of a release: it is there whole or not at all, and its check needs nothing else."""

import fcntl
import json
import os
import shutil
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from hashlib import sha256
from pathlib import Path

from dp_leakage.common.config import Json
from dp_leakage.common.dates import day, this_day
from dp_leakage.common.errors import UserError
from dp_leakage.common.paths import is_dir, is_file
from dp_leakage.release.statement import check_statement, spent_in_words

PRIVACY, HASHES, CARD = "privacy.json", "hashes.json", "MODEL_CARD.md"
WEIGHTS, MODEL, SHEET, SHEET_PDF = "weights.safetensors", "model.onnx", "sheet.html", "sheet.pdf"
WHOLE = (PRIVACY, CARD, WEIGHTS, MODEL, SHEET, SHEET_PDF)  # what a release holds beside the hashes
LARGEST = 2**34  # bytes of a file that is read


def as_json(value: Json) -> bytes:
    """JSON for people and programs, with sorted keys."""
    return (json.dumps(value, indent=1, sort_keys=True, ensure_ascii=False) + "\n").encode()


def working_folder(folder: Path) -> Path:
    """Where an unfinished release keeps its state; it lies beside the folder, so that a rename is enough."""
    return folder.with_name(f".{folder.name}.unfinished")


@contextmanager
def alone(folder: Path) -> Iterator[Path]:
    """Yields the working folder of a release, which nobody else can open, to this process alone.

    Raises:
        UserError: another process works there, or it cannot be made.
    """
    working = working_folder(folder)
    try:
        working.mkdir(parents=True, exist_ok=True)
        working.chmod(0o700)
        place = os.open(working, os.O_RDONLY)
    except OSError as error:
        raise UserError(f"{working} cannot be made: {error.strerror}; mend that, or name another folder") from None
    try:
        fcntl.flock(place, fcntl.LOCK_EX | fcntl.LOCK_NB)
        yield working
    except BlockingIOError:
        raise UserError(f"{folder} is being made by another process; wait for it") from None
    finally:
        os.close(place)


def check_new(folder: Path) -> None:
    """Refuses with a UserError a folder that exists: a second release would spend its ε once more.

    Then it erases what a kill may have left beside that folder, after it was whole.
    """
    if os.path.lexists(folder):
        shutil.rmtree(working_folder(folder), ignore_errors=True)
        words = "each release of these records spends its ε again; keep this one, or remove it and add both ε"
        raise UserError(f"{folder} exists already; {words}")


def released_before(folder: Path, study: str) -> list[str]:
    """A sentence for each other release of the study that lies beside this folder, whatever its folder is called."""
    told = []
    for path in sorted(folder.parent.glob(f"*/{PRIVACY}")):
        try:
            statement = _json(path)
            if not _is_of(statement, path.parent, study):
                continue
            spent = spent_in_words(statement)
        except (UserError, KeyError, TypeError, ValueError):
            continue  # damaged, or no release: `verify` says so
        told.append(
            f"{path.parent} is of study {study} too, with {spent}. What is released of the same records adds up: "
            "for all releases together, the sum of their ε holds at the sum of their δ."
        )
    return told


def _is_of(statement: Json, folder: Path, study: str) -> bool:
    """Is this statement in a folder of the study? One of version 0.2 names none, but its folder usually does."""
    return bool(statement["study"] == study) if "study" in statement else folder.name.startswith(f"{study}-")


def write_release(folder: Path, files: Mapping[str, bytes]) -> None:
    """Writes all files and their hashes, and gives the folder its name at the end.

    A kill before that leaves only the hidden working folder, which the next run removes.

    Raises:
        UserError: the folder exists, or the disk is full or not writable.
    """
    whole = {**files, HASHES: as_json({name: sha256(content).hexdigest() for name, content in files.items()})}
    working = working_folder(folder)
    made = working / "whole"
    try:
        shutil.rmtree(made, ignore_errors=True)
        made.mkdir(parents=True)
        for name, content in whole.items():
            with (made / name).open("wb") as file:
                file.write(content)
                file.flush()
                os.fsync(file.fileno())
        _sync(made)
        made.rename(folder)  # fails if there is a folder with something in it
        _sync(folder.parent)
    except OSError as error:
        raise UserError(f"{folder} cannot be written: {error.strerror or error}; mend that and run it again") from None
    shutil.rmtree(working, ignore_errors=True)


def _sync(folder: Path) -> None:
    """Makes a new name in a folder survive a crash of the machine."""
    place = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(place)
    finally:
        os.close(place)


def verify(folder: Path) -> list[str]:
    """Checks every file of a release against its hash and computes ε again; returns what holds, in sentences.

    Raises:
        UserError: a file is missing, changed or not listed, or ε is not what the statement says.
    """
    if not is_dir(folder):
        raise UserError(f"{folder} must be the folder of a release; there is none")
    if not os.path.lexists(folder / HASHES):
        raise UserError(f"{folder} is no release: {HASHES} is missing, which lists every file of one")
    listed = _json(folder / HASHES)
    try:
        found = sorted(path.name for path in folder.iterdir())
    except OSError as error:
        raise UserError(f"{folder} cannot be read: {error.strerror}; mend that, and run it again") from None
    for name in sorted({*listed, *found} - {HASHES}):
        if name not in found:
            raise UserError(f"{folder / name} is missing; {HASHES} lists it")
        if name not in listed:
            raise UserError(f"{folder / name} is not in {HASHES}; a release holds only what is listed there")
        if sha256(_content(folder / name)).hexdigest() != listed[name]:
            raise UserError(f"{folder / name} has changed: its SHA-256 is not the one in {HASHES}")
    for name in WHOLE:
        if name not in listed:
            raise UserError(f"{folder / name} is missing; a release holds {', '.join(WHOLE)}")
    statement = _json(folder / PRIVACY)
    if statement.get("files") != {name: listed[name] for name in (WEIGHTS, MODEL)}:
        raise UserError(
            f"{folder / PRIVACY}: key 'files' must be the SHA-256 of {WEIGHTS} and {MODEL}; it is of others"
        )
    said = check_statement(statement, str(folder / PRIVACY))
    return [
        f"{len(listed)} files have the SHA-256 that {HASHES} lists.",
        *said,
        *_expired(statement),
        "Not computed again: everything else that the files say. Hashes do not show who wrote it.",
    ]


def _expired(statement: Json) -> list[str]:
    """A sentence if the release has expired, or if its last day is no day, as version 0.2 allowed; else none."""
    declared = statement.get("declared")
    expires = declared.get("expires") if isinstance(declared, dict) else None
    if expires is None:
        return []
    if (last := day(expires)) is None:
        return [
            f"Whether it has expired is not known: its last day is {str(expires)[:50]!r}, which is no day YYYY-MM-DD."
        ]
    return [f"It has expired: its last day was {last}. Its files are whole."] if last < this_day() else []


def _json(path: Path) -> Json:
    try:
        value = json.loads(_content(path))
    except (ValueError, RecursionError) as error:
        raise UserError(f"{path} is not JSON ({str(error)[:100]}); the release is damaged") from None
    if not isinstance(value, dict):
        raise UserError(f"{path} must hold a mapping; the release is damaged")
    return value


def _content(path: Path) -> bytes:
    if not is_file(path) or path.is_symlink():
        raise UserError(f"{path} must be a file; the release is not whole")
    if path.stat().st_size > LARGEST:
        raise UserError(f"{path} has {path.stat().st_size:,} bytes; it must have at most {LARGEST:,}")
    try:
        return path.read_bytes()
    except OSError as error:
        raise UserError(f"{path} cannot be read: {error.strerror}; mend that, and run it again") from None
