"""Structural similarity against scikit-image's, and distances against numpy's."""

import numpy as np
import pytest
from skimage.metrics import structural_similarity

from dp_leakage.attacks.similarity import Gallery

RNG = np.random.default_rng(0)


@pytest.mark.parametrize("shape", [(1, 28, 28), (3, 32, 32), (1, 70, 60), (1, 11, 13)])
def test_ssim_is_scikit_images(shape):
    image, others = RNG.random(shape, dtype=np.float32), RNG.random((4, *shape), dtype=np.float32)
    others[1] = np.clip(image + 0.1 * RNG.normal(size=shape), 0, 1)
    others[2] = image
    expected = [
        structural_similarity(
            image.astype(float), other.astype(float), channel_axis=0, data_range=1.0,
            gaussian_weights=True, sigma=1.5, use_sample_covariance=False,
        )
        for other in others
    ]  # fmt: skip
    found = Gallery.of(others).ssim(image)
    np.testing.assert_allclose(found, expected, rtol=1e-6, atol=1e-9)
    assert found[2] == pytest.approx(1.0)


def test_small_images_get_a_smaller_window():
    image = RNG.random((1, 8, 8))
    assert Gallery.of(image[None]).ssim(image) == pytest.approx(1.0)


def test_euclidean_is_numpys_norm():
    image, others = RNG.random((1, 5, 4), dtype=np.float32), RNG.random((3, 1, 5, 4), dtype=np.float32)
    np.testing.assert_allclose(
        Gallery.of(others).distances(image), [np.linalg.norm(image - other) for other in others], rtol=1e-6
    )
