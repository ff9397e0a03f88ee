"""Writers of small files in the official formats."""

import gzip
import io
import struct
import tarfile
import zipfile
from pathlib import Path

import numpy as np
from PIL import Image


def idx_bytes(array: np.ndarray) -> bytes:
    return struct.pack(f">BBBB{array.ndim}I", 0, 0, 8, array.ndim, *array.shape) + array.tobytes()


def write_idx(folder: Path, images, labels, test_images, test_labels, packed=True) -> list[Path]:
    folder.mkdir(parents=True, exist_ok=True)
    names = (
        "train-images-idx3-ubyte",
        "train-labels-idx1-ubyte",
        "t10k-images-idx3-ubyte",
        "t10k-labels-idx1-ubyte",
    )
    paths = []
    for name, array in zip(names, (images, labels, test_images, test_labels), strict=True):
        content = idx_bytes(array.astype(np.uint8))
        paths.append(folder / (name + ".gz" * packed))
        paths[-1].write_bytes(gzip.compress(content) if packed else content)
    return paths


def cifar_bytes(x: np.ndarray, *labels: np.ndarray) -> bytes:
    """Records of uint8 images (n, 3, 32, 32), each after its label bytes."""
    return np.hstack([*(label[:, None] for label in labels), x.reshape(len(x), -1)]).astype(np.uint8).tobytes()


def image_bytes(array: np.ndarray, format: str = "PNG") -> bytes:
    buffer = io.BytesIO()
    Image.fromarray(array).save(buffer, format)
    return buffer.getvalue()


def write_files(folder: Path, files: dict[str, bytes]) -> Path:
    for name, content in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(content)
    return folder


def write_zip(path: Path, files: dict[str, bytes]) -> Path:
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in files.items():
            archive.writestr(name, content)
    return path


def write_tar(path: Path, files: dict[str, bytes]) -> Path:
    with tarfile.open(path, "w:gz") as archive:
        for name, content in files.items():
            member = tarfile.TarInfo(name)
            member.size = len(content)
            archive.addfile(member, io.BytesIO(content))
    return path


def digit_pictures(per_class: int = 3, classes: int = 3) -> dict[str, bytes]:
    """Real handwritten digits as PNG files in one folder per class."""
    from sklearn.datasets import load_digits

    bundle = load_digits()
    files = {}
    for c in range(classes):
        for i, row in enumerate(np.flatnonzero(bundle.target == c)[:per_class]):
            files[f"digit {c}/{i}.png"] = image_bytes((bundle.images[row] * 255 / 16).astype(np.uint8))
    return files
