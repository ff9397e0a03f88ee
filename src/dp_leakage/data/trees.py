"""One interface to the names and bytes in a folder, a zip or a tar. Nothing is ever unpacked to disk."""

import hashlib
import lzma
import posixpath
import stat
import struct
import tarfile
import zipfile
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from itertools import islice
from pathlib import Path, PurePosixPath
from typing import NamedTuple, TypeVar

from dp_leakage.common.errors import UserError

T = TypeVar("T")

_DAMAGE = (
    zipfile.BadZipFile,
    tarfile.TarError,
    zlib.error,
    lzma.LZMAError,
    EOFError,
    OSError,
    NotImplementedError,
    RuntimeError,
    ValueError,
    OverflowError,
    struct.error,
)
MAX_FILE = 2**30  # bytes of one file in an archive, more than any image or array of ours has
MAX_COUNT = 200_000
MAX_FILES = 8 * 2**30  # bytes of all files together


class Tree(NamedTuple):
    """Files by their names below a root.

    Attributes:
        path: the folder or archive itself.
        names: sorted, with forward slashes.
        read: name → bytes; raises UserError if they cannot be read.
    """

    path: Path
    names: tuple[str, ...]
    read: Callable[[str], bytes]


@contextmanager
def open_tree(path: Path, wanted: Callable[[str], bool] = lambda name: True) -> Iterator[Tree]:
    """Open the files of a folder, a zip or a tar (compressed or not) for which ``wanted(name)`` holds.

    An archive is refused if any name leads out of its root, and a tar if it has devices or links to the outside.
    (Python's own ``data`` filter came with 3.11.4, and Debian 12 has 3.11.2.) A tar's wanted files are held in memory,
    since reading a compressed tar in any order but its own is too slow.

    Raises:
        UserError: the path is missing, neither a folder nor an archive, damaged, or has unsafe names.
    """
    if is_folder(path):
        names = _names(path, (p.relative_to(path).as_posix() for p in path.rglob("*") if p.is_file()), wanted)
        sizes = {name: (path / name).stat().st_size for name in names}
        _check_sizes(path, sizes)
        yield Tree(path, names, _guarded(path, lambda name: (path / name).read_bytes()))
    elif _is_zip(path):
        with _open(path, zipfile.ZipFile) as archive:
            infos = [info for info in archive.infolist() if not info.is_dir()]
            for info in infos:
                if _leads_out(info.filename):
                    raise _unsafe(path, info.filename)
            names = _names(path, (info.filename for info in infos), wanted)
            if len(set(names)) < len(names):
                twice = next(name for name in names if names.count(name) > 1)
                raise UserError(f"{path}: duplicate member {twice!r}; keep one")
            _check_sizes(path, {info.filename: info.file_size for info in infos if info.filename in set(names)})
            yield Tree(path, names, _guarded(path, archive.read))
    else:
        files = _read_tar(path, wanted)
        yield Tree(path, _names(path, files, wanted), files.__getitem__)


def is_folder(path: Path) -> bool:
    """Return whether one of the user's paths is a folder rather than a file.

    Raises:
        UserError: it is neither: nothing, or a device, a socket or a pipe, which may have no end.
    """
    try:
        mode = path.stat().st_mode
    except (FileNotFoundError, NotADirectoryError):
        raise UserError(f"{path}: no such file or folder") from None
    except (OSError, ValueError) as error:  # a name of 300 letters, a loop of links, a folder without permission
        raise UserError(f"{path}: cannot be read ({getattr(error, 'strerror', None) or error})") from None
    if not (stat.S_ISDIR(mode) or stat.S_ISREG(mode)):
        raise UserError(f"{path}: is neither a file nor a folder; use one of them")
    return stat.S_ISDIR(mode)


def _names(path: Path, names: Iterable[str], wanted: Callable[[str], bool]) -> tuple[str, ...]:
    """Return the requested names, sorted. Raises UserError if there are too many, or one is not valid UTF-8."""
    found = sorted(islice(filter(wanted, names), MAX_COUNT + 1))
    if len(found) > MAX_COUNT:
        raise UserError(f"{path}: has more than {MAX_COUNT:,} files; name the folder of the data alone")
    for name in found:
        if any("\ud800" <= letter <= "\udfff" for letter in name):
            raise UserError(f"{path}: the name {name!r} is not UTF-8 text; rename it")
    return tuple(found)


