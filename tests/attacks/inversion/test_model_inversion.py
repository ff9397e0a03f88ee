"""Model inversion against closed forms, finite differences and steps written out by hand."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from dp_leakage.attacks import ATTACKS
from dp_leakage.attacks.inversion.model_inversion import _Search, adam_step, invert, objective, score
from dp_leakage.common.errors import UserError
from dp_leakage.common.schemas import holds
from dp_leakage.data.dataset import Dataset
from dp_leakage.models.architectures import build
from dp_leakage.models.ensemble import Ensemble
from dp_leakage.models.input_gradients import logits_and_pull_back
from dp_leakage.models.layers import initial_parameters

SHAPE, CLASSES = (1, 8, 9), 3
SEARCH = _Search("probability", "none", "variable", (), "sgd", 0.5, 20, 0.0, 0.0, 0.0, 0, 1, 1)


def models_of(name, size=2, dtype=torch.float32, **settings):
    layers = build(name, SHAPE, CLASSES, **settings)
    starts = [initial_parameters(layers, torch.Generator().manual_seed(seed)) for seed in range(size)]
    parameters = {key: torch.stack([start[key] for start in starts]).to(dtype) for key in starts[0]}
    return Ensemble(layers, parameters, torch.arange(12).expand(size, -1))


def data_of(seed=0):
    rng = np.random.default_rng(seed)
    x = rng.random((12, *SHAPE), dtype=np.float32)
    return Dataset(x, np.arange(12) % CLASSES, {"target_members": np.arange(12)}, np.array([], np.int64))


def by_autograd(models, x):
    """What `logits_and_pull_back` returns, from the models as torch modules."""
    inputs = x.detach().requires_grad_()
    logits = torch.stack([models.module(model)(own) for model, own in enumerate(inputs)])
    return logits.detach(), lambda delta: torch.autograd.grad(logits, inputs, delta)[0]


@pytest.mark.parametrize("name", ["softmax_regression", "mlp", "cnn_small"])
def test_the_way_back_is_autograds(name):
    models = models_of(name)
    x = torch.rand(2, 4, *SHAPE, generator=torch.Generator().manual_seed(1))
    delta = torch.randn(2, 4, CLASSES, generator=torch.Generator().manual_seed(2))
    ours, pull_ours = logits_and_pull_back(models, x.clone())
    theirs, pull_theirs = by_autograd(models, x)
    torch.testing.assert_close(ours, theirs)
    torch.testing.assert_close(pull_ours(delta.clone()), pull_theirs(delta.clone()))


@pytest.mark.parametrize("loss", ATTACKS["inversion_l1"].schemas["loss"]["enum"])
@pytest.mark.parametrize("box", ATTACKS["inversion_l1"].schemas["box"]["enum"])
@pytest.mark.parametrize(
    "penalty", [(), (("l1_mean", 0.5),), (("l1", 0.05), ("btv", 0.02)), (("l2", 0.1), ("smoothness", 0.2))]
)
@pytest.mark.parametrize(("shift", "looks"), [(0, 1), (2, 1), (2, 3)])
def test_the_gradient_is_that_of_finite_differences(loss, box, penalty, shift, looks):
    # Tanh layers, so that there are no kinks but the regularizer's, which random pixels keep away from.
    models = models_of("mlp", dtype=torch.float64, hidden=[7], activation="tanh")
    generator = torch.Generator().manual_seed(3)
    w = torch.rand(2, CLASSES, *SHAPE, generator=generator, dtype=torch.float64) + 0.1
    labels = torch.arange(CLASSES).expand(2, -1)
    search = replace(SEARCH, loss=loss, box=box, penalty=penalty, shift=shift, noise=0.1 * shift, looks=looks)

    def at(w):
        return objective(models, w, labels, search, torch.Generator().manual_seed(9))

    gradient = at(w)[2]
    for _ in range(5):
        direction = torch.randn(w.shape, generator=generator, dtype=torch.float64)
        step = 1e-6 * direction
        ahead, behind = (at(w + sign * step)[0] for sign in (1, -1))
        slope = (gradient * direction).flatten(2).sum(2)
        torch.testing.assert_close((ahead - behind) / 2e-6, slope, rtol=1e-5, atol=1e-8)


def test_the_printed_gradient_leaves_out_what_the_box_does_to_it():
    models = models_of("mlp")
    w = torch.randn(2, CLASSES, *SHAPE, generator=torch.Generator().manual_seed(3))
    labels = torch.arange(CLASSES).expand(2, -1)
    search = replace(SEARCH, box="tanh", penalty=(("l1", 0.1),))
    for_w, for_x = (objective(models, w, labels, replace(search, gradient=g))[2] for g in ("variable", "image"))
    torch.testing.assert_close(for_w, for_x * (1 - torch.tanh(w) ** 2) / 2)


def test_the_objective_of_a_softmax_regression_in_closed_form():
    models = models_of("softmax_regression", dtype=torch.float64)
    w = torch.rand(2, CLASSES, *SHAPE, generator=torch.Generator().manual_seed(4), dtype=torch.float64)
    labels = torch.arange(CLASSES).expand(2, -1)
    loss, probability, gradient = objective(models, w, labels, replace(SEARCH, penalty=(("l1", 0.1),)))
    for k in range(2):
        weight, bias = (models.parameters[f"1.{part}"][k].numpy() for part in ("weight", "bias"))
        for c in range(CLASSES):
            x = w[k, c].numpy().ravel()
            z = weight @ x + bias
            p = np.exp(z - z.max()) / np.exp(z - z.max()).sum()
            expected = -p[c] * (weight[c] - p @ weight) + 0.1  # d(1 − p_c)/dx = −p_c (W_c − Σ_j p_j W_j); x > 0
            np.testing.assert_allclose(gradient[k, c].numpy().ravel(), expected, rtol=1e-9)
            np.testing.assert_allclose(loss[k, c], 1 - p[c] + 0.1 * x.sum(), rtol=1e-9)
            np.testing.assert_allclose(probability[k, c], p[c], rtol=1e-9)


def test_descent_on_two_classes_goes_along_the_difference_of_their_weights():
    # From x = 0 the gradient is always a multiple of W_1 − W_0: so is the image, wherever it is not cut to [0, 1].
    layers = build("softmax_regression", SHAPE, 2)
    parameters = {key: value[None] for key, value in initial_parameters(layers, torch.Generator()).items()}
    models = Ensemble(layers, parameters, torch.zeros(1, 1, dtype=torch.int64))
    images, _, probability = invert(models, np.array([0, 1]), SHAPE, replace(SEARCH, steps=3), 0)
    towards = (parameters["1.weight"][0, 1] - parameters["1.weight"][0, 0]).numpy()
    for label, direction in ((0, -towards), (1, towards)):
        image = images[0, label].ravel()
        inside = direction > 0
        assert image[~inside].max() == 0
        ratio = image[inside] / direction[inside]
        np.testing.assert_allclose(ratio, ratio.mean(), rtol=1e-4)
        assert ratio.mean() > 0
    blank = models.logits(torch.zeros(1, *SHAPE))[0, 0].softmax(0).numpy()
    assert (probability[0] > blank).all()


def test_an_inversion_finds_the_picture_that_is_planted_in_the_weights():
    rng = np.random.default_rng(5)
    pictures = (rng.random((CLASSES, *SHAPE)) < 0.3).astype(np.float32)
    layers = build("softmax_regression", SHAPE, CLASSES)
    weight = torch.from_numpy(pictures.reshape(CLASSES, -1)) - 0.3
    models = Ensemble(layers, {"1.weight": weight[None], "1.bias": torch.zeros(1, CLASSES)}, torch.zeros(1, 1).long())
    enhanced = replace(SEARCH, box="tanh", penalty=(("l1", 0.01),), optimizer="adam", learning_rate=0.1, steps=300)
    images, _, probability = invert(models, np.arange(CLASSES), SHAPE, enhanced, 0)
    assert (probability > 0.6).all()
    for found, planted in zip(images[0], pictures, strict=True):
        distances = [np.linalg.norm(found - picture) for picture in pictures]
        assert np.argmin(distances) == np.argmin([np.linalg.norm(planted - picture) for picture in pictures])
        assert min(distances) < np.linalg.norm(planted)  # nearer than the black image


def test_a_step_is_the_papers_adam_without_correction_of_its_bias():
    rng = np.random.default_rng(6)
    w, m, v = rng.normal(size=5), np.zeros(5), np.zeros(5)
    w_, m_, v_ = (torch.from_numpy(a.copy()) for a in (w, m, v))
    for step in range(4):
        gradient = rng.normal(size=5)
        for i in range(5):  # algorithm 1, lines 6 to 8
            m[i] = 0.9 * m[i] + (1 - 0.9) * gradient[i]
            v[i] = 0.999 * v[i] + (1 - 0.999) * gradient[i] ** 2
            w[i] = w[i] - 0.1 * m[i] / (v[i] + 1e-8) ** 0.5
        before = w_.clone()
        adam_step(w_, torch.from_numpy(gradient), m_, v_, 0.1)
        np.testing.assert_allclose(w_, w, rtol=1e-12)
        if step == 0:  # 0.1/√0.001 = 3.16 times η, whatever the gradient's size
            np.testing.assert_allclose(w_ - before, -0.316 * np.sign(gradient), rtol=1e-2)


@pytest.mark.parametrize("name", ["inversion_l1", "inversion_l1_sum", "inversion_btv"])
def test_the_enhanced_attack_begins_with_w_at_zero_as_line_1_of_the_algorithm_prints(name):
    settings = ATTACKS[name].settings | {"steps": 0}
    search = _Search.of(settings, settings["penalties"][0])
    images, _, _ = invert(models_of("mlp"), np.arange(CLASSES), SHAPE, search, 3)
    assert (images == 0.5).all()


def test_looks_are_averaged_each_with_noise_of_its_own():
    models = models_of("softmax_regression")
    x, labels = torch.rand(2, CLASSES, *SHAPE), torch.arange(CLASSES).expand(2, -1)
    search = replace(SEARCH, noise=0.3, looks=4)
    noise = torch.randn(4 * CLASSES, *SHAPE, generator=torch.Generator().manual_seed(5)).view(4, CLASSES, *SHAPE)
    seen = [objective(models, x + 0.3 * own, labels, SEARCH) for own in noise]
    found = objective(models, x, labels, search, torch.Generator().manual_seed(5))
    for ours, theirs in zip(found, zip(*seen, strict=True), strict=True):
        torch.testing.assert_close(ours, torch.stack(theirs).mean(0))


def test_each_image_is_found_as_if_it_were_alone():
    models = models_of("cnn_small", size=2)
    search = replace(SEARCH, box="tanh", penalty=(("l1", 0.01),), optimizer="adam", start_deviation=0.5)
    together, _, _ = invert(models, np.arange(CLASSES), SHAPE, search, 7)
    for k in range(2):
        own = {name: values[k : k + 1] for name, values in models.parameters.items()}
        alone = Ensemble(models.layers, own, models.train_indices[:1])
        np.testing.assert_allclose(invert(alone, np.arange(CLASSES), SHAPE, search, 7)[0][0], together[k], atol=2e-3)


def test_the_restart_with_the_least_loss_is_kept():
    models = models_of("mlp", size=2)
    search = replace(SEARCH, loss="cross_entropy", steps=2, start_deviation=1.0)
    _, restart, probability = invert(models, np.arange(CLASSES), SHAPE, replace(search, restarts=5), 8)
    _, _, first = invert(models, np.arange(CLASSES), SHAPE, search, 8)
    assert set(restart.ravel()) <= set(range(5))
    assert restart.any()
    assert (probability >= first - 1e-6).all()
    assert (probability[restart > 0] > first[restart > 0]).all()


@pytest.mark.parametrize(("told", "column", "sign"), [("euclidean", "distance", 1), ("ssim", "ssim", -1)])
def test_a_told_attacker_is_never_worse_than_with_any_one_penalty(told, column, sign):
    models, data = models_of("softmax_regression", size=3), data_of()
    grid = [[["none", 0.0]], [["l1", 0.02]], [["btv", 0.01], ["l1", 0.01]]]
    settings = ATTACKS["inversion_tuned_euclidean"].settings | {"steps": 20, "restarts": 1, "penalties": grid}
    frame, pictures = score(models, data, None, settings | {"told": told}, 0)
    mean = sign * frame.groupby("repeat")[column].mean()
    for number, kind in enumerate(grid):
        alone, _ = score(models, data, None, settings | {"told": told, "penalties": [kind]}, 0)
        other = sign * alone.groupby("repeat")[column].mean()
        assert (mean <= other + 1e-9).all()
        same = pictures["penalty"] == number
        np.testing.assert_allclose(mean[same], other[same])


def test_the_frame_and_the_images():
    models, data = models_of("softmax_regression"), data_of()
    settings = ATTACKS["inversion_l1"].settings | {"steps": 30}
    frame, pictures = score(models, data, None, settings, 0)
    again, _ = score(models, data, None, settings, 0)
    assert frame.equals(again)
    assert list(frame.columns) == ["repeat", "target", "restart", "distance", "ssim", "confidence"]
    assert frame[["repeat", "target"]].to_numpy().tolist() == [[k, c] for k in range(2) for c in range(CLASSES)]
    assert all(array.dtype == np.float32 for array in pictures.values())
    images = pictures["reconstruction"]
    assert images.shape == (2, CLASSES, *SHAPE)
    assert images.min() >= 0
    assert images.max() <= 1
    for row in frame.itertuples():
        own = data.x[data.y == row.target]
        distances = [np.linalg.norm(images[row.repeat, row.target] - other) for other in own]
        assert row.distance == pytest.approx(min(distances), rel=1e-5)
        assert (pictures["original"][row.repeat, row.target] == own[np.argmin(distances)]).all()
        z = models.logits(torch.from_numpy(images[row.repeat]))[row.repeat, row.target]
        assert row.confidence == pytest.approx(z.softmax(0)[row.target].item(), rel=1e-4)


@pytest.mark.parametrize(
    "wrong",
    [
        {"loss": "margin"},
        {"box": "sigmoid"},
        {"optimizer": "lbfgs"},
        {"told": "mse"},
        {"gradient": "both"},
        {"penalties": []},
        {"penalties": [[["tv", 1.0]]]},
        {"penalties": [[["l1", -1.0]]]},
        {"noise": -0.1},
        {"steps": 0},
        {"looks": 0},
    ],
)
def test_a_wrong_setting_is_none_that_a_study_may_give(wrong):
    ((key, value),) = wrong.items()
    assert holds(ATTACKS["inversion_l1"].settings[key], ATTACKS["inversion_l1"].schemas[key])
    assert not holds(value, ATTACKS["inversion_l1"].schemas[key])


def test_rows_of_numbers_are_refused():
    data = data_of()._replace(x=np.zeros((12, 4), np.float32))
    with pytest.raises(UserError, match="are not images"):
        score(models_of("softmax_regression"), data, None, ATTACKS["inversion_l1"].settings, 0)


def test_the_penalties_that_a_study_may_name_are_those_that_there_are():
    from dp_leakage.attacks.inversion.regularizers import REGULARIZERS

    said = ATTACKS["inversion_l1"].schemas["penalties"]
    assert all(holds([[[name, 0.5]]], said) for name in REGULARIZERS)
    assert not holds([[["l3", 0.5]]], said)
