"""What a step releases: the trainer's own gradient of one record, bounded and noised."""

import numpy as np
import pytest
import torch
import torch.nn.functional as F

from dp_leakage.attacks.reconstruction.released import released, victims
from dp_leakage.common.errors import UserError
from dp_leakage.models.ensemble import Ensemble
from dp_leakage.models.user_module import module_layers
from dp_leakage.privacy.mechanism import Mechanism

SETTINGS = {"weights": ["trained"], "batch": 1}


def seen(target, data, settings=SETTINGS):
    x, y = victims(data, 4, "iga")
    return list(released(target, x, y, settings, 0, "iga"))


def flat(gradients):
    return torch.cat([value.flatten(1) for value in gradients.values()], 1)


def test_without_a_mechanism_it_is_the_plain_gradient_of_each_record(models, pictures):
    target = models("lenet_strided", channels=[3], strides=[2], count=2)
    for found in seen(target, pictures):
        module = target.module(found.repeat)
        for i in range(4):
            loss = F.cross_entropy(
                module(torch.from_numpy(pictures.x[i : i + 1])), torch.from_numpy(pictures.y[i : i + 1])
            )
            expected = torch.autograd.grad(loss, list(module.parameters()))
            for one, other in zip(found.gradients.values(), expected, strict=True):
                torch.testing.assert_close(one[i], other, rtol=1e-4, atol=1e-7)


def test_a_batch_has_the_mean_of_its_records_gradients_each_bounded(models, pictures):
    for mechanism in (None, Mechanism(clip_norm=0.01, noise="none")):
        target = models("lenet_strided", mechanism, channels=[3], strides=[2])
        alone, together = (flat(seen(target, pictures, SETTINGS | {"batch": b})[0].gradients) for b in (1, 2))
        torch.testing.assert_close(together, alone.unflatten(0, (2, 2)).mean(1), rtol=1e-4, atol=1e-7)
    whole = seen(
        models("mlp", Mechanism(unit="batch", clip_norm=0.01, noise="none")), pictures, SETTINGS | {"batch": 4}
    )
    assert torch.linalg.vector_norm(flat(whole[0].gradients)).item() == pytest.approx(0.01, rel=1e-4)


def test_a_mechanism_bounds_and_noises_it_as_in_training(models, pictures):
    """10,000 normal numbers or more: their deviation lies within 5 standard errors but for one seed in a million."""
    quiet = {"clip_norm": 0.5, "bound": "normalize", "noise": "none"}
    bounded = flat(seen(models("mlp", Mechanism(**quiet)), pictures)[0].gradients)
    torch.testing.assert_close(torch.linalg.vector_norm(bounded, dim=1), torch.full((4,), 0.5), rtol=1e-4, atol=0)
    noisy = flat(
        seen(models("mlp", Mechanism(**quiet | {"noise": "gaussian", "noise_multiplier": 2.0})), pictures)[0].gradients
    )
    noise = noisy - bounded
    assert noise.std().item() == pytest.approx(1.0, abs=5 / np.sqrt(2 * noise.numel()))


def test_directional_noise_turns_each_row_by_itself(models, pictures):
    mechanism = Mechanism(bound="normalize", noise="vmf", block="row", kappa=1e6)
    target = models("mlp", mechanism, hidden=[5])
    plain = seen(models("mlp", hidden=[5]), pictures)[0].gradients
    for name in ("1", "3"):
        rows, clean = (torch.cat([g[f"{name}.weight"], g[f"{name}.bias"][..., None]], 2) for g in
                       (seen(target, pictures)[0].gradients, plain))  # fmt: skip
        torch.testing.assert_close(torch.linalg.vector_norm(rows, dim=2), torch.ones(rows.shape[:2]))
        alive = torch.linalg.vector_norm(clean, dim=2) > 0
        cosines = F.cosine_similarity(rows, clean, dim=2)[alive]
        assert cosines.min() > 0.999


def test_initial_weights_are_fresh_and_the_same_for_all_targets_and_cells(models, pictures):
    settings = SETTINGS | {"weights": ["initial", "trained"]}
    one, two = (seen(models("mlp", mechanism), pictures, settings) for mechanism in (None, Mechanism(noise="none")))
    assert [found.weights for found in one] == ["initial", "trained"]
    assert torch.equal(one[0].parameters["1.weight"], two[0].parameters["1.weight"])
    assert not torch.equal(one[0].parameters["1.weight"], one[1].parameters["1.weight"])


def test_records_that_are_no_images_or_too_many_and_unknown_models_are_refused(models, pictures):
    with pytest.raises(UserError, match="key 'images' is 9; expected 1 to the 6 members"):
        victims(pictures, 9, "iga")
    with pytest.raises(UserError, match="reconstructs images"):
        victims(pictures._replace(x=pictures.x - 0.5), 4, "iga")
    module = models("mlp").module(0)
    own = Ensemble(module_layers(lambda: module, pictures.x.shape[1:], pictures.n_classes), {}, torch.zeros(1, 1))
    with pytest.raises(UserError, match="cannot be run on a model with a module of your own"):
        seen(own, pictures)
