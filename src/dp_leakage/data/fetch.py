"""Published files: found below ``data_dir``, or downloaded if a published checksum can confirm them."""

import hashlib
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

from dp_leakage.common.errors import UserError

TIMEOUT = 30  # seconds without a byte


class Remote(NamedTuple):
    """A published file.

    Attributes:
        file: its name.
        url: address of the file.
        checksum: ``md5:…`` or ``sha256:…`` as published; None if none is published, and then the file is never
            downloaded.
    """

    file: str
    url: str
    checksum: str | None


def find(data_dir: Path, dataset: str, names: Iterable[str]) -> Path | None:
    """Return the first of ``names`` that exists in ``data_dir/dataset`` or in ``data_dir``, or None."""
    places = [data_dir / dataset / name for name in names] + [data_dir / name for name in names]
    return next((place for place in places if place.exists()), None)


def download(remote: Remote, folder: Path, dataset: str) -> Path:
    """Download ``remote`` to ``folder``, complete and with the published checksum; otherwise write no file.

    Raises:
        UserError: there is no published checksum, no connection, or the bytes are wrong. The message says which file to
            put where by hand.
    """
    target = folder / remote.file
    by_hand = f"put the file from {remote.url} at {target} by hand"
    if remote.checksum is None:
        raise UserError(
            f"{dataset}: {target} is missing and not downloaded, as no checksum of it is published; {by_hand}"
        )
    import pooch
    import requests

    downloader = pooch.HTTPDownloader(progressbar=sys.stderr.isatty(), timeout=TIMEOUT)
    try:
        folder.mkdir(parents=True, exist_ok=True)
        # pooch writes to a temporary file and renames it only if the checksum is right.
        pooch.retrieve(remote.url, remote.checksum, fname=remote.file, path=folder, downloader=downloader)
    except requests.RequestException as error:
        raise UserError(
            f"{dataset}: {remote.url} could not be downloaded ({type(error).__name__}); {by_hand}"
        ) from error
    except ValueError as error:
        raise UserError(
            f"{dataset}: {remote.url} gave other bytes than those of the published checksum "
            f"{remote.checksum}; {by_hand}"
        ) from error
    except OSError as error:
        raise UserError(f"{dataset}: {target} could not be written ({error.strerror or error}); {by_hand}") from error
    return target


def checksum_note(path: Path, remote: Remote) -> str:
    """State whether a found file equals the published one, byte for byte."""
    if remote.checksum is None:
        return f"{path.name}: no checksum is published; its structure was checked."
    kind, published = remote.checksum.split(":")
    with path.open("rb") as file:
        same = hashlib.file_digest(file, kind).hexdigest() == published
    found = "as published" if same else "differs from the published one (a repacked or altered copy)"
    return f"{path.name}: {kind} {found}; its structure was checked."
