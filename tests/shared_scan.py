"""An attacker who has only the bytes of a folder: what in them is indexed by record, and how well it tells members.

    python tests/shared_scan.py FOLDER MEMBERS.npy

MEMBERS.npy holds a truth value for each record of the data set, in its order.
"""

import io
import json
import sys
import zipfile
import zlib
from collections.abc import Iterator
from pathlib import Path

import numpy as np
from scipy.stats import rankdata

Found = tuple[str, np.ndarray]


def unpacked(path: Path) -> bytes:
    """The bytes of a file, and of every part of it that is packed: streams of PDF and PNG, members of archives."""
    content = path.read_bytes()
    parts = [content]
    if path.suffix == ".npz":
        with zipfile.ZipFile(path) as archive:
            parts += [archive.read(name) for name in archive.namelist()]
    for start in range(len(content) - 1):
        if content[start] == 0x78 and content[start + 1] in (0x01, 0x5E, 0x9C, 0xDA):
            try:
                parts.append(zlib.decompressobj().decompress(content[start:]))
            except zlib.error:
                continue
    if path.suffix == ".parquet":
        for name, column in arrays(path):
            parts.append(f"{name}\n{column.tolist()}".encode())
    return b"\n".join(parts)


def arrays(path: Path) -> Iterator[Found]:
    """Everything in a file that is a list of values: tensors, columns, arrays, lists in JSON texts."""
    if path.suffix == ".safetensors":
        from safetensors import safe_open

        with safe_open(path, "numpy") as file:
            yield from ((name, file.get_tensor(name)) for name in file.keys())  # noqa: SIM118 (not a dict)
            yield from ((name, value) for text in (file.metadata() or {}).values() for name, value in lists(text))
    elif path.suffix in (".parquet", ".csv"):
        import pandas as pd

        frame = pd.read_parquet(path) if path.suffix == ".parquet" else pd.read_csv(path)
        yield from ((str(name), frame[name].to_numpy()) for name in frame)
        if path.suffix == ".parquet":
            import pyarrow.parquet as pq

            for text in (pq.read_schema(path).metadata or {}).values():
                yield from lists(text.decode())
    elif path.suffix == ".npz":
        with np.load(path) as archive:
            yield from archive.items()
    elif path.suffix in (".json", ".html"):
        yield from lists(path.read_text())
    elif path.suffix == ".png":
        from PIL import Image

        with Image.open(path) as image:
            yield from (found for text in image.info.values() if isinstance(text, str) for found in lists(text))


def lists(text: str) -> Iterator[Found]:
    """The lists in a JSON text, wherever they are."""
    decoder, place = json.JSONDecoder(), 0
    while (place := text.find("[", place)) >= 0:
        try:
            value, end = decoder.raw_decode(text, place)
            yield f"list at {place}", np.array(value)
            place = end
        except ValueError:
            place += 1


def by_record(array: np.ndarray, n: int) -> Iterator[np.ndarray]:
    """Every reading of an array as a number for each of n records: float (n,).

    Along any axis of n values (or a multiple of it, such as one for each repeat and record), and as a list of row
    numbers, which is read as how often each record stands in it.
    """
    if array.dtype.kind not in "biuf" or not array.size:
        return
    values = np.nan_to_num(array.astype(float))
    for axis, size in enumerate(array.shape):
        if size % n == 0:
            moved = np.moveaxis(values, axis, -1).reshape(-1, size // n, n)
            yield from moved.mean(axis=1)[:64]
            yield moved.mean(axis=(0, 1))
    if array.dtype.kind in "iu" and array.min() >= -1 and array.max() < n and np.unique(array).size > 2:
        yield np.bincount(array[array >= 0].ravel(), minlength=n).astype(float)


def auc(score: np.ndarray, member: np.ndarray) -> float:
    """The chance that a member has the higher score, ties half."""
    n, m = int(member.sum()), int((~member).sum())
    return float((rankdata(score)[member].sum() - n * (n + 1) / 2) / (n * m))


def attacked(folder: Path, member: np.ndarray) -> list[tuple[float, str]]:
    """Every reading of everything in a folder as scores of the records: its AUC for members (or against), best first.

    Args:
        folder: what the attacker has.
        member: bool (n,), the truth.
    """
    found = []
    for path in sorted(path for path in folder.rglob("*") if path.is_file()):
        for name, array in arrays(path):
            for score in by_record(np.asarray(array), len(member)):
                value = auc(score, member)
                found.append((max(value, 1 - value), f"{path.relative_to(folder)}: {name}"))
    return sorted(found, reverse=True)


def most_by_chance(member: np.ndarray, readings: int, rate: float) -> float:
    """The AUC that the best of so many readings passes with probability ``rate`` at most, if none knows anything.

    A normal approximation of the rank-sum statistic, two-sided, with Bonferroni's correction. Ties only narrow it.
    """
    from scipy.stats import norm

    n, m = int(member.sum()), int((~member).sum())
    deviation = np.sqrt((n + m + 1) / (12 * n * m))
    return float(0.5 + norm.isf(rate / (2 * max(readings, 1))) * deviation)


def main() -> None:
    """Prints the best readings, and what is reached by chance."""
    folder, member = Path(sys.argv[1]), np.load(io.BytesIO(Path(sys.argv[2]).read_bytes())).astype(bool)
    found = attacked(folder, member)
    print(f"{len(found)} readings; by chance up to {most_by_chance(member, len(found), 1e-4):.3f} (1 in 10,000)")
    print("\n".join(f"{value:.3f} {name}" for value, name in found[:10]))


if __name__ == "__main__":
    main()
