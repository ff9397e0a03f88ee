import math

import pytest
import torch
from scipy.stats import ks_2samp
from torch import nn

from dp_leakage.models.architectures import build
from dp_leakage.models.layers import (
    AvgPool2d,
    Conv2d,
    Dropout,
    Embedding,
    Flatten,
    GlobalAvgPool2d,
    GroupNorm,
    LayerNorm,
    Linear,
    MaxPool2d,
    ReLU,
    Residual,
    Sigmoid,
    SiLU,
    Tanh,
    TemperedSigmoid,
    WeightStandardizedConv2d,
    forward,
    initial_parameters,
    output_shape,
    parameter_shapes,
    pull_back,
)
from dp_leakage.models.layers import module as module_of

IMAGE, VECTOR = (3, 8, 10), (7,)
LAYERS = {
    "linear": (Linear(7, 5), VECTOR),
    "convolution": (Conv2d(3, 4, 3), IMAGE),
    "padded convolution": (Conv2d(3, 4, 5, padding=2), IMAGE),
    "strided convolution": (Conv2d(3, 4, 3, stride=2, padding=1), IMAGE),
    "relu": (ReLU(), VECTOR),
    "tanh": (Tanh(), VECTOR),
    "sigmoid": (Sigmoid(), VECTOR),
    "silu": (SiLU(), VECTOR),
    "max pooling by 2": (MaxPool2d(2), IMAGE),
    "max pooling by 3": (MaxPool2d(3), IMAGE),
    "max pooling of odd sides": (MaxPool2d(2), (3, 7, 5)),
    "max pooling that overlaps": (MaxPool2d(3, 2, 1), IMAGE),
    "max pooling by 2 that overlaps": (MaxPool2d(2, 1), IMAGE),
    "average pooling": (AvgPool2d(2), IMAGE),
    "average pooling that overlaps": (AvgPool2d(3, 2, 1), IMAGE),
    "global average pooling": (GlobalAvgPool2d(), IMAGE),
    "tempered sigmoid": (TemperedSigmoid(1.58, 3.0, 0.71), VECTOR),
    "standardized convolution": (WeightStandardizedConv2d(3, 4, 3, stride=2, padding=1), IMAGE),
    "pointwise convolution with stride": (Conv2d(3, 4, 1, stride=2), IMAGE),
    "group normalization": (GroupNorm(3, 6), (6, 4, 5)),
    "layer normalization": (LayerNorm(7), VECTOR),
    "residual block": (Residual((Conv2d(3, 3, 3, padding=1), GroupNorm(3, 3), ReLU())), IMAGE),
    "residual block with a shortcut": (
        Residual((ReLU(), Conv2d(3, 5, 3, stride=2, padding=1), Dropout(0.5)), (Conv2d(3, 5, 1, stride=2),)),
        IMAGE,
    ),
    "flatten": (Flatten(), IMAGE),
    "dropout at evaluation": (Dropout(0.5), VECTOR),
}


def generator(seed=0):
    return torch.Generator().manual_seed(seed)


def random_parameters(layers, models, dtype=torch.float64):
    starts = [initial_parameters(layers, generator(k)) for k in range(models)]
    # Moved, so that normalizations, which begin with ones and zeros, are tried at other values too.
    return {
        name: torch.stack(
            [
                start[name] + 0.1 * torch.randn(start[name].shape, generator=generator(k))
                for k, start in enumerate(starts)
            ]
        ).to(dtype)
        for name in starts[0]
    }


@pytest.mark.parametrize("name", LAYERS)
def test_a_layer_computes_what_its_torch_module_computes_for_every_model(name):
    layer, shape = LAYERS[name]
    models, batch = 3, 4
    parameters = random_parameters((layer,), models)
    x = torch.randn(models, batch, *shape, dtype=torch.float64, generator=generator())
    # Ties, as in images with blank borders: the gradient must go where PyTorch sends it.
    x[:, 0] = x[:, 0].round()
    output, (kept,) = forward((layer,), parameters, x.clone())
    delta = torch.randn(output.shape, dtype=torch.float64, generator=generator(1))
    back = pull_back((layer,), parameters, [kept], delta.clone())
    for k in range(models):
        module = layer.module().double().eval()
        module.load_state_dict({key.partition(".")[2]: value[k] for key, value in parameters.items()})
        inputs = x[k].clone().requires_grad_()
        expected = module(inputs)
        expected.backward(delta[k])
        torch.testing.assert_close(output[k], expected.detach(), rtol=1e-12, atol=1e-12)
        torch.testing.assert_close(back[k], inputs.grad, rtol=1e-12, atol=1e-12)
    assert output.shape[2:] == output_shape((layer,), shape)


def test_float32_layers_that_go_to_another_library_agree_with_float64():
    layers = (Linear(300, 200),)
    parameters = random_parameters(layers, 2, torch.float32)
    x = torch.randn(2, 50, 300, generator=generator())
    output, _ = forward(layers, parameters, x)
    exact, _ = forward(layers, {name: value.double() for name, value in parameters.items()}, x.double())
    torch.testing.assert_close(output.double(), exact, rtol=1e-5, atol=1e-5)


