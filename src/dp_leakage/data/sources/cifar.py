"""CIFAR-10 and CIFAR-100, official binary version: per record one or two label bytes, then 3·32·32 pixel
bytes.
"""

import hashlib
from collections.abc import Mapping
from pathlib import Path, PurePosixPath
from typing import NamedTuple

import numpy as np

from dp_leakage.common.errors import UserError
from dp_leakage.data.fetch import Remote, checksum_note, download, find
from dp_leakage.data.raw import Raw, check_range, ranges
from dp_leakage.data.trees import open_tree, sha256_of

SOURCE = {
    "variants": {
        "cifar10": {"summary": "CIFAR-10, official binary version"},
        "cifar100": {"summary": "CIFAR-100 with its 100 fine labels, official binary version"},
    },
}

PIXELS = 3 * 32 * 32


class Layout(NamedTuple):
    """File layout of one CIFAR version.

    Attributes:
        remote: the official archive.
        folder: its name after unpacking.
        train: training files and their numbers of records, in order.
        test: the same of the test files.
        label_bytes: per record; CIFAR-100 has the coarse label, then the fine one, which is the class.
        classes: number of classes.
        names_file: text file with a class name per line; may be missing.
    """

    remote: Remote
    folder: str
    train: Mapping[str, int]
    test: Mapping[str, int]
    label_bytes: int
    classes: int
    names_file: str


# The MD5 sums are those printed on https://www.cs.toronto.edu/~kriz/cifar.html.
LAYOUTS = {
    "cifar10": Layout(
        Remote("cifar-10-binary.tar.gz", "https://www.cs.toronto.edu/~kriz/cifar-10-binary.tar.gz",
               "md5:c32a1d4ab5d03f1284b67883e8d87530"),
        "cifar-10-batches-bin",
        {f"data_batch_{i}.bin": 10_000 for i in range(1, 6)}, {"test_batch.bin": 10_000},
        label_bytes=1, classes=10, names_file="batches.meta.txt",
    ),
    "cifar100": Layout(
        Remote("cifar-100-binary.tar.gz", "https://www.cs.toronto.edu/~kriz/cifar-100-binary.tar.gz",
               "md5:03b5dce01913d631647c71ecec9e9cb8"),
        "cifar-100-binary", {"train.bin": 50_000}, {"test.bin": 10_000},
        label_bytes=2, classes=100, names_file="fine_label_names.txt",
    ),
}  # fmt: skip


def load(spec: dict, data_dir: Path) -> Raw:
    """CIFAR from its folder or archive in ``data_dir``, otherwise downloaded; official training records first."""
    layout = LAYOUTS[spec["source"]]
    found = find(data_dir, spec["source"], [layout.folder, layout.remote.file])
    return read(found or download(layout.remote, data_dir / spec["source"], spec["source"]), layout)


def read(path: Path, layout: Layout) -> Raw:
    """Read the records of a CIFAR folder or archive.

    Returns:
        x (n, 3, 32, 32) in [0, 1], channels red, green, blue; ``given`` has the official ``train`` and
        ``test`` rows.

    Raises:
        UserError: a file is missing or not of its size, or a label is out of range.
    """
    counts = {**layout.train, **layout.test}
    needed = {*counts, layout.names_file}
    with open_tree(path, lambda name: PurePosixPath(name).name in needed) as tree:
        content = {PurePosixPath(name).name: tree.read(name) for name in tree.names}
    for file in counts:
        if file not in content:
            raise UserError(f"{path}: {file} is missing; the official binary version has {', '.join(counts)}")
    given = ranges(train=sum(layout.train.values()), test=sum(layout.test.values()))
    x = np.empty((sum(counts.values()), 3, 32, 32), np.float32)
    y = np.empty(len(x), np.int64)
    for (file, count), rows in zip(counts.items(), ranges(**counts).values(), strict=True):
        part = slice(rows[0], rows[-1] + 1)
        y[part] = _fill(x[part], content[file], count, layout, f"{path}/{file}")
    names = tuple(content.get(layout.names_file, b"").decode(errors="replace").split())
    if len(names) != layout.classes:
        names = tuple(map(str, range(layout.classes)))
    notes: tuple[str, ...] = ()
    if path.is_file():
        notes, digests = (checksum_note(path, layout.remote),), {path.name: sha256_of(path)}
    else:
        digests = {file: hashlib.sha256(content[file]).hexdigest() for file in counts}
    return Raw(x, y, names, given=given, notes=notes, sha256=digests, divisor=255.0)


def _fill(x: np.ndarray, content: bytes, count: int, layout: Layout, where: str) -> np.ndarray:
    """Fill ``x`` (count, 3, 32, 32) from one file's bytes; returns its labels."""
    width = layout.label_bytes + PIXELS
    if len(content) != count * width:
        raise UserError(
            f"{where} must have {count * width:,} bytes, {count:,} records of {width:,}; got {len(content):,}"
        )
    records = np.frombuffer(content, np.uint8).reshape(count, width)
    labels = records[:, layout.label_bytes - 1]
    check_range(labels, layout.classes, where)
    np.divide(records[:, layout.label_bytes :].reshape(x.shape), np.float32(255), out=x)
    return labels.astype(np.int64)
