"""Structural similarity against scikit-image's, and distances against numpy's."""

import numpy as np
import pytest
from skimage.metrics import structural_similarity

from dp_leakage.attacks.likeness import GAUSSIAN, UNIFORM, Gallery, similarity

RNG = np.random.default_rng(0)


ORACLES = {
    UNIFORM: {"win_size": 7},
    GAUSSIAN: {"gaussian_weights": True, "sigma": 1.5, "use_sample_covariance": False},
}


@pytest.mark.parametrize("window", ORACLES)
@pytest.mark.parametrize("shape", [(1, 28, 28), (3, 32, 32), (1, 11, 13)])
def test_the_ssim_of_pairs_is_scikit_images_under_both_windows_and_they_differ(shape, window):
    a = RNG.random((3, *shape))
    b = np.clip(a + 0.1 * RNG.normal(size=a.shape), 0, 1)
    pairs = list(zip(a, b, strict=True))
    oracle = [structural_similarity(*pair, channel_axis=0, data_range=1.0, **ORACLES[window]) for pair in pairs]
    np.testing.assert_allclose(similarity(a, b, window), oracle, rtol=1e-6, atol=1e-9)
    assert (abs(similarity(a, b, UNIFORM) - similarity(a, b, GAUSSIAN)) > 1e-4).all()


@pytest.mark.parametrize("shape", [(1, 28, 28), (3, 32, 32), (1, 70, 60), (1, 11, 13)])
def test_the_ssim_of_a_gallery_is_scikit_images(shape):
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


@pytest.mark.parametrize(("side", "window"), [(4, UNIFORM), (8, GAUSSIAN)])
def test_small_images_get_a_smaller_window(side, window):
    images = RNG.random((2, 1, side, side))
    np.testing.assert_allclose(similarity(images, images, window), 1)


def test_euclidean_is_numpys_norm():
    image, others = RNG.random((1, 5, 4), dtype=np.float32), RNG.random((3, 1, 5, 4), dtype=np.float32)
    np.testing.assert_allclose(
        Gallery.of(others).distances(image), [np.linalg.norm(image - other) for other in others], rtol=1e-6
    )
