"""What JPEG costs: CIFAR-100 as ten classes in CIFAR-10's layout, as it is and through the JPEG of our CIFAR-10.

    python benchmarks/jpeg_cost.py data/cifar100/cifar-100-binary out    # writes out/exact and out/jpeg
    snakemake results/frontier/cifar10_scattering/linear/gaussian-clip_norm=0.1-rdp-eps=3/training.parquet \
      --config data_dir=out/jpeg    # and again, elsewhere, with out/exact

Our copy of CIFAR-10 has been through JPEG, and we have no other. CIFAR-100 we have as it was published: as many
pictures of the same size. With its twenty superclasses in pairs it is as large a task, too. So the difference between
these two data sets says what the loss may cost there.
"""

import io
import sys
from pathlib import Path

import numpy as np
from PIL import Image

QUALITY, ACROSS, DOWN, SIDE = 84, 40, 25, 32  # one JPEG for so many pictures, without subsampling, as in our copy
# The superclass of each of the 100 classes, as their authors grouped them.
SUPERCLASSES = [
    *(4, 1, 14, 8, 0, 6, 7, 7, 18, 3, 3, 14, 9, 18, 7, 11, 3, 9, 7, 11, 6, 11, 5, 10, 7),
    *(6, 13, 15, 3, 15, 0, 11, 1, 10, 12, 14, 16, 9, 11, 5, 5, 19, 8, 8, 15, 13, 14, 17, 18, 10),
    *(16, 4, 17, 4, 2, 0, 17, 4, 18, 17, 10, 3, 2, 12, 12, 16, 12, 1, 9, 19, 2, 10, 0, 1, 16),
    *(12, 9, 13, 15, 13, 16, 19, 2, 4, 6, 19, 5, 5, 8, 19, 18, 1, 2, 15, 6, 0, 17, 8, 14, 13),
]
# Sea animals, plants, things in a kitchen, furniture and buildings, small animals without bones, large mammals,
# landscapes, other mammals, people and reptiles, vehicles.
PAIRS = [(0, 1), (2, 4), (3, 5), (6, 9), (7, 13), (8, 11), (10, 17), (12, 16), (14, 15), (18, 19)]


def through_jpeg(x: np.ndarray) -> np.ndarray:
    """Pictures uint8 (n, 32, 32, 3), n a multiple of a thousand, as they come out of the JPEG."""
    sheets = x.reshape(-1, DOWN, ACROSS, SIDE, SIDE, 3).transpose(0, 1, 3, 2, 4, 5)
    return np.concatenate([_sheet(sheet.reshape(DOWN * SIDE, ACROSS * SIDE, 3)) for sheet in sheets])


def _sheet(pixels: np.ndarray) -> np.ndarray:
    file = io.BytesIO()
    Image.fromarray(pixels).save(file, "JPEG", quality=QUALITY, subsampling=0)
    seen = np.asarray(Image.open(file))
    return seen.reshape(DOWN, SIDE, ACROSS, SIDE, 3).transpose(0, 2, 1, 3, 4).reshape(-1, SIDE, SIDE, 3)


def ten_classes(y: np.ndarray) -> np.ndarray:
    """Of fine labels, the pair that their superclass is in: uint8 from 0 to 9."""
    of_superclass = {one: pair for pair, both in enumerate(PAIRS) for one in both}
    return np.array([of_superclass[one] for one in SUPERCLASSES], np.uint8)[y]


def main(source: Path, target: Path) -> None:
    """Writes both data sets and prints how much the JPEG changed."""
    assert (np.bincount(SUPERCLASSES) == 5).all()  # a slip in the table would go unnoticed otherwise
    for part, files in {"train": [f"data_batch_{i}.bin" for i in range(1, 6)], "test": ["test_batch.bin"]}.items():
        records = np.fromfile(source / f"{part}.bin", np.uint8).reshape(-1, 2 + 3 * SIDE * SIDE)
        y = ten_classes(records[:, 1])
        exact = records[:, 2:].reshape(-1, 3, SIDE, SIDE).transpose(0, 2, 3, 1)
        seen = through_jpeg(exact)
        error = np.square(seen.astype(np.float64) - exact).mean((1, 2, 3))
        print(f"{part}: median PSNR {np.median(10 * np.log10(255**2 / error)):.1f} dB")
        for name, x in {"exact": exact, "jpeg": seen}.items():
            folder = target / name / "cifar10" / "cifar-10-batches-bin"
            folder.mkdir(parents=True, exist_ok=True)
            rows = np.concatenate([y[:, None], x.transpose(0, 3, 1, 2).reshape(len(x), -1)], 1)
            for file, own in zip(files, np.split(rows, len(files)), strict=True):
                own.tofile(folder / file)


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))
