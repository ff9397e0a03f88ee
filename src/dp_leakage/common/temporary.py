"""One temporary folder for a process and all that it starts, which goes with the process, however that ends."""

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
    """Return the folder for temporary files of this process and of those that it starts, which nobody else can read.

    Folders of processes that were killed are removed first.

    Raises:
        OSError: it cannot be made.
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
    """Return the folder for temporary files that processes share which do not know of each other."""
    folder = Path(tempfile.gettempdir())
    return folder.parent if folder.name.startswith(PREFIX) else folder


def sweep(place: Path) -> None:
    """Remove the folders in a place whose processes were killed."""
    for mark in place.glob(f"{PREFIX}*/{MARK}"):
        with suppress(OSError):  # another user's, or gone meanwhile
            opened = os.open(mark, os.O_RDONLY | os.O_NOFOLLOW)
            try:
                fcntl.flock(opened, fcntl.LOCK_EX | fcntl.LOCK_NB)  # fails while the process lives
                shutil.rmtree(mark.parent, ignore_errors=True)
            finally:
                os.close(opened)
