"""Folder of a release: complete or absent, and self-contained for its check."""

import fcntl
import json
import os
import re
import shutil
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from hashlib import file_digest, sha256
from io import BufferedReader
from pathlib import Path

from dp_leakage.common.config import Json
from dp_leakage.common.errors import UserError
from dp_leakage.common.paths import is_dir, is_file
from dp_leakage.release.statement import spent_in_words

PRIVACY, HASHES, CARD = "privacy.json", "hashes.json", "MODEL_CARD.md"
WEIGHTS, MODEL, SHEET, SHEET_PDF = "weights.safetensors", "model.onnx", "sheet.html", "sheet.pdf"
WHOLE = (PRIVACY, CARD, WEIGHTS, MODEL, SHEET, SHEET_PDF)  # what a release holds beside the hashes
LEFT = re.compile(r"whole|(\..*)?(audit|best|training[0-9]+)\..*")  # names in the folder of an unfinished release
LARGEST = 2**32  # bytes of a file that is hashed; ONNX has at most half of that
LONGEST = 2**26  # bytes of a text, which is read whole


def as_json(value: Json) -> bytes:
    """Return JSON for people and programs, with keys in the order of the pages."""
    return (json.dumps(value, indent=1, ensure_ascii=False) + "\n").encode()


def working_folder(folder: Path) -> Path:
    """Return the folder for an unfinished release; it is a sibling of the final folder, so that a rename completes
    it.
    """
    return folder.parent / f".{folder.name}.unfinished"


def is_unfinished(working: Path) -> bool:
    """Return whether a folder holds only files of an unfinished release."""
    if working.is_symlink() or not is_dir(working):
        return False
    return all(LEFT.fullmatch(path.name) for path in working.iterdir())


@contextmanager
def alone(folder: Path) -> Iterator[Path]:
    """Yield the working folder of a release, unreadable for other users, to this process alone.

    Raises:
        UserError: another process works there, or it cannot be made.
    """
    working = working_folder(folder)
    try:
        if os.path.lexists(working) and not is_unfinished(working):
            raise UserError(f"{working} is not a release's; rename it, or name another folder for the release")
        working.mkdir(parents=True, exist_ok=True)
        working.chmod(0o700)
        place = os.open(working, os.O_RDONLY)
    except OSError as error:
        raise UserError(f"{working} cannot be made: {error.strerror}; fix that, or name another folder") from None
    try:
        fcntl.flock(place, fcntl.LOCK_EX | fcntl.LOCK_NB)
        yield working
    except BlockingIOError:
        raise UserError(f"{folder} is being made by another process; wait for it") from None
    finally:
        os.close(place)


def check_new(folder: Path) -> None:
    """Raise UserError if the folder exists: a second release would spend its ε again.

    Otherwise, remove leftovers of a killed process.
    """
    if os.path.lexists(folder):
        if is_unfinished(working_folder(folder)):
            shutil.rmtree(working_folder(folder), ignore_errors=True)
        words = "each release of these records spends its ε again; keep this one, or remove it and add both ε"
        raise UserError(f"{folder} exists already; {words}")


def released_before(folder: Path, study: str) -> list[str]:
    """Return a sentence for each other release of the study in the same parent folder, whatever its name."""
    told = []
    for path in sorted(folder.parent.glob(f"*/{PRIVACY}")):
        try:
            statement = read_json(path)
            if statement["study"] != study:
                continue
            spent = spent_in_words(statement)
        except (UserError, KeyError, TypeError, ValueError):
            continue  # damaged, or no release: `verify` says so
        told.append(
            f"{path.parent} is of study {study} too, with {spent}. What is released of the same records adds up: "
            "for all releases together, the sum of their ε holds at the sum of their δ."
        )
    return told


def write_release(folder: Path, files: Mapping[str, bytes]) -> None:
    """Write all files and their hashes, and rename the folder at the end.

    After a kill only the hidden working folder remains, which the next run removes.

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
        raise UserError(f"{folder} cannot be written: {error.strerror or error}; fix that and run it again") from None
    shutil.rmtree(working, ignore_errors=True)


def _sync(folder: Path) -> None:
    """Make a new name in a folder survive a crash of the machine."""
    place = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(place)
    finally:
        os.close(place)


def read_json(path: Path) -> Json:
    """Return the mapping in a JSON file of a release. UserError if there is none."""
    try:
        value = json.loads(content_of(path))
    except (ValueError, RecursionError) as error:
        raise UserError(f"{path} is not JSON ({str(error)[:100]}); the release is damaged") from None
    if not isinstance(value, dict):
        raise UserError(f"{path} must hold a mapping; the release is damaged")
    return value


def content_of(path: Path) -> bytes:
    """Return the bytes of a text of a release. UserError if it is not a file, or too large."""
    with _opened(path, LONGEST) as file:
        return file.read()


def digest_of(path: Path) -> str:
    """Return the SHA-256 of a release's file, read in pieces. UserError if it is not a file, or too large."""
    with _opened(path, LARGEST) as file:
        return file_digest(file, "sha256").hexdigest()


@contextmanager
def _opened(path: Path, most: int) -> Iterator[BufferedReader]:
    """Open a file of limited size. Raises UserError if it is missing, larger or unreadable."""
    if not is_file(path) or path.is_symlink():
        raise UserError(f"{path} must be a file; the release is incomplete")
    if path.stat().st_size > most:
        raise UserError(f"{path} has {path.stat().st_size:,} bytes; it must have at most {most:,}")
    try:
        with path.open("rb") as file:
            yield file
    except OSError as error:
        raise UserError(f"{path} cannot be read: {error.strerror}; fix that, and run it again") from None
