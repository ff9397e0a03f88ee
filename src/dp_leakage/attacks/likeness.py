"""How alike two images are."""

import numpy as np

WINDOW = 7  # pixels, scikit-image's own for SSIM


def similarity(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Structural similarity (Wang et al. 2004) of pairs of images (n, c, h, w) in [0, 1], float64 (n,) in [−1, 1]."""
    from skimage.metrics import structural_similarity

    window = min(WINDOW, *(side - 1 + side % 2 for side in a.shape[2:]))
    pairs = zip(a, b, strict=True)
    return np.array(
        [structural_similarity(one, two, data_range=1.0, channel_axis=0, win_size=window) for one, two in pairs]
    )
