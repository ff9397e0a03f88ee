"""One way to look into a folder, a zip and a tar: names and bytes. Nothing is ever unpacked to the disk."""

import hashlib
import posixpath
import tarfile
import zipfile
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path, PurePosixPath
from typing import NamedTuple

from dp_leakage.errors import UserError

_DAMAGE = (
    zipfile.BadZipFile,
    tarfile.TarError,
    zlib.error,
    EOFError,
    OSError,
    NotImplementedError,
    RuntimeError,
)


class Tree(NamedTuple):
    """Files by their names below a root.

    Attributes:
        path: the folder or archive itself.
        names: sorted, with forward slashes.
        read: name → bytes; raises UserError where they cannot be had.
    """

    path: Path
    names: tuple[str, ...]
    read: Callable[[str], bytes]


@contextmanager
def open_tree(path: Path, wanted: Callable[[str], bool] = lambda name: True) -> Iterator[Tree]:
    """The files of a folder, a zip or a tar (compressed or not) for which ``wanted(name)`` holds.

    Archives are refused if any name leads out of their root, and tars with devices or links to the outside (Python's
    own ``data`` filter came with 3.11.4, and Debian 12 has 3.11.2). A tar's wanted files are held in memory, since a
    compressed tar cannot be read in another order than its own at a bearable cost.

    Raises:
        UserError: the path is missing, not such a thing, damaged, or its names are unsafe.
    """
    if not path.exists():
        raise UserError(f"{path}: no such file or folder")
    if path.is_dir():
        names = (p.relative_to(path).as_posix() for p in path.rglob("*") if p.is_file())
        yield Tree(
            path,
            tuple(sorted(filter(wanted, names))),
            _guarded(path, lambda name: (path / name).read_bytes()),
        )
    elif _is_zip(path):
        with _open(path, zipfile.ZipFile) as archive:
            names = [name for name in archive.namelist() if not name.endswith("/")]
            for name in names:
                if _leads_out(name):
                    raise _unsafe(path, name)
            yield Tree(path, tuple(sorted(filter(wanted, names))), _guarded(path, archive.read))
    else:
        files = _read_tar(path, wanted)
        yield Tree(path, tuple(sorted(files)), files.__getitem__)


def sha256_of(path: Path) -> str:
    """SHA-256 of a file's bytes, in hexadecimal."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def sha256_of_parts(parts: Iterator[tuple[str, bytes]]) -> str:
    """SHA-256 over (name, bytes) pairs, a folder's: it changes with any name, any byte and the order."""
    total = hashlib.sha256()
    for name, content in parts:
        total.update(name.encode() + b"\0" + hashlib.sha256(content).digest())
    return total.hexdigest()


def content_of(path: Path) -> str:
    """SHA-256 of a user's own data: of the bytes of a file, or of the names and bytes in a folder (hidden files apart).

    Never of times, so that a copy or a touched file is the same data. 100 MB take about a tenth of a second, 10,000
    images about a second once the system has them in its memory.

    Raises:
        UserError: there is no such file or folder, or it cannot be read.
    """
    try:
        if path.is_file():
            return sha256_of(path)
        with open_tree(path, lambda name: not any(part.startswith(".") for part in name.split("/"))) as tree:
            return sha256_of_parts((name, tree.read(name)) for name in tree.names)
    except OSError as error:
        raise UserError(f"{path}: cannot be read ({error.strerror})") from None


def _is_zip(path: Path) -> bool:
    # By its first bytes: zipfile.is_zipfile looks at the end, which a truncated zip has lost.
    with path.open("rb") as file:
        return path.suffix.lower() == ".zip" or file.read(4) == b"PK\x03\x04"


def _read_tar(path: Path, wanted: Callable[[str], bool]) -> dict[str, bytes]:
    files = {}
    with _open(path, tarfile.open) as archive:
        try:
            for member in archive:
                if _leads_out(member.name) or member.isdev() or _links_out(member):
                    raise _unsafe(path, member.name)
                if member.isfile() and wanted(member.name):
                    files[str(PurePosixPath(member.name))] = archive.extractfile(member).read()
        except _DAMAGE as error:
            raise _damaged(path, error) from error
    return files


def _leads_out(name: str) -> bool:
    place = PurePosixPath(name.replace("\\", "/"))
    return place.is_absolute() or ".." in place.parts


def _links_out(member: tarfile.TarInfo) -> bool:
    if not (member.issym() or member.islnk()):
        return False
    folder = posixpath.dirname(member.name) if member.issym() else ""  # hard links are named from the root
    return _leads_out(posixpath.normpath(posixpath.join(folder, member.linkname)))


def _unsafe(path: Path, name: str) -> UserError:
    return UserError(f"{path}: the member {name!r} is not allowed in an archive; valid are files inside it")


def _guarded(path: Path, read: Callable[[str], bytes]) -> Callable[[str], bytes]:
    def guarded(name: str) -> bytes:
        try:
            return read(name)
        except _DAMAGE as error:
            raise _damaged(path / name, error) from error

    return guarded


def _open(path: Path, opener: Callable):
    try:
        return opener(path)
    except _DAMAGE as error:
        raise _damaged(path, error) from error


def _damaged(path: Path, error: Exception) -> UserError:
    reason = str(error).splitlines()[0] if str(error) else type(error).__name__
    return UserError(f"{path}: cannot be read, it is damaged or no zip or tar archive ({reason})")
