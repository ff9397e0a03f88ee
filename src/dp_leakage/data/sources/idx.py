"""MNIST and Fashion-MNIST in the official IDX files, compressed with gzip or not."""

import gzip
import zlib
from math import prod
from pathlib import Path
from typing import NamedTuple

import numpy as np

from dp_leakage.common.errors import UserError
from dp_leakage.data.fetch import Remote, checksum_note, download, find
from dp_leakage.data.raw import Raw, check_range, ranges
from dp_leakage.data.trees import sha256_of

SOURCE = {
    "variants": {
        "mnist": {"summary": "MNIST, official IDX files"},
        "fashion_mnist": {"summary": "Fashion-MNIST, official IDX files"},
    },
}

UNSIGNED_BYTE = 0x08
SIDE = 28


class Layout(NamedTuple):
    """The four files (images and labels, training first), their numbers of records, and the names of the classes."""

    remotes: tuple[Remote, ...]
    train: int
    test: int
    class_names: tuple[str, ...]


_FILES = (
    "train-images-idx3-ubyte.gz", "train-labels-idx1-ubyte.gz",
    "t10k-images-idx3-ubyte.gz", "t10k-labels-idx1-ubyte.gz",
)  # fmt: skip


def _remotes(base: str, *md5s: str) -> tuple[Remote, ...]:
    return tuple(Remote(file, base + file, f"md5:{md5}") for file, md5 in zip(_FILES, md5s, strict=True))


# URLs and MD5 sums are those of torchvision's datasets/mnist.py; Fashion-MNIST's are also in its own README.
LAYOUTS = {
    "mnist": Layout(
        _remotes("https://ossci-datasets.s3.amazonaws.com/mnist/",
                 "f68b3c2dcbeaaa9fbdd348bbdeb94873", "d53e105ee54ea40749a09fcbcd1e9432",
                 "9fb629c4189551a2d022fa330f9573f3", "ec29112dd5afa0611ce80d1b7f02629c"),
        60_000, 10_000, tuple(map(str, range(10))),
    ),
    "fashion_mnist": Layout(
        _remotes("http://fashion-mnist.s3-website.eu-central-1.amazonaws.com/",
                 "8d4fb7e6c68d591d4c3dfef9ec88bf0d", "25c81989df183df01b3e8a0aad5dffbe",
                 "bef4ecab320f06d8554ea6380940ec79", "bb300cfdad3c16e7a12a480ee83cd310"),
        60_000, 10_000,
        ("T-shirt/top", "Trouser", "Pullover", "Dress", "Coat",
         "Sandal", "Shirt", "Sneaker", "Bag", "Ankle boot"),
    ),
}  # fmt: skip


def load(spec: dict, data_dir: Path) -> Raw:
    """Return the set from its four files in ``data_dir``, each downloaded where it is missing; training records
    first.
    """
    source = spec["source"]
    layout = LAYOUTS[source]
    paths = [
        find(data_dir, source, [remote.file.removesuffix(".gz"), remote.file])
        or download(remote, data_dir / source, source)
        for remote in layout.remotes
    ]
    return read(paths, layout)


def read(paths: list[Path], layout: Layout) -> Raw:
    """Read images and labels from four IDX files (training images and labels, test images and labels).

    Returns:
        x (n, 1, 28, 28) in [0, 1]; ``given`` has the official ``train`` and ``test`` rows.

    Raises:
        UserError: a file is damaged, not of its size, or a label is out of range.
    """
    n = layout.train + layout.test
    given = ranges(train=layout.train, test=layout.test)
    x = np.empty((n, 1, SIDE, SIDE), np.float32)
    y = np.empty(n, np.int64)
    for images, labels, rows in zip(paths[::2], paths[1::2], given.values(), strict=True):
        part = slice(rows[0], rows[-1] + 1)
        np.divide(read_idx(images, (len(rows), SIDE, SIDE))[:, None], np.float32(255), out=x[part])
        y[part] = read_idx(labels, (len(rows),))
        check_range(y[part], len(layout.class_names), str(labels))
    gzipped = [(path, remote) for path, remote in zip(paths, layout.remotes, strict=True) if path.suffix == ".gz"]
    notes = tuple(checksum_note(path, remote) for path, remote in gzipped)
    return Raw(
        x,
        y,
        layout.class_names,
        given=given,
        notes=notes,
        sha256={path.name: sha256_of(path) for path in paths},
        divisor=255.0,
    )


def read_idx(path: Path, shape: tuple[int, ...]) -> np.ndarray:
    """Return the uint8 array of an IDX file (magic number, big-endian sizes, bytes), which must have ``shape``.

    Raises:
        UserError: the file is truncated, no IDX file of unsigned bytes, or has another shape.
    """
    try:
        content = gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()
    except (OSError, EOFError, zlib.error) as error:
        raise UserError(f"{path}: cannot be read ({error}); it must be a complete gzip file") from error
    header = 4 + 4 * len(shape)
    magic = bytes([0, 0, UNSIGNED_BYTE, len(shape)])
    if content[:4] != magic:
        raise UserError(
            f"{path}: starts with {content[:4].hex(' ') or 'nothing'}; an IDX file of this kind starts with "
            f"{magic.hex(' ')}"
        )
    sizes = tuple(int(size) for size in np.frombuffer(content[4:header], ">u4", count=(len(content[4:header]) // 4)))
    if sizes != shape:
        raise UserError(f"{path}: holds an array of {_by(sizes)}; the official file has {_by(shape)}")
    if len(content) != header + prod(shape):
        raise UserError(
            f"{path} must have {header + prod(shape):,} bytes, a header and {_by(shape)} values; got {len(content):,}"
        )
    return np.frombuffer(content, np.uint8, offset=header).reshape(shape)


def _by(sizes: tuple[int, ...]) -> str:
    return "×".join(f"{size:,}" for size in sizes) or "no size"