def test_dropout_scales_what_it_keeps_and_draws_from_each_models_own_stream():
    layers = (Dropout(0.25),)
    x = torch.ones(2, 50, 200)
    dropped, _ = forward(layers, {}, x, [generator(1), generator(2)])
    alone, _ = forward(layers, {}, x[1:], [generator(2)])
    assert torch.equal(dropped[1:], alone)
    assert dropped.unique().tolist() == pytest.approx([0.0, 1 / 0.75])
    # 20,000 coins with P = 0.25: six standard deviations are 0.018 (false alarm 2e-9).
    assert (dropped == 0).double().mean() == pytest.approx(0.25, abs=0.018)


@pytest.mark.parametrize(
    ("name", "shape"),
    [
        ("softmax_regression", (20,)),
        ("softmax_regression", (1, 4, 4)),
        ("mlp", (20,)),
        ("lenet", (1, 28, 28)),
        ("lenet", (3, 32, 32)),
        ("cnn", (3, 32, 32)),
        ("cnn_small", (1, 28, 28)),
        ("cnn_strided", (1, 28, 28)),
        ("cnn_strided", (3, 13, 15)),
        ("convnet", (3, 12, 16)),
        ("resnet", (3, 32, 32)),
        ("wide_resnet", (3, 16, 16)),
    ],
)
def test_parameters_are_named_and_shaped_as_those_of_the_exported_module(name, shape):
    layers = build(name, shape, 10)
    module = module_of(layers)
    assert parameter_shapes(layers) == {key: tuple(value.shape) for key, value in module.state_dict().items()}
    assert module(torch.zeros(2, *shape)).shape == (2, 10)
    assert output_shape(layers, shape) == (10,)


def test_the_glorot_start_is_that_of_torchs_initializer():
    layers = (Linear(100, 400), ReLU(), Conv2d(4, 8, 5))
    start = initial_parameters(layers, generator(), "glorot")
    assert not start["0.bias"].any()
    assert not start["2.bias"].any()
    for name in ("0.weight", "2.weight"):
        wanted = nn.init.xavier_uniform_(torch.empty(start[name].shape), generator=generator(1))
        # Two samples of one distribution: the KS statistic stays below 1.95·√(2/n) but for one time in a thousand.
        found = ks_2samp(start[name].flatten(), wanted.flatten()).statistic
        assert found < 1.95 * math.sqrt(2 / wanted.numel())


def test_the_start_is_uniform_within_one_over_the_root_of_the_fan_in():
    start = initial_parameters((Linear(100, 400), ReLU(), Conv2d(4, 8, 5)), generator())
    for name, bound in {"0.weight": 0.1, "0.bias": 0.1, "2.weight": 0.1, "2.bias": 0.1}.items():
        values = start[name].double()
        assert values.abs().max() <= bound
        # Variance bound²/3 of n uniforms: relative deviation √(0.8/n) (false alarm 2e-9 at six of them).
        assert values.square().mean() == pytest.approx(bound**2 / 3, rel=6 * math.sqrt(0.8 / values.numel()))


def test_categories_become_vectors_and_other_columns_stay():
    layer = Embedding((3, 2), 4)
    parameters = random_parameters((layer,), 2)
    x = torch.tensor([[[2.0, 1.0, 0.5, -3.0], [9.0, -1.0, 0.0, 1.0]]], dtype=torch.float64)
    output, _ = forward((layer,), parameters, x)
    weight = parameters["0.weight"]
    for k in range(2):
        torch.testing.assert_close(output[k, 0], torch.cat([weight[k, 2], weight[k, 3 + 1], x[0, 0, 2:]]))
        # Numbers of no category are taken for the nearest.
        torch.testing.assert_close(output[k, 1], torch.cat([weight[k, 2], weight[k, 3], x[0, 1, 2:]]))
        module = layer.module().double()
        module.load_state_dict({"weight": weight[k]})
        torch.testing.assert_close(module(x[0]).detach(), output[k])
    assert output.shape[2:] == output_shape((layer,), (4,))


def test_standardized_kernels_have_mean_zero_and_length_one():
    from dp_leakage.models.layers.weight_standardized_conv2d import standardized

    kernels, _ = standardized(torch.randn(2, 5, 3, 3, 3, dtype=torch.float64, generator=generator()))
    assert kernels.mean((2, 3, 4)).abs().max() < 1e-15
    torch.testing.assert_close(
        kernels.square().sum((2, 3, 4)), torch.ones(2, 5, dtype=torch.float64), rtol=1e-4, atol=0
    )


def test_a_tempered_sigmoids_defaults_are_tanh():
    x = torch.randn(1, 3, 7, dtype=torch.float64, generator=generator())
    torch.testing.assert_close(forward((TemperedSigmoid(),), {}, x)[0], x.tanh())
