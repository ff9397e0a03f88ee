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
        "resize": [
            "worded",
            "[height, width] in pixels, up to 1024 each",
            ["list", ["whole", "from", 1, "to", 1024], 2],
        ],
        "channels": ["worded", "1 (gray) or 3 (color)", ["choice", 1, 3]],
        "binary": "flag",
    },
}


def load(spec: dict, data_dir: Path) -> Raw:
    """The digits as images (1797, channels, height, width) in [0, 1]; with ``binary`` as rows (1797,
    height·width).
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
    notes = (f"scikit-learn's digits, changed in shape ({', '.join(changed)}).",) if changed else ()
    names = tuple(str(digit) for digit in range(10))
    return Raw(x, y, names, features, notes=notes, sha256={"scikit-learn digits": digest}, divisor=divisor)


def _resized(x: np.ndarray, height: int, width: int) -> np.ndarray:
    from PIL import Image

    resize = Image.Resampling.BILINEAR  # stays within [0, 1], unlike the sharper filters
    return np.stack([np.asarray(Image.fromarray(image).resize((width, height), resize)) for image in x])
