"""scikit-learn's breast cancer data (Wolberg, Street & Mangasarian 1993): 569 tumors, bundled."""

import hashlib
from pathlib import Path

import numpy as np

from dp_leakage.data.raw import Raw

SOURCE = {"summary": "569 tumors, 30 measurements, two classes; scikit-learn's, bundled"}


def count(spec: dict) -> int:
    """Return the number of records."""
    return 569


def load(spec: dict, data_dir: Path) -> Raw:
    """30 measurements of each tumour, float32 (569, 30), and whether it is malignant (0) or benign (1)."""
    from sklearn.datasets import load_breast_cancer

    bundle = load_breast_cancer()
    x, y = bundle.data.astype(np.float32), bundle.target.astype(np.int64)
    digest = hashlib.sha256(x.tobytes() + y.tobytes()).hexdigest()
    names = tuple(str(name) for name in bundle.feature_names)
    return Raw(x, y, tuple(map(str, bundle.target_names)), names, sha256={"breast_cancer": digest})
