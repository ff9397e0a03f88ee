"""Records are read off the gradient of a fully connected first layer."""

import numpy as np
import pytest
import torch

from dp_leakage.attacks import ATTACKS
from dp_leakage.attacks.reconstruction import analytic
from dp_leakage.attacks.reconstruction.released import released, victims
from dp_leakage.common.errors import UserError
from dp_leakage.privacy.mechanism import Mechanism

SETTINGS = ATTACKS["analytic"].settings | {"images": 6, "weights": ["initial", "trained"]}


@pytest.mark.parametrize(
    "mechanism",
    [
        None,
        Mechanism(clip_norm=1e-3, noise="none"),
        Mechanism(clip_norm=0.5, bound="normalise", noise="none"),
        Mechanism(bound="normalise", noise="vmf", block="row", kappa=1e12),
    ],
    ids=["plain", "clipped", "normalised", "rows"],
)
@pytest.mark.parametrize(
    "settings", [{"hidden": [20], "activation": "sigmoid"}, {"hidden": []}], ids=["mlp", "softmax"]
)
def test_without_noise_records_are_recovered_whatever_bounds_the_gradient(models, pictures, mechanism, settings):
    frame, images = analytic.score(models("mlp", mechanism, 2, **settings), pictures, None, SETTINGS, 0)
    for made in images["weights=initial"], images["weights=trained"]:
        np.testing.assert_allclose(made, np.broadcast_to(pictures.x[:6], made.shape), atol=1e-4)
    assert len(frame) == 2 * 2 * 6
    assert (frame["ssim"] > 0.999).all()


def test_under_noise_it_is_the_nearest_matrix_of_rank_one(models, pictures):
    """Singular vectors of NumPy as the oracle."""
    target = models("mlp", Mechanism(noise_multiplier=0.05), hidden=[20])
    x, y = victims(pictures, 4, "analytic")
    seen, _ = released(target, x, y, SETTINGS, 0, "analytic")
    found = analytic.read_off(seen)
    for i in range(4):
        whole = np.column_stack([seen.gradients[f"1.{part}"][i].double().numpy() for part in ("weight", "bias")])
        right = np.linalg.svd(whole)[2][0]
        np.testing.assert_allclose(found[i], right[:-1] / right[-1], rtol=1e-4, atol=1e-5)


def test_it_comes_closer_than_the_best_single_row(models, pictures):
    """Phong et al.'s quotient of one row and its bias, of the row with the largest bias. 40 noisy gradients."""
    errors: dict[str, list] = {"rank one": [], "row": []}
    x, y = victims(pictures, 4, "analytic")
    target = models("mlp", Mechanism(noise_multiplier=0.01), hidden=[20])
    for seed in range(5):
        for seen in released(target, x, y, SETTINGS, seed, "analytic"):
            weight, bias = seen.gradients["1.weight"], seen.gradients["1.bias"]
            rows = bias.abs().argmax(1)
            row = torch.stack([weight[i, k] / bias[i, k] for i, k in enumerate(rows)])
            for name, made in (("rank one", analytic.read_off(seen)), ("row", row)):
                errors[name].extend((made.clamp(0, 1) - x.flatten(1)).square().mean(1).tolist())
    assert np.mean(errors["rank one"]) < 0.8 * np.mean(errors["row"])


def test_noise_alone_says_nothing(models, pictures):
    """As near to the own picture as to another: 400 coins lie within 4.5 standard errors but for 1 in 100,000."""
    target = models("mlp", Mechanism(noise_multiplier=1e4), hidden=[20])
    x, y = victims(pictures, 4, "analytic")
    nearer = []
    for seed in range(100):
        seen, _ = released(target, x, y, SETTINGS, seed, "analytic")
        made = analytic.read_off(seen).clamp(0, 1)
        own, other = ((made - of.flatten(1)).square().mean(1) for of in (x, x.roll(1, 0)))
        nearer.extend((own < other).tolist())
    assert np.mean(nearer) == pytest.approx(0.5, abs=4.5 * 0.5 / np.sqrt(len(nearer)))


def test_a_gradient_of_zero_says_nothing():
    assert torch.equal(analytic._input(torch.zeros(3, 5)), torch.full((4,), 0.5))


def test_a_model_that_begins_with_a_convolution_is_refused(models, pictures):
    with pytest.raises(UserError, match="cannot be run on a model that begins with Conv2d"):
        analytic.score(models("lenet_strided", channels=[3], strides=[2]), pictures, None, SETTINGS, 0)
