"""Features that a network learns on public records: what they are, and what the report is told of them."""

import numpy as np
import pytest
import torch
from sklearn.datasets import load_digits
from torch.nn import functional

from dp_leakage.common.errors import UserError
from dp_leakage.common.identity import identity
from dp_leakage.data.projection_settings import ProjectionSettings
from dp_leakage.models.architectures import build
from dp_leakage.models.features import kept_layers
from dp_leakage.provenance.files import read_arrays, read_tensors, write_arrays
from dp_leakage.steps import learn_features, project

SHAPE = (1, 8, 8)
TRAINING = {"optimizer": "sgd", "learning_rate": 0.1, "momentum": 0.9, "epochs": 15, "batch_size": 50}


@pytest.fixture
def digits():
    bundle = load_digits()
    return (bundle.images / 16).astype(np.float32)[:, None], bundle.target


def learned(folder, digits, own=slice(0, 400), public=slice(900, 1797), **changes):
    """Runs step learn_features, and returns its settings and its file."""
    x, y = digits
    np.savez(folder / "public.npz", x=x[public], y=y[public])
    np.savez(folder / "own.npz", x=x[own], y=y[own])
    roles = {"target_members": np.arange(200), "target_nonmembers": np.arange(200, 400)}
    arrays = {"x": x[own], "y": y[own].astype(np.int64), "sensitive": np.empty(0, np.int64), **roles}
    made = {"identity": "p", "sha256": {}, "n_records": 400, "notes": [], "remarks": [], "copies": {}, "names": {}}
    write_arrays(folder / "prepared.npz", arrays, made)
    settings = {
        "dataset": "mine",
        "source": {"source": "npz", "path": str(folder / "public.npz")},
        "content": None,
        "for": {"source": "npz", "path": str(folder / "own.npz")},
        "mean_std": None,
        "architecture": {"name": "cnn", "channels": [4, 8], "dense": 16},
        "training": TRAINING,
        "seed": 5,
    } | changes
    file = folder / "features.safetensors"
    learn_features.main(settings, file, "cpu", 60.0, folder)
    return settings, file


def projected(folder, settings, file, **projection):
    """Runs step project, and returns the features and the sentences."""
    own = {"learned_on": {"layers": "hidden"}} | projection
    asked = {"projection": {"features": "learned", **own}, "seed": 1, "prepared": "p", "features": identity(settings)}
    project.main(asked, folder / "prepared.npz", folder / "data.npz", file)
    arrays, made = read_arrays(folder / "data.npz")
    return arrays["x"], made["notes"]


def by_hand(x, tensors, layers):
    """What the network's layers compute, with PyTorch's own functions."""
    own = {name: torch.from_numpy(tensor[0]) for name, tensor in tensors.items() if "." in name}
    (w1, b1), (w2, b2), (w3, b3) = [
        (own[f"{place}.weight"], own[f"{place}.bias"])
        for place in sorted({int(name.split(".")[0]) for name in own})[:3]
    ]
    z = torch.from_numpy(x)
    for weight, bias in ((w1, b1), (w2, b2)):
        z = functional.max_pool2d(functional.relu(functional.conv2d(z, weight, bias, padding=1)), 2)
    return (z if layers == "convolutions" else functional.relu(functional.linear(z.flatten(1), w3, b3))).numpy()


@pytest.mark.parametrize(("layers", "shape"), [("convolutions", (8, 2, 2)), ("hidden", (16,))])
def test_features_are_what_pytorch_computes_with_the_parameters_of_the_file(tmp_path, digits, layers, shape):
    settings, file = learned(tmp_path, digits)
    x, notes = projected(tmp_path, settings, file, learned_on={"layers": layers})
    tensors, made = read_tensors(file)
    assert x.shape == (400, *shape)
    assert x.dtype == np.float32
    np.testing.assert_allclose(x, by_hand(digits[0][:400], tensors, layers), rtol=1e-4, atol=1e-5)
    assert made["accuracy"]["train"] > 0.5  # it has learned: guessing is .1
    (note,) = notes
    assert "of a cnn, which learned from 897 records of npz. Those records count as public" in note


def test_constants_are_taken_from_public_records_and_own_ones(tmp_path, digits):
    settings, file = learned(tmp_path, digits, mean_std=[0.3, 0.5])
    x, _ = projected(tmp_path, settings, file, mean_std=[0.3, 0.5])
    tensors, made = read_tensors(file)
    np.testing.assert_allclose(x, by_hand((digits[0][:400] - 0.3) / 0.5, tensors, "hidden"), rtol=1e-4, atol=1e-5)
    assert made["accuracy"]["train"] > 0.5


def test_own_records_among_the_public_ones_are_counted_and_told(tmp_path, digits):
    settings, file = learned(tmp_path, digits, public=slice(380, 1797))
    _, notes = projected(tmp_path, settings, file)
    assert notes[1].startswith("20 records of the study are among those public ones, value for value.")


def test_what_is_learned_depends_on_no_record_of_the_study(tmp_path, digits):
    for folder, own in (("a", slice(0, 400)), ("b", slice(400, 800))):
        (tmp_path / folder).mkdir()
        learned(tmp_path / folder, digits, own=own)
    first, second = (read_tensors(tmp_path / folder / "features.safetensors")[0] for folder in "ab")
    for name, tensor in first.items():
        np.testing.assert_array_equal(tensor, second[name])


def test_public_records_of_another_shape_are_refused_before_anything_is_trained(tmp_path, digits, monkeypatch):
    monkeypatch.setattr(learn_features, "train", None)
    wide = np.repeat(digits[0], 2, axis=3), digits[1]
    np.savez(tmp_path / "wide.npz", x=wide[0], y=wide[1])
    with pytest.raises(
        UserError, match=r"datasets\.mine\.projection\.learned_on: .* differ in shape, 1 × 8 × 8 and 1 × 8 × 16"
    ):
        learned(tmp_path, digits, source={"source": "npz", "path": str(tmp_path / "wide.npz")})


@pytest.mark.parametrize(
    ("architecture", "layers", "last"),
    [
        ({"name": "cnn", "channels": [4, 8], "dense": 16}, "convolutions", "MaxPool2d"),
        ({"name": "mlp", "hidden": [8, 4]}, "hidden", "ReLU"),
        (
            {"name": "convnet", "channels": [4], "kernels": [3], "strides": [1], "paddings": [1], "pools": [2]},
            "hidden",
            "Flatten",
        ),
    ],
)
def test_the_layers_that_are_kept_end_before_the_prediction(architecture, layers, last):
    network = build(input_shape=SHAPE, n_classes=10, **architecture)
    assert type(network[kept_layers(network, SHAPE, layers) - 1]).__name__ in (last, "ReLU")


@pytest.mark.parametrize(
    ("architecture", "layers"),
    [("softmax_regression", "hidden"), ("softmax_regression", "convolutions"), ("mlp", "convolutions")],
)
def test_a_network_without_such_layers_keeps_none(architecture, layers):
    assert kept_layers(build(architecture, SHAPE, 10), SHAPE, layers) == 0


def test_learned_features_may_be_negative_for_a_private_scaling():
    """Sums of signed means have twice the length that nonnegative ones have, see `projection.channel_moments`."""
    assert ProjectionSettings(learned_on={}).signed
