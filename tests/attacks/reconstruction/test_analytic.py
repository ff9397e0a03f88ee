"""Records are read off the gradient of a fully connected first layer."""

import numpy as np
import pandas as pd
import pytest
import torch
from scipy.stats import norm

from dp_leakage.attacks import ATTACKS
from dp_leakage.attacks.reconstruction import analytic
from dp_leakage.attacks.reconstruction.released import released, victims
from dp_leakage.common.errors import UserError
from dp_leakage.data.dataset import Dataset
from dp_leakage.models.architectures import build
from dp_leakage.models.ensemble import Ensemble
from dp_leakage.privacy.mechanism import Mechanism

SETTINGS = ATTACKS["analytic"].settings | {"images": 6, "weights": ["initial", "trained"]}


@pytest.mark.parametrize(
    "mechanism",
    [
        None,
        Mechanism(clip_norm=1e-3, noise="none"),
        Mechanism(clip_norm=0.5, bound="normalize", noise="none"),
        Mechanism(bound="normalize", noise="vmf", block="row", kappa=1e12),
    ],
    ids=["plain", "clipped", "normalized", "rows"],
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
    assert torch.equal(analytic._records(torch.zeros(3, 5), 2, torch.Generator()), torch.full((2, 4), 0.5))


def test_a_model_that_begins_with_a_convolution_is_refused(models, pictures):
    with pytest.raises(UserError, match="cannot be run on a model that begins with Conv2d"):
        analytic.score(models("lenet_strided", channels=[3], strides=[2]), pictures, None, SETTINGS, 0)


def planted(data, mechanism=None, seed=0):
    """A ReLU layer of 24 units in which units 0 to 3 answer to one of the first four records each, and no other record;
    the others answer to some of the four.
    """
    x = torch.from_numpy(data.x[:4]).flatten(1).double()
    generator = torch.Generator().manual_seed(seed)
    wanted = torch.cat([2 * torch.eye(4) - 1, torch.randn(20, 4, generator=generator)]).double()
    weight = wanted @ torch.linalg.pinv(x).T
    parameters = {
        "1.weight": weight, "1.bias": torch.zeros(24),
        "3.weight": torch.randn(3, 24, generator=generator), "3.bias": torch.zeros(3),
    }  # fmt: skip
    layers = build("mlp", (2, 8, 8), 3, hidden=[24])
    return Ensemble(layers, {k: v.float()[None] for k, v in parameters.items()}, torch.arange(6)[None], mechanism)


FOUR = SETTINGS | {"images": 4, "batch": 4, "weights": ["trained"]}
CLIPPED = Mechanism(clip_norm=0.05, noise="none")


@pytest.mark.parametrize("mechanism", [None, CLIPPED], ids=["plain", "clipped"])
def test_a_batch_in_which_each_record_has_a_unit_to_itself_comes_out_whole(pictures, mechanism):
    """By hand: the gradient of a unit that answers to one record alone is δ(x, 1), so its rows' quotient is x."""
    target = planted(pictures, mechanism)
    x, y = victims(pictures, 4, "analytic")
    (seen,) = released(target, x, y, FOUR, 0, "analytic")
    quotients = seen.gradients["1.weight"][0, :4] / seen.gradients["1.bias"][0, :4, None]
    np.testing.assert_allclose(quotients, x.flatten(1), atol=1e-4)
    frame, images = analytic.score(target, pictures, None, FOUR, 0)
    np.testing.assert_allclose(images["weights=trained"][0], x, atol=1e-3)
    assert (frame["ssim"] > 0.999).all()


def test_no_unit_need_answer_to_one_record_alone(models, pictures):
    """Under an untrained ReLU layer half of the units ignore a record. Three batches of two, and two of three."""
    for batch in (2, 3):
        asked = SETTINGS | {"batch": batch, "weights": ["initial"]}
        frame, images = analytic.score(models("mlp", hidden=[64, 32]), pictures, None, asked, 0)
        np.testing.assert_allclose(images["weights=initial"][0], pictures.x[:6], atol=1e-2)
        assert len(frame) == 6


def test_of_a_list_of_batches_each_is_measured_as_if_alone(models, pictures):
    target, asked = models("mlp", hidden=[64, 32]), SETTINGS | {"weights": ["initial"], "candidates": 2}
    frame, images = analytic.score(target, pictures, None, asked | {"images": 4, "batch": [1, 2]}, 0)
    for batch in (1, 2):
        alone, made = analytic.score(target, pictures, None, asked | {"images": 4, "batch": batch}, 0)
        own = frame[frame["batch"] == batch].drop(columns="batch").reset_index(drop=True)
        pd.testing.assert_frame_equal(own, alone)
        np.testing.assert_array_equal(images[f"batch={batch};weights=initial"], made["weights=initial"])


def many(count, seed):
    """Unrelated images, whose members are in random order."""
    x = np.random.default_rng(seed).uniform(size=(count, 2, 8, 8)).astype(np.float32)
    roles = {"target_members": np.arange(count)}
    return Dataset(x, np.arange(count) % 3, roles, np.array([], dtype=np.int64))


def test_of_a_private_step_on_a_batch_nothing_is_recognized_beyond_chance(models):
    """200 guesses among 10: at most .1 + 4.5 standard errors but for one seed in 100,000; in the clear nearly all."""
    asked = SETTINGS | {"images": 200, "batch": 4, "candidates": 10, "weights": ["initial"]}
    noisy = models("mlp", Mechanism(noise_multiplier=8.0), hidden=[24])
    frame, _ = analytic.score(noisy, many(209, 1), None, asked, 0)
    assert frame["recognized"].mean() <= 0.1 + 4.5 * np.sqrt(0.1 * 0.9 / 200)
    assert frame["recognized_proven"].unique() == pytest.approx(norm.cdf(norm.ppf(0.1) + 1 / 8))
    clear, _ = analytic.score(models("mlp", hidden=[64]), many(29, 2), None, asked | {"images": 20, "batch": 2}, 0)
    assert clear["recognized"].mean() > 0.95
    assert (clear["recognized_proven"] == 1).all()


@pytest.mark.parametrize("sigma", [0.3, 1.0, 3.0])
def test_no_attack_recognizes_more_often_than_is_proven(models, sigma):
    """300 single steps; the attack may exceed the limit by 4.5 standard errors for one seed in 100,000."""
    asked = SETTINGS | {"images": 300, "candidates": 10, "weights": ["initial"]}
    frame, _ = analytic.score(
        models("mlp", Mechanism(noise_multiplier=sigma), hidden=[24]), many(309, 3), None, asked, 0
    )
    limit = float(frame["recognized_proven"].iloc[0])
    assert frame["recognized"].mean() <= limit + 4.5 * np.sqrt(limit * (1 - limit) / 300)


def test_batches_that_do_not_fit_are_refused(models, pictures):
    with pytest.raises(UserError, match="key 'batch' must divide 'images'; got 4 and 6"):
        analytic.score(models("mlp"), pictures, None, SETTINGS | {"batch": 4}, 0)
    with pytest.raises(UserError, match="key 'batch' must be 1 where units are of kind class; got 2"):
        analytic.score(models("mlp", Mechanism(unit="class")), pictures, None, SETTINGS | {"batch": 2}, 0)
    with pytest.raises(
        UserError, match="key 'candidates' must be at most 3, since 4 of 6 members are reconstructed; got 9"
    ):
        analytic.score(models("mlp"), pictures, None, SETTINGS | {"images": 4, "candidates": 9}, 0)
