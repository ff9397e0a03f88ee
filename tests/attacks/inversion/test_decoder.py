"""Decoders per layer: where a model is cut, what is seen there, and how well it is turned back."""

import numpy as np
import pandas as pd
import pytest
import torch
import torch.nn.functional as F
from sklearn.datasets import load_digits

from dp_leakage.attacks import ATTACKS
from dp_leakage.attacks.inversion.decoder import MATCHED, NOTHING, PREDICTION, SCORES, _views, cuts, decoder, score
from dp_leakage.common import captures
from dp_leakage.common.errors import UserError
from dp_leakage.common.kernels import exact
from dp_leakage.data.dataset import Dataset
from dp_leakage.metrics import measure_reconstruction
from dp_leakage.models.architectures import build
from dp_leakage.models.ensemble import Ensemble
from dp_leakage.models.user_module import module_layers
from dp_leakage.training.settings import TrainingSettings
from dp_leakage.training.trainer import train

LAYERS = ["conv1", "maxpool1", "conv2", "maxpool2", "conv3", "maxpool3", "dense", "prediction"]
SETTINGS = ATTACKS["decoder"].settings | {"test_records": 40, "train_records": 250, "width": 8, "shown": 3}
SETTINGS |= {"epochs": 10, "batch_size": 20, "learning_rate": 0.01}


@pytest.fixture(scope="module")
def digits() -> Dataset:
    x = (load_digits().images[:900, None] / 16).astype(np.float32)
    ends = {"target_members": (0, 300), "target_nonmembers": (300, 400), "shadow_pool": (400, 900)}
    roles = {name: np.arange(*end) for name, end in ends.items()}
    return Dataset(x, load_digits().target[:900].astype(np.int64), roles, np.array([], dtype=np.int64))


@pytest.fixture(scope="module")
def target(digits: Dataset) -> Ensemble:
    layers = build("cnn", (1, 8, 8), 10, channels=[6, 8, 8], dense=12, dropout=0.2)
    x, y = torch.from_numpy(digits.x), torch.from_numpy(digits.y)
    rows = torch.from_numpy(digits.roles["target_members"])
    settings = TrainingSettings(optimizer="adam", learning_rate=0.01, epochs=8, batch_size=50, evaluate_every=8)
    return train(layers, x, y, rows.repeat(2, 1), [1, 2], settings)[0]


@pytest.fixture(scope="module")
def scored(target: Ensemble, digits: Dataset):
    return score(target, digits, None, SETTINGS, 5)


def test_the_papers_network_is_cut_at_its_eight_layers():
    layers = build("cnn", (3, 32, 32), 10, dropout=0.2)
    assert [cut.name for cut in cuts(layers)] == LAYERS
    assert [cut.name for cut in cuts(build("lenet", (1, 28, 28), 10))] == [
        "conv1", "maxpool1", "conv2", "maxpool2", "dense1", "dense2", "prediction",
    ]  # fmt: skip
    assert [cut.name for cut in cuts(build("softmax_regression", (4,), 10))] == ["prediction"]


def test_what_is_seen_is_the_layers_own_output(target: Ensemble, digits: Dataset):
    x = torch.from_numpy(digits.x[:20])
    module = target.module(1)
    seen = {name: of for name, _, of in _views(target, 1, x, x, 1.0)}
    first, (dense, last) = module[0], [layer for layer in module if isinstance(layer, torch.nn.Linear)]
    conv1 = F.relu(first(x))
    torch.testing.assert_close(seen["conv1"], conv1)
    torch.testing.assert_close(seen["maxpool1"], F.max_pool2d(conv1, 2))
    flat = seen["maxpool3"].flatten(1)
    torch.testing.assert_close(seen["dense"], F.relu(dense(flat)))
    torch.testing.assert_close(seen["prediction"], last(seen["dense"]).softmax(1))
    assert list(seen) == [*LAYERS, MATCHED, SCORES, NOTHING]


def test_the_controls_do_not_change_with_the_temperature(target: Ensemble, digits: Dataset):
    x = torch.from_numpy(digits.x[:50])
    last = max((name for name in target.parameters if name.endswith("weight")), key=lambda n: int(n.split(".")[0]))
    sharper = {
        name: value * (3 if name.split(".")[0] == last.split(".")[0] else 1)
        for name, value in target.parameters.items()
    }
    before, after = (
        {name: of for name, _, of in _views(models, 0, x, x, 0.7)}
        for models in (target, Ensemble(target.layers, sharper, target.train_indices))
    )
    for control in (MATCHED, SCORES):
        torch.testing.assert_close(before[control], after[control], rtol=1e-4, atol=1e-5)
    assert (before[PREDICTION] - after[PREDICTION]).abs().max() > 0.05
    assert before[SCORES].std().item() == pytest.approx(1, rel=1e-4)
    torch.testing.assert_close(before[MATCHED], (0.7 * before[SCORES]).softmax(1))


@pytest.mark.parametrize("shape", [(16, 28, 28), (8, 14, 14), (8, 7, 7), (8, 3, 3), (64,), (10,)])
def test_decoders_make_images_of_the_right_shape(shape):
    made = decoder(shape, (1, 28, 28), 4)(torch.randn(5, *shape))
    assert made.shape == (5, 1, 28, 28)
    assert ((made > 0) & (made < 1)).all()


