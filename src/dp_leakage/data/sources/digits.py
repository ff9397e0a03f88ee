"""scikit-learn's handwritten digits: 1,797 real 8×8 images, bundled, so that everything runs without a
download.

They also stand in for the published sets at ``scale: smoke``: ``resize: [32, 32]`` and ``channels: 3`` give them
CIFAR's shape, ``resize: [28, 28]`` gives MNIST's, and ``binary: true`` makes them rows of zeros and ones like
Purchase-100's.
"""

import hashlib
from pathlib import Path

import numpy as np

from dp_leakage.data.raw import Raw

SOURCE = {
    "summary": "scikit-learn's handwritten digits, 8×8, bundled",
    "keys": {
        "resize": {
            "type": "array",
            "items": {"type": "integer", "minimum": 1, "maximum": 1024},
            "minItems": 2,
            "maxItems": 2,
            "description": "[height, width] in pixels.",
        },
        "channels": {"$ref": "#/$defs/channels"},
        "binary": {"type": "boolean", "description": "Whether records become rows of zeros and ones."},
        "person": {
            "type": "integer",
            "minimum": 2,
            "maximum": 600,
            "description": "Number of synthetic writers, by clusters of similar style.",
        },
    },
}


RECORDS = 1797


def count(spec: dict) -> int:
    """Return the number of records, or of synthetic writers."""
    return int(spec.get("person", RECORDS))


def load(spec: dict, data_dir: Path) -> Raw:
    """Return the digits as images (1797, channels, height, width) in [0, 1]; with ``binary`` as rows (1797,
    height·width).

    With ``person: N`` the records are shared out among N writers, who are made up: clusters of images of a similar
    `style`.
    """
    from sklearn.datasets import load_digits

    bundle = load_digits()
    x = (bundle.images / 16).astype(np.float32)
    y = bundle.target.astype(np.int64)
    digest = hashlib.sha256(x.tobytes() + y.tobytes()).hexdigest()
    if "resize" in spec:
        x = _resized(x, *spec["resize"])
    if spec.get("binary", False):
        x = (x.reshape(len(x), -1) >= 0.5).astype(np.float32)
        features, divisor = tuple(f"pixel_{i}" for i in range(x.shape[1])), 1.0
    else:
        x = np.repeat(x[:, None], spec.get("channels", 1), axis=1)
        features, divisor = (), 16.0
    changed = [key for key in ("resize", "channels", "binary") if key in spec]
    notes = [f"scikit-learn's digits, changed in shape ({', '.join(changed)})."] if changed else []
    person: np.ndarray | None = None
    people: tuple[str, ...] = ()
    if "person" in spec:
        person = writers(bundle.images, y, spec["person"])
        people = tuple(f"writer {place}" for place in range(person.max() + 1))
        notes.append(f"The {len(people)} writers are made up: clusters of digits of a similar style.")
    names = tuple(str(digit) for digit in range(10))
    sha256 = {"scikit-learn digits": digest}
    return Raw(x, y, names, features, notes=tuple(notes), sha256=sha256, divisor=divisor, person=person, people=people)


def writers(images: np.ndarray, y: np.ndarray, count: int) -> np.ndarray:
    """Assign synthetic writers, int64 (n,), with similar styles: images (n, height, width), classes y (n,).

    Ward's (1963) clusters of `style`, each less its mean over the class, in standard deviations. So writers have digits
    of several classes, and some have many more than others. There are at most ``count``.
    """
    from scipy.cluster.hierarchy import fcluster, linkage

    found = style(images)
    for one in np.unique(y):
        found[y == one] -= found[y == one].mean(axis=0)
    clusters = fcluster(linkage(found / found.std(axis=0), "ward"), count, "maxclust")
    return np.unique(clusters, return_inverse=True)[1].astype(np.int64)


def style(images: np.ndarray) -> np.ndarray:
    """Measure handwriting style, float64 (n, 4): ink, width, height and slant of images (n, height, width).

    Width and height are standard deviations of the ink's place in pixels, slant is its correlation.
    """
    ink = images.sum(axis=(1, 2), dtype=np.float64)
    places: np.ndarray = np.indices(images.shape[1:], dtype=np.float64)
    down, across = places[0], places[1]

    def mean(values: np.ndarray) -> np.ndarray:
        return (images * values).sum(axis=(1, 2)) / ink

    middle, center = mean(across), mean(down)
    width, height = np.sqrt(mean(across**2) - middle**2), np.sqrt(mean(down**2) - center**2)
    return np.stack([ink, width, height, (mean(across * down) - middle * center) / (width * height)], axis=1)


def _resized(x: np.ndarray, height: int, width: int) -> np.ndarray:
    from PIL import Image

    resize = Image.Resampling.BILINEAR  # stays within [0, 1], unlike the sharper filters
    return np.stack([np.asarray(Image.fromarray(image).resize((width, height), resize)) for image in x])
