"""How like an image is to others: Euclidean distance and structural similarity, of pixels in [0, 1]."""

from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

SIDE, DEVIATION = 11, 1.5  # of the Gaussian window, in pixels (Wang et al. 2004)
C1, C2 = 0.01**2, 0.03**2  # the same paper's K₁ and K₂ for a range of 1


@dataclass(frozen=True)
class Gallery:
    """Images that others are held against, with what can be computed of them once.

    Attributes:
        images: float64 (n, channels, height, width).
        mean, variance: under the window at each of its places, (n, channels, height', width').
    """

    images: Tensor
    mean: Tensor
    variance: Tensor

    @classmethod
    def of(cls, images: np.ndarray) -> "Gallery":
        """Of n images (n, channels, height, width)."""
        held = torch.as_tensor(images, dtype=torch.float64)
        mean = _blurred(held)
        return cls(held, mean, _blurred(held**2) - mean**2)

    def distances(self, image: np.ndarray) -> np.ndarray:
        """ℓ2 distance of an image (channels, height, width) from each, float64 (n,)."""
        apart = self.images - torch.as_tensor(image, dtype=torch.float64)
        return torch.linalg.vector_norm(apart.flatten(1), dim=1).numpy()

    def ssim(self, image: np.ndarray) -> np.ndarray:
        """Structural similarity with each, float64 (n,), 1 for the same image (Wang et al. 2004, equation 13).

        The mean over all channels and all places at which the window lies inside the image; where a side is shorter
        than the window, this is cut to the largest odd side that fits.
        """
        own = torch.as_tensor(image, dtype=torch.float64)[None]
        mean = _blurred(own)
        variance = _blurred(own**2) - mean**2
        covariance = _blurred(self.images * own) - self.mean * mean
        likeness = (2 * self.mean * mean + C1) * (2 * covariance + C2)
        likeness /= (self.mean**2 + mean**2 + C1) * (self.variance + variance + C2)
        return likeness.flatten(1).mean(1).numpy()


def _blurred(x: Tensor) -> Tensor:
    """Weighted means over the window, of images (n, channels, height, width), wherever it lies inside."""
    side = min(SIDE, *x.shape[2:])
    side -= 1 - side % 2
    down, right = (_window_sums(length, side) for length in x.shape[2:])
    return down @ x @ right.T


def _window_sums(length: int, side: int) -> Tensor:
    """The matrix (length − side + 1, length) that takes a row of pixels to its windows' weighted means."""
    offset = torch.arange(side, dtype=torch.float64) - side // 2
    weight = torch.exp(-0.5 * (offset / DEVIATION) ** 2)
    places = length - side + 1
    sums = torch.zeros(places, length, dtype=torch.float64)
    for place in range(places):
        sums[place, place : place + side] = weight / weight.sum()
    return sums