def _check_sizes(path: Path, sizes: Mapping[str, int]) -> None:
    for name, size in sizes.items():
        if size > MAX_FILE:
            raise UserError(f"{path}: {name!r} has {size:,} bytes; expected up to {MAX_FILE:,}")
    if sum(sizes.values()) > MAX_FILES:
        raise UserError(f"{path}: its files have {sum(sizes.values()):,} bytes; expected up to {MAX_FILES:,}")


def sha256_of(path: Path) -> str:
    """Return the SHA-256 of a file's bytes, in hexadecimal."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def sha256_of_parts(parts: Iterator[tuple[str, bytes]]) -> str:
    """Return the SHA-256 over the (name, bytes) pairs of a folder. It changes with any name, byte or order."""
    total = hashlib.sha256()
    for name, content in parts:
        total.update(name.encode() + b"\0" + hashlib.sha256(content).digest())
    return total.hexdigest()


def content_of(path: Path) -> str:
    """Return the SHA-256 of the user's data: the bytes of a file, or the names and bytes in a folder without hidden
    files.

    Times do not count, so a copy or a touched file is the same data. 100 MB take about a tenth of a second, and 10,000
    images about a second if the system has them cached.

    Raises:
        UserError: there is no such file or folder, or it cannot be read.
    """
    try:
        if not is_folder(path):
            return sha256_of(path)
        with open_tree(path, lambda name: not any(part.startswith(".") for part in name.split("/"))) as tree:
            return sha256_of_parts((name, tree.read(name)) for name in tree.names)
    except OSError as error:
        raise UserError(f"{path}: cannot be read ({error.strerror})") from None


def content_of_source(source: Mapping[str, object], content: Callable[[str], str]) -> str | None:
    """Return the SHA-256 of the user's own files in a source: its data and its list of members. None for other sources.

    Args:
        source: of a data set.
        content: of the file under one of the source's keys, as `content_of` gives it.
    """
    digests = [content(key) for key in ("path", "members") if key in source]
    return hashlib.sha256(" ".join(digests).encode()).hexdigest() if len(digests) > 1 else next(iter(digests), None)


def _is_zip(path: Path) -> bool:
    # By its first bytes, since zipfile.is_zipfile looks at the end, which a truncated zip has lost.
    with path.open("rb") as file:
        return path.suffix.lower() == ".zip" or file.read(4) == b"PK\x03\x04"


def _read_tar(path: Path, wanted: Callable[[str], bool]) -> dict[str, bytes]:
    files: dict[str, bytes] = {}
    sizes: dict[str, int] = {}
    with _open(path, tarfile.open) as archive:
        try:
            for member in archive:
                if member.size < 0:  # Python's reader would go back and never end
                    raise _damaged(path, ValueError(f"the size of {member.name!r} is {member.size}"))
                if _leads_out(member.name) or member.isdev() or _links_out(member):
                    raise _unsafe(path, member.name)
                if member.isfile() and wanted(member.name):
                    sizes[member.name] = member.size
                    _check_sizes(path, sizes)
                    content = archive.extractfile(member)
                    assert content is not None  # it is a file
                    files[str(PurePosixPath(member.name))] = content.read()
        except UserError:
            raise
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
    return UserError(f"{path}: the member {name!r} is not allowed in an archive; expected files inside it")


def _guarded(path: Path, read: Callable[[str], bytes]) -> Callable[[str], bytes]:
    def guarded(name: str) -> bytes:
        try:
            return read(name)
        except UserError:
            raise
        except _DAMAGE as error:
            raise _damaged(path / name, error) from error

    return guarded


def _open(path: Path, opener: Callable[[Path], T]) -> T:
    try:
        return opener(path)
    except _DAMAGE as error:
        raise _damaged(path, error) from error


def _damaged(path: Path, error: Exception) -> UserError:
    reason = str(error).splitlines()[0] if str(error) else type(error).__name__
    return UserError(f"{path}: cannot be read, it is damaged or no zip or tar archive ({reason})")
