"""Temporary folder shared by a process and its children, and removed with the process, however that ends."""

import atexit
import fcntl
import os
import shutil
import tempfile
from contextlib import suppress
from pathlib import Path

PREFIX = "dp_leakage-"
MARK = ".in_use"  # a file in such a folder; the process whose folder it is keeps it locked

_own: tuple[int, Path] | None = None  # process and folder


def own_folder() -> Path:
    """Return the temporary folder of this process and its children, unreadable for other users.

    Folders of killed processes are removed first.

    Raises:
        OSError: the folder cannot be created.
    """
    global _own
    if _own is None:
        sweep(Path(tempfile.gettempdir()))
        folder = Path(tempfile.mkdtemp(prefix=PREFIX))
        made = folder / f"{MARK}.new"
        fcntl.flock(os.open(made, os.O_CREAT | os.O_RDWR), fcntl.LOCK_EX)  # until this process ends
        made.rename(folder / MARK)  # so that `sweep` sees none that is not locked yet
        _own = os.getpid(), folder
        tempfile.tempdir = os.environ["TMPDIR"] = str(folder)
        atexit.register(remove)
    return _own[1]


def remove() -> None:
    """Remove the folder of this process, for an end without Python's own."""
    if _own is not None and _own[0] == os.getpid():
        shutil.rmtree(_own[1], ignore_errors=True)


def shared_folder() -> Path:
    """Return the folder for temporary files that independent processes share."""
    folder = Path(tempfile.gettempdir())
    return folder.parent if folder.name.startswith(PREFIX) else folder


def sweep(place: Path) -> None:
    """Remove the temporary folders of killed processes."""
    for mark in place.glob(f"{PREFIX}*/{MARK}"):
        with suppress(OSError):  # another user's, or gone meanwhile
            opened = os.open(mark, os.O_RDONLY | os.O_NOFOLLOW)
            try:
                fcntl.flock(opened, fcntl.LOCK_EX | fcntl.LOCK_NB)  # fails while the process lives
                shutil.rmtree(mark.parent, ignore_errors=True)
            finally:
                os.close(opened)
