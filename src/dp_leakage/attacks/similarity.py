"""How like an image is to others: Euclidean distance and structural similarity, of pixels in [0, 1]."""

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

SIDE, DEVIATION = 11, 1.5  # of the Gaussian window, in pixels (Wang et al. 2004)
C1, C2 = 0.01**2, 0.03**2  # the same paper's K₁ and K₂ for a range of 1
PIXELS_AT_ONCE = 1 << 21


def euclidean(image: np.ndarray, others: np.ndarray) -> np.ndarray:
    """ℓ2 distance, float64 (n,), of an image (…) from others (n, …)."""
    apart = (others - image).reshape(len(others), -1).astype(np.float64)
    return np.sqrt(np.einsum("ij,ij->i", apart, apart))


def ssim(image: np.ndarray, others: np.ndarray) -> np.ndarray:
    """Structural similarity, float64 (n,), 1 for the same image (Wang et al. 2004, equation 13 and section III.C).

    The mean over all places and channels at which the window lies inside the image; of images with a side below the
    window's, the window is cut to the largest odd side that fits.

    Args:
        image: (channels, height, width).
        others: (n, channels, height, width).
    """
    rows = max(1, PIXELS_AT_ONCE // image.size)
    parts = [_ssim(image, others[start : start + rows]) for start in range(0, len(others), rows)]
    return np.concatenate(parts) if parts else np.empty(0)


def _ssim(image: np.ndarray, others: np.ndarray) -> np.ndarray:
    a = torch.as_tensor(image, dtype=torch.float64).expand(len(others), *image.shape)
    b = torch.as_tensor(others, dtype=torch.float64)
    mean_a, mean_b = _blurred(a[:1]), _blurred(b)
    variance_a, variance_b = _blurred(a[:1] ** 2) - mean_a**2, _blurred(b**2) - mean_b**2
    covariance = _blurred(a * b) - mean_a * mean_b
    likeness = (2 * mean_a * mean_b + C1) * (2 * covariance + C2)
    likeness = likeness / ((mean_a**2 + mean_b**2 + C1) * (variance_a + variance_b + C2))
    return likeness.flatten(1).mean(1).numpy()


def _blurred(x: Tensor) -> Tensor:
    """Weighted means over the window, of images (n, channels, height, width), where it lies inside."""
    side = min(SIDE, *x.shape[2:])
    side -= 1 - side % 2
    offset = torch.arange(side, dtype=x.dtype) - side // 2
    weight = torch.exp(-0.5 * (offset / DEVIATION) ** 2)
    weight = (weight / weight.sum()).view(1, 1, -1, 1)
    flat = x.flatten(0, 1)[:, None]
    return F.conv2d(F.conv2d(flat, weight), weight.mT).unflatten(0, x.shape[:2])[:, :, 0]
