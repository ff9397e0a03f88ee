"""Inverting gradients."""

import numpy as np
import pytest
import torch

from dp_leakage.attacks import ATTACKS
from dp_leakage.attacks.reconstruction import iga
from dp_leakage.common import captures
from dp_leakage.privacy.mechanism import Mechanism

SETTINGS = ATTACKS["iga"].settings | {"images": 4, "steps": 400, "total_variation": 0.0}


def test_a_known_image_is_recovered_exactly_from_the_gradient_of_a_softmax_regression(models, pictures):
    """A softmax regression's gradient is δ(x, 1): its rows divided by their bias are the image, so it can be found."""
    frame, images = iga.score(models("softmax_regression"), pictures, None, SETTINGS, 0)
    np.testing.assert_allclose(images["weights=initial"][0], pictures.x[:4], atol=2e-3)
    np.testing.assert_array_equal(images["original"], pictures.x[:4])
    assert (frame["ssim"] > 0.999).all()
    assert (frame["mse"] < 1e-6).all()


def test_half_the_precision_finds_the_same_image(models, pictures):
    single = SETTINGS | {"precision": "float32"}
    _, images = iga.score(models("softmax_regression"), pictures, None, single, 0)
    np.testing.assert_allclose(images["weights=initial"][0], pictures.x[:4], atol=2e-3)


def test_noise_of_a_small_budget_leaves_nothing_to_recover(models, pictures):
    noise = Mechanism(noise_multiplier=1.0)
    frame, images = iga.score(models("softmax_regression", noise), pictures, None, SETTINGS | {"steps": 100}, 0)
    assert (frame["mse"] > 0.02).all()
    assert images["weights=initial"].min() >= 0
    assert images["weights=initial"].max() <= 1


def test_step_sizes_fall_at_three_eighths_five_eighths_and_seven_eighths():
    sizes = [iga.step_size(step, {"steps": 80, "step_size": 0.1}) for step in (1, 30, 31, 50, 51, 70, 71, 80)]
    assert sizes == pytest.approx([0.1, 0.1, 0.01, 0.01, 0.001, 0.001, 0.0001, 0.0001])


def test_total_variation_counts_both_directions():
    x = torch.tensor([[[[0.0, 1.0], [0.0, 3.0]]]])
    assert iga.total_variation(x).item() == pytest.approx((0 + 2) / 2 + (1 + 3) / 2)


def test_the_same_seed_gives_the_same_bytes(models, pictures):
    few = SETTINGS | {"steps": 5, "weights": ["initial", "trained"]}
    (a, first), (b, second) = (iga.score(models("mlp", count=2), pictures, None, few, 1) for _ in range(2))
    assert a.equals(b)
    assert all(np.array_equal(first[name], second[name]) for name in first)
    assert first["weights=trained"].shape == (2, 4, 2, 8, 8)


def test_a_batch_is_inverted_where_no_layer_can_be_read_off(models, pictures):
    """Two images of different classes in one gradient of a softmax regression; each comes out as itself."""
    two = pictures._replace(y=np.array([0, 1, 0, 1, 0, 1, 2, 2]))
    frame, images = iga.score(
        models("softmax_regression"), two, None, SETTINGS | {"images": 2, "batch": 2, "steps": 1000}, 0
    )
    np.testing.assert_allclose(images["weights=initial"][0], pictures.x[:2], atol=0.1)
    assert (frame["mse"] < 1e-3).all()


@pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device")
@pytest.mark.parametrize("architecture", ["mlp", "lenet_strided"])
def test_on_a_gpu_replayed_steps_give_the_bytes_of_single_kernels_and_the_images_of_the_cpu(
    architecture, models, pictures, monkeypatch
):
    few, target = SETTINGS | {"steps": 40}, models(architecture)
    frame, _ = iga.score(target, pictures, None, few, 1)
    target = target.to("cuda")
    on_gpu, replayed = iga.score(target, pictures, None, few, 1)
    monkeypatch.setenv(captures.OFF, "1")
    _, single = iga.score(target, pictures, None, few, 1)
    np.testing.assert_array_equal(replayed["weights=initial"], single["weights=initial"])
    # Steps follow signs of gradients, and a sign near 0 hangs on the last digit.
    np.testing.assert_allclose(on_gpu["mse"], frame["mse"], atol=0.02)
