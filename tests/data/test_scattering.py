from pathlib import Path

import numpy as np
import pytest
import torch
from scipy.signal import convolve2d

from dp_leakage.common.errors import UserError
from dp_leakage.data import scattering as module
from dp_leakage.data.scattering import MAPS, group_normalized, scattering

# Scattering2D(J=2, shape=…) of kymatio 0.3.0 on uniform noise: two gray images of 28 × 28, a color one of 8 × 20.
KYMATIO = np.load(Path(__file__).parent / "kymatio.npz")


@pytest.mark.parametrize("images", ["square", "wide"])
def test_is_kymatios(images):
    ours = scattering(KYMATIO[f"{images}_x"])
    # Its filters are divided by 2·3.1415·σ², so two layers and the average differ by 9e-5 of π.
    np.testing.assert_allclose(ours, KYMATIO[f"{images}_s"], rtol=1.2e-4)
    assert ours.dtype == np.float32


def test_the_first_map_is_the_image_convolved_with_a_gaussian():
    image = np.random.default_rng(0).random((1, 1, 16, 16)).astype(np.float32)
    reach = np.arange(-12, 13)
    average = np.exp(-(reach[:, None] ** 2 + reach[None] ** 2) / (2 * 1.6**2)) / (2 * np.pi * 1.6**2)
    padded = np.pad(image[0, 0], 4, mode="reflect")
    wrapped = np.pad(padded, 12, mode="wrap")
    spatial = convolve2d(wrapped, average, mode="valid")[4:-4:4, 4:-4:4]
    np.testing.assert_allclose(scattering(image)[0, 0], spatial, rtol=1e-5)


def test_a_constant_image_has_its_value_in_the_first_map_and_nothing_in_the_others():
    (maps,) = scattering(np.full((1, 1, 12, 12), 0.7))
    np.testing.assert_allclose(maps[0], 0.7, rtol=1e-4)
    np.testing.assert_allclose(maps[1:], 0, atol=1e-6)


def test_moves_with_the_image_and_turns_its_angles_with_it():
    image = np.zeros((1, 1, 32, 32), np.float32)
    image[0, 0, 13:17, 10:18] = np.random.default_rng(0).random((4, 8))
    moved = np.roll(image, 4, axis=3)  # far from the border, by one feature
    np.testing.assert_allclose(scattering(moved)[..., 2:-2, 3:-2], scattering(image)[..., 2:-2, 2:-3], atol=2e-5)
    turned = scattering(image.swapaxes(2, 3))[0].swapaxes(1, 2)
    first = slice(1, 9)  # angles from 3π/8 down to −π/2 in steps of π/8; the mirror makes each π/2 less itself
    order = [(2 - angle) % 8 for angle in range(8)]
    np.testing.assert_allclose(turned[first][order], scattering(image)[0][first], atol=2e-5)


def test_no_record_depends_on_another_and_chunks_change_nothing(monkeypatch):
    x = np.random.default_rng(1).random((7, 2, 8, 8)).astype(np.float32)
    whole = scattering(x)
    monkeypatch.setattr(module, "CHUNK", 3)
    np.testing.assert_allclose(scattering(x), whole, rtol=1e-6)
    np.testing.assert_allclose(scattering(x[4:5])[0], whole[4], rtol=1e-6)
    assert whole.shape == (7, 2 * MAPS, 2, 2)


def test_group_normalization_is_pytorchs():
    x = np.random.default_rng(2).standard_normal((300, 12, 3, 3)).astype(np.float32) * 5 + 1
    theirs = torch.nn.functional.group_norm(torch.from_numpy(x), 4).numpy()
    np.testing.assert_allclose(group_normalized(x, 4), theirs, atol=1e-5)
    group_normalized(x, 4, out=x)
    np.testing.assert_allclose(x, theirs, atol=1e-5)


@pytest.mark.parametrize(
    ("shape", "words"),
    [
        ((5, 64), "needs images"),
        ((5, 1, 10, 8), "10 × 8 pixels; sides must be multiples of 4"),
        ((5, 1, 4, 8), "4 × 8"),
    ],
)
def test_other_records_are_refused(shape, words):
    with pytest.raises(UserError, match=words):
        scattering(np.zeros(shape))
