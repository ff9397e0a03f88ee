"""How close images come."""

import numpy as np
import pytest
import torch
from skimage.metrics import structural_similarity

from dp_leakage.attacks.reconstruction.outcome import outcome
from dp_leakage.attacks.reconstruction.released import released, victims


def test_measures_are_the_textbooks_in_stated_spaces(models, pictures):
    x, y = victims(pictures, 4, "iga")
    settings = {"weights": ["trained", "initial"]}
    rebuilt = [(s, x + 0.1 * (i + 1)) for i, s in enumerate(released(models("mlp"), x, y, settings, 0, "iga"))]
    frame, images = outcome(pictures, x, rebuilt)
    made = (x + 0.1).clamp(0, 1).numpy()
    np.testing.assert_array_equal(images["weights=trained"][0], made)
    trained = frame[frame["weights"] == "trained"]
    error = (made - x.numpy()) ** 2
    np.testing.assert_allclose(trained["mse"], error.mean(axis=(1, 2, 3)), rtol=1e-5)
    spread = pictures.x[pictures.roles["target_members"]].std(axis=(0, 2, 3))
    expected = (error.mean(axis=(2, 3)) / spread**2).mean(axis=1)
    np.testing.assert_allclose(trained["mse_standardised"], expected, rtol=1e-5)
    first = structural_similarity(x[0].numpy(), made[0], data_range=1, channel_axis=0)
    assert trained["ssim"].iloc[0] == pytest.approx(first)


def test_diverged_pixels_are_gray(models, pictures):
    x, y = victims(pictures, 4, "iga")
    (seen,) = released(models("mlp"), x, y, {"weights": ["trained"]}, 0, "iga")
    frame, _ = outcome(pictures, x, [(seen, torch.full_like(x, torch.nan))])
    assert frame["mse"].notna().all()
