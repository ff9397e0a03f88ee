"""Check of a release without the data: hashes, guarantees of the mechanism, and the pages."""

import os
from pathlib import Path

from dp_leakage import __version__
from dp_leakage.common.config import Json
from dp_leakage.common.dates import day, this_day
from dp_leakage.common.errors import UserError
from dp_leakage.common.paths import is_dir
from dp_leakage.release.card import pages
from dp_leakage.release.folder import (
    CARD,
    HASHES,
    MODEL,
    PRIVACY,
    SHEET,
    SHEET_PDF,
    WEIGHTS,
    WHOLE,
    as_json,
    content_of,
    digest_of,
    read_json,
)
from dp_leakage.release.statement import check_statement


def verify(folder: Path) -> list[str]:
    """Check every file of a release against its hash and recompute ε; return the confirmed statements.

    Raises:
        UserError: a file is missing, changed or not listed, or ε is not what the statement says.
    """
    if not is_dir(folder):
        raise UserError(f"{folder} must be the folder of a release; it does not exist")
    if not os.path.lexists(folder / HASHES):
        raise UserError(f"{folder} is not a release: {HASHES} is missing, which lists every file of one")
    listed = read_json(folder / HASHES)
    if content_of(folder / HASHES) != as_json(listed):
        raise UserError(
            f"{folder / HASHES} is not as a release writes it: it was cut or edited; the release is damaged"
        )
    try:
        found = sorted(path.name for path in folder.iterdir())
    except OSError as error:
        raise UserError(f"{folder} cannot be read: {error.strerror}; fix that, and run it again") from None
    for name in sorted({*listed, *found} - {HASHES}):
        if name not in found:
            raise UserError(f"{folder / name} is missing; {HASHES} lists it")
        if name not in listed:
            raise UserError(f"{folder / name} is not in {HASHES}; a release holds only what is listed there")
        if digest_of(folder / name) != listed[name]:
            raise UserError(f"{folder / name} has changed: its SHA-256 is not the one in {HASHES}")
    for name in WHOLE:
        if name not in listed:
            raise UserError(f"{folder / name} is missing; a release holds {', '.join(WHOLE)}")
    statement = read_json(folder / PRIVACY)
    if statement.get("files") != {name: listed[name] for name in (WEIGHTS, MODEL)}:
        raise UserError(
            f"{folder / PRIVACY}: key 'files' must be the SHA-256 of {WEIGHTS} and {MODEL}; it is of others"
        )
    said = check_statement(statement, str(folder / PRIVACY))
    compared = _check_pages(statement, folder)
    return [
        f"{len(listed)} files have the SHA-256 that {HASHES} lists.",
        *said,
        "The limits on every attack are those that this mechanism proves.",
        *compared,
        *_expired(statement),
        f"Not computed again: what the study measured and declared, {MODEL} and {SHEET_PDF}. "
        "Hashes do not show who wrote it.",
    ]


def _check_pages(statement: Json, folder: Path) -> list[str]:
    """Return a sentence on the pages in words; only the version that wrote them can reproduce them.

    Raises:
        UserError: a page differs from the statement.
    """
    if statement.get("made_by") != (ours := f"dp-leakage {__version__}"):
        return [f"{CARD} and {SHEET} were not compared with {PRIVACY}: {ours} did not write them."]
    try:
        written = pages(statement)
    except (KeyError, TypeError, ValueError, AttributeError, StopIteration) as error:
        raise UserError(
            f"{folder / PRIVACY} must be as a release writes it; {SHEET} cannot be made: {error!r}"
        ) from None
    for name, content in written.items():
        if content_of(folder / name) != content:
            raise UserError(f"{folder / name} must agree with {PRIVACY}; it differs")
    return [f"{' and '.join(written)} say what {PRIVACY} says."]


def _expired(statement: Json) -> list[str]:
    """Return a sentence if the release has expired, or if its expiry is not a date; otherwise none."""
    declared = statement.get("declared")
    expires = declared.get("expires") if isinstance(declared, dict) else None
    if expires is None:
        return []
    if (last := day(expires)) is None:
        return [
            f"Whether it has expired is not known: its last day is {str(expires)[:50]!r}, which is no day YYYY-MM-DD."
        ]
    return [f"It has expired: its last day was {last}. Its files are whole."] if last < this_day() else []
