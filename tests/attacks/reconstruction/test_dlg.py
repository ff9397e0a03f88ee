"""Deep leakage from gradients."""

import numpy as np
import torch

from dp_leakage.attacks import ATTACKS
from dp_leakage.attacks.reconstruction import dlg
from dp_leakage.attacks.reconstruction.released import released, victims
from dp_leakage.privacy.mechanism import Mechanism

SETTINGS = ATTACKS["dlg"].settings | {"images": 4, "steps": 100}


def test_images_and_labels_are_recovered_from_the_gradient_of_a_smooth_network(models, pictures):
    target = models("mlp", hidden=[20], activation="sigmoid")
    frame, images = dlg.score(target, pictures, None, SETTINGS, 0)
    np.testing.assert_allclose(images["weights=initial"][0], pictures.x[:4], atol=0.02)
    assert (frame["mse"] < 1e-4).all()
    x, y = victims(pictures, 4, "dlg")
    (seen,) = released(target, x, y, SETTINGS, 0, "dlg")
    _, label = dlg.leak(seen, x.shape, 3, SETTINGS)
    assert torch.equal(label.argmax(1), y)


def test_noise_of_a_small_budget_leaves_nothing_to_recover(models, pictures):
    target = models("mlp", Mechanism(noise_multiplier=1.0), hidden=[20], activation="sigmoid")
    frame, _ = dlg.score(target, pictures, None, SETTINGS | {"steps": 50}, 0)
    assert (frame["mse"] > 0.02).all()


def test_a_batch_is_searched_for_together(models, pictures):
    target = models("mlp", hidden=[40], activation="sigmoid")
    frame, _ = dlg.score(target, pictures, None, SETTINGS | {"images": 2, "batch": 2, "steps": 300}, 0)
    assert (frame["mse"] < 1e-3).all()
