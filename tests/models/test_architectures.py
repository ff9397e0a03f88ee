from math import prod

import pytest

from dp_leakage.common.errors import UserError
from dp_leakage.models.architectures import ARCHITECTURES, build
from dp_leakage.models.layers import (
    Conv2d,
    Dropout,
    Linear,
    Residual,
    Sigmoid,
    TemperedSigmoid,
    WeightStandardizedConv2d,
    parameter_shapes,
)


def test_the_papers_networks_have_their_layers():
    assert [layer for layer in build("mlp", (50,), 100) if isinstance(layer, Linear)] == [
        Linear(50, 256),
        Linear(256, 256),
        Linear(256, 100),
    ]
    lenet = build("lenet", (1, 28, 28), 10)
    assert [layer for layer in lenet if isinstance(layer, Conv2d)] == [
        Conv2d(1, 6, 5, padding=2),
        Conv2d(6, 16, 5),
    ]
    assert [layer for layer in lenet if isinstance(layer, Linear)] == [
        Linear(400, 120),
        Linear(120, 84),
        Linear(84, 10),
    ]
    assert sum(isinstance(layer, Conv2d) for layer in build("cnn", (3, 32, 32), 10)) == 3
    assert sum(isinstance(layer, Conv2d | Linear) for layer in build("cnn_small", (1, 28, 28), 10)) == 4
    strided = build("cnn_strided", (1, 28, 28), 10)
    assert [layer for layer in strided if isinstance(layer, Conv2d)] == [Conv2d(1, 16, 8, 2, 3), Conv2d(16, 32, 4, 2)]
    assert [layer for layer in strided if isinstance(layer, Linear)] == [Linear(32 * 6 * 6, 32), Linear(32, 10)]


def test_a_convnet_can_be_the_networks_of_tramer_and_boneh():
    images = {"kernels": [8, 4], "strides": [2, 2], "paddings": [2, 0], "pools": [1, 1], "dense": [32]}
    tanh = build("convnet", (1, 28, 28), 10, channels=[16, 32], activation="tanh", **images)
    assert sum(prod(shape) for shape in parameter_shapes(tanh).values()) == 26_010  # their table 7
    assert [layer for layer in tanh if isinstance(layer, Linear)] == [Linear(512, 32), Linear(32, 10)]
    features = {"kernels": [3, 3], "strides": [2, 1], "pools": [0, 0], "dense": [32]}
    scattered = build("convnet", (81, 7, 7), 10, channels=[16, 32], activation="tanh", **features)
    assert Linear(32 * 4 * 4, 32) in scattered
    assert Linear(64 * 4 * 4, 10) in build("convnet", (243, 8, 8), 10, channels=[64, 64], pools=[2, 0])


def test_settings_reach_the_layers():
    layers = build("mlp", (8,), 3, hidden=[5], activation="sigmoid", dropout=0.2)
    assert layers == (Linear(8, 5), Sigmoid(), Dropout(0.2), Linear(5, 3))


def test_residual_networks_have_their_published_sizes():
    small = build("resnet", (3, 32, 32), 10)
    assert [layer.outputs for layer in all_of(small) if isinstance(layer, Conv2d) and layer.kernel == 3] == [
        *[16] * 3,
        *[32] * 2,
        *[64] * 2,
    ]
    # WRN-16-4 of Zagoruyko & Komodakis has 2.75 million weights; ours has biases and affine norms besides.
    wide = build("wide_resnet", (3, 32, 32), 10)
    weights = sum(prod(shape) for shape in parameter_shapes(wide).values() if len(shape) > 1)
    assert weights == pytest.approx(2.75e6, rel=0.01)
    convolutions = [layer for layer in all_of(wide) if isinstance(layer, Conv2d)]
    assert len([layer for layer in convolutions if layer.kernel == 3]) == 16 - 3
    assert all(isinstance(layer, WeightStandardizedConv2d) for layer in convolutions)


def test_an_activation_may_be_a_tempered_sigmoid_of_ones_own():
    own = {"scale": 1.58, "temperature": 3.0, "offset": 0.71}
    layers = build("mlp", (8,), 3, hidden=[5], activation=own)
    assert layers == (Linear(8, 5), TemperedSigmoid(1.58, 3.0, 0.71), Linear(5, 3))


def all_of(layers):
    """The layers, and those that residual blocks hold."""
    for layer in layers:
        yield layer
        if isinstance(layer, Residual):
            yield from all_of((*layer.body, *layer.shortcut))


@pytest.mark.parametrize("name", ARCHITECTURES)
def test_without_dropout_no_dropout_layer_remains(name):
    shape = (1, 28, 28)
    assert not any(isinstance(layer, Dropout) for layer in all_of(build(name, shape, 10)))
    assert any(isinstance(layer, Dropout) for layer in all_of(build(name, shape, 10, dropout=0.2)))


@pytest.mark.parametrize(
    ("arguments", "settings", "message"),
    [
        (("mpl", (8,), 3), {}, "did you mean 'mlp'"),
        (("mlp", (8,), 3), {"hiden": [4]}, "did you mean 'hidden'"),
        (("mlp", (8,), 3), {"activation": "rleu"}, "did you mean 'relu'"),
        (("mlp", (8,), 3), {"dropout": 1.0}, r"\[0, 1\)"),
        (("lenet", (50,), 3), {}, "needs images"),
        (("cnn", (1, 4, 4), 3), {}, "too small"),
        (("cnn_strided", (1, 8, 8), 3), {}, "at least 12×12"),
        (("convnet", (1, 8, 8), 3), {"kernels": [3]}, "1 kernels for 2 convolutions"),
        (("convnet", (1, 2, 2), 3), {}, "too small"),
        (("convnet", (9,), 3), {}, "needs images"),
        (("convnet", (1, 8, 8), 3), {"paddings": [-1, 0]}, "paddings"),
        (("resnet", (50,), 3), {}, "at least 8×8"),
        (("resnet", (3, 8, 8), 3), {"groups": 5}, "16 channels do not fall into 5 groups"),
        (("wide_resnet", (3, 8, 8), 3), {"depth": 17}, "6n \\+ 4"),
        (("mlp", (2,), 3), {"levels": [2, 2, 2]}, "3 levels for 2 columns"),
        (
            ("mlp", (8,), 3),
            {"activation": {"heat": 2}},
            "unknown key 'activation.heat'; valid: offset, scale, temperature",
        ),
    ],
)
def test_what_cannot_be_built_is_refused_in_a_sentence(arguments, settings, message):
    with pytest.raises(UserError, match=message):
        build(*arguments, **settings)