@pytest.mark.parametrize(("shape", "image"), [((4, 4, 4), (3, 32, 32)), ((9,), (3, 32, 32)), ((2, 1, 1), (1, 8, 8))])
def test_decoders_make_larger_images_too(shape, image):
    assert decoder(shape, image, 4)(torch.randn(2, *shape)).shape == (2, *image)


def test_scores_and_pictures_are_those_of_unseen_records(scored, digits: Dataset):
    frame, pictures = scored
    assert len(frame) == 2 * 11 * 40
    assert list(frame.columns) == ["repeat", "target", "restart", "layer", "mse"]
    truth = digits.x[digits.roles["target_nonmembers"]]
    np.testing.assert_array_equal(pictures["original"], truth[:3])
    for layer, of in pictures.items():
        assert of.shape == (3, 1, 8, 8)
        if layer != "original":
            own = frame[(frame["layer"] == layer) & (frame["repeat"] == 0)].sort_values("target")["mse"][:3]
            np.testing.assert_allclose(own, ((of - truth[:3]) ** 2).mean((1, 2, 3)), rtol=1e-4)


def test_the_first_layer_tells_most_and_the_mean_image_is_the_mean(scored, digits: Dataset):
    frame, _ = scored
    error = frame.groupby("layer")["mse"].mean()
    assert error["conv1"] < 0.5 * error["prediction"]
    assert error["prediction"] < error[NOTHING]
    known, unknown = (digits.x[digits.roles[role]] for role in ("shadow_pool", "target_nonmembers"))
    known = known[:250]
    assert error[NOTHING] == pytest.approx(((unknown[:40] - known.mean(0)) ** 2).mean(), rel=1e-5)


def test_the_same_seed_gives_the_same_numbers_whatever_was_drawn_before(target: Ensemble, digits: Dataset):
    short = SETTINGS | {"epochs": 1}
    first, pictures = score(target, digits, None, short, 5)
    torch.rand(7)
    again, same = score(target, digits, None, short, 5)
    np.testing.assert_array_equal(again["mse"], first["mse"])
    np.testing.assert_array_equal(same["dense"], pictures["dense"])
    other, _ = score(target, digits, None, short, 6)
    assert (other["mse"] != first["mse"]).mean() > 0.8


def test_metrics_are_apart_for_each_layer(scored):
    rows = measure_reconstruction(scored[0][scored[0]["layer"].isin(["conv1", "dense"])], "decoder")
    assert {(row["attack"], row["layer"], row["statistic"]) for row in rows} == {
        ("decoder", layer, statistic) for layer in ("conv1", "dense") for statistic in ("mean", "median")
    }


def test_records_that_are_no_images_are_refused(target: Ensemble, digits: Dataset):
    with pytest.raises(UserError, match="are not images"):
        score(target, digits._replace(x=digits.x.reshape(900, 64)), None, SETTINGS, 0)
    with pytest.raises(UserError, match=r"values in \[0, 1\]"):
        score(target, digits._replace(x=digits.x * 16), None, SETTINGS, 0)


def test_of_a_users_own_module_the_prediction_is_rebuilt(target: Ensemble, digits: Dataset):
    """Its layers are not known here; what a black box shows is, and the same picture is made of it."""
    network = target.module(0)
    parameters = {name: value[None].clone() for name, value in network.state_dict().items()}
    layers = module_layers(lambda: target.module(0), digits.x.shape[1:], digits.n_classes)
    own = Ensemble(layers, {f"0.{name}": value for name, value in parameters.items()}, target.train_indices[:1])
    settings = SETTINGS | {"train_records": 60, "epochs": 1}
    frame, pictures = score(own, digits, None, settings, 5)
    assert set(frame["layer"]) == {PREDICTION, MATCHED, SCORES, NOTHING}
    built_in, shown = score(target, digits, None, settings, 5)
    same = built_in[(built_in["layer"] == PREDICTION) & (built_in["repeat"] == 0)]["mse"]
    assert frame[frame["layer"] == PREDICTION]["mse"].to_numpy() == pytest.approx(same.to_numpy(), rel=1e-5)
    np.testing.assert_allclose(pictures[PREDICTION], shown[PREDICTION], atol=1e-5)


@pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device")
def test_decoders_on_a_gpu_rebuild_as_on_the_cpu_and_replay_the_bytes_of_single_kernels(
    target: Ensemble, digits: Dataset, scored, monkeypatch
):
    with exact():
        on_gpu, pictures = score(target.to("cuda"), digits, None, SETTINGS, 5)
        monkeypatch.setenv(captures.OFF, "1")
        single, _ = score(target.to("cuda"), digits, None, SETTINGS, 5)
    pd.testing.assert_frame_equal(on_gpu, single, check_exact=True)
    of_layer = [frame.groupby("layer")["mse"].mean() for frame in (scored[0], on_gpu)]
    np.testing.assert_allclose(of_layer[1], of_layer[0], rtol=0.02)  # other sums in each step of each training
    assert {name: picture.shape for name, picture in pictures.items()} == {
        name: picture.shape for name, picture in scored[1].items()
    }
