"""Similarity of images: Euclidean distance, and structural similarity (SSIM, Wang et al. 2004), of pixels in [0, 1].

SSIM averages over all places of a window, so its value depends on the window:

- `UNIFORM`: 7×7 pixels of equal weight and sample covariances, scikit-image's default. Gradient reconstruction and the
  pictures that are drawn of it use it.
- `GAUSSIAN`: 11×11 pixels with weights of deviation 1.5, as in the paper. Model inversion uses it.

In images with a side shorter than the window, the window shrinks to the largest odd side that fits.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

import numpy as np

if TYPE_CHECKING:
    from torch import Tensor

Window = Literal["uniform", "gaussian"]
UNIFORM: Window = "uniform"
GAUSSIAN: Window = "gaussian"
SIDES: dict[Window, int] = {UNIFORM: 7, GAUSSIAN: 11}
DEVIATION = 1.5  # of the Gaussian window, in pixels
C1, C2 = 0.01**2, 0.03**2  # the paper's K₁ and K₂ for a range of 1


def similarity(a: np.ndarray, b: np.ndarray, window: Window = UNIFORM) -> np.ndarray:
    """Return the SSIM of pairs of images (n, c, h, w), float64 (n,) in [−1, 1]: the mean over channels and window
    positions.
    """
    if window == GAUSSIAN:
        return np.array([Gallery.of(one[None]).ssim(two)[0] for one, two in zip(a, b, strict=True)])
    from skimage.metrics import structural_similarity

    side = _side(a.shape[2:], UNIFORM)
    pairs = zip(a, b, strict=True)
    return np.array(
        [structural_similarity(one, two, data_range=1.0, channel_axis=0, win_size=side) for one, two in pairs]
    )


@dataclass(frozen=True)
class Gallery:
    """Images to compare with, and quantities computed from them once.

    Attributes:
        images: float64 (n, channels, height, width).
        mean, variance: under the Gaussian window at each of its places, (n, channels, height', width').
    """

    images: Tensor
    mean: Tensor
    variance: Tensor

    @classmethod
    def of(cls, images: np.ndarray) -> Gallery:
        """Return the gallery of n images (n, channels, height, width)."""
        import torch

        held = torch.as_tensor(images, dtype=torch.float64)
        mean = _blurred(held)
        return cls(held, mean, _blurred(held**2) - mean**2)

    def distances(self, image: np.ndarray) -> np.ndarray:
        """Return the ℓ2 distances of an image (channels, height, width) from these images, float64 (n,)."""
        import torch

        apart = self.images - torch.as_tensor(image, dtype=torch.float64)
        return torch.linalg.vector_norm(apart.flatten(1), dim=1).numpy()

    def ssim(self, image: np.ndarray) -> np.ndarray:
        """SSIM with each under the Gaussian window, float64 (n,), 1 for the same image (the paper's equation 13)."""
        import torch

        own = torch.as_tensor(image, dtype=torch.float64)[None]
        mean = _blurred(own)
        variance = _blurred(own**2) - mean**2
        covariance = _blurred(self.images * own) - self.mean * mean
        likeness = (2 * self.mean * mean + C1) * (2 * covariance + C2)
        likeness /= (self.mean**2 + mean**2 + C1) * (self.variance + variance + C2)
        return likeness.flatten(1).mean(1).numpy()


def _side(sizes: tuple[int, ...], window: Window) -> int:
    """Return the largest odd side, up to the window's own, that fits into images of these sides."""
    side = min(SIDES[window], *sizes)
    return side - 1 + side % 2


def _blurred(x: Tensor) -> Tensor:
    """Return means of images (n, channels, height, width) under the Gaussian window at each position."""
    side = _side(tuple(x.shape[2:]), GAUSSIAN)
    down, right = (_window_sums(length, side) for length in x.shape[2:])
    return down @ x @ right.T


def _window_sums(length: int, side: int) -> Tensor:
    """Return the matrix (length − side + 1, length) from a row of pixels to its windows' weighted means."""
    import torch

    offset = torch.arange(side, dtype=torch.float64) - side // 2
    weight = torch.exp(-0.5 * (offset / DEVIATION) ** 2)
    places = length - side + 1
    sums = torch.zeros(places, length, dtype=torch.float64)
    for place in range(places):
        sums[place, place : place + side] = weight / weight.sum()
    return sums
