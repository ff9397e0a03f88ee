"""A convolution's per-example gradients where none is formed, against `torch.autograd` on single examples."""

import pytest
import torch
import torch.nn.functional as F
from hypothesis import given
from hypothesis import strategies as st

from dp_leakage.models.layers import conv_gradients
from dp_leakage.models.layers.conv2d import Conv2d, convolve, convolve_back
from dp_leakage.models.layers.conv_gradients import LazyConvGradients, convolution_gradients
from dp_leakage.models.norms import LEAST_NORM, ROUNDING, lost

NAMES = ("weight", "bias")
SIDE = 5


@st.composite
def convolutions(draw):
    kernel = draw(st.integers(1, 4))
    channels, stride, padding = st.integers(1, 4), st.integers(1, 3), st.integers(0, 2)
    return Conv2d(draw(channels), draw(channels), kernel, draw(stride), draw(padding))


def some(layer, models=1, examples=3, dtype=torch.float64, seed=0):
    """Inputs and output gradients of a layer."""
    generator = torch.Generator().manual_seed(seed)
    shapes = (layer.inputs, SIDE, SIDE), layer.output_shape((layer.inputs, SIDE, SIDE))
    return [torch.randn(models, examples, *shape, generator=generator, dtype=dtype) for shape in shapes]


def of_one(layer, x, delta):
    """The gradients of weight and bias of one example, as one vector."""
    weight = x.new_zeros(layer.outputs, layer.inputs, layer.kernel, layer.kernel, requires_grad=True)
    bias = x.new_zeros(layer.outputs, requires_grad=True)
    output = F.conv2d(x[None], weight, bias, layer.stride, layer.padding)
    return torch.cat([part.flatten() for part in torch.autograd.grad(output, [weight, bias], delta[None])])


def of_each(layer, x, delta):
    """(K, B, P)."""
    pairs = zip(x.flatten(0, 1), delta.flatten(0, 1), strict=True)
    return torch.stack([of_one(layer, *pair) for pair in pairs]).unflatten(0, x.shape[:2])


@given(convolutions(), st.integers(1, 2))
def test_sums_and_lengths_without_formed_gradients_are_those_of_each_example(layer, models):
    x, delta = some(layer, models)
    expected = of_each(layer, x, delta)
    lazy = LazyConvGradients(layer, NAMES, x, delta)
    scales = torch.rand(models, 3, dtype=torch.float64)
    total = {"weight": torch.ones(models, *layer.parameter_shapes()["weight"]).double()}
    total["bias"] = torch.ones(models, layer.outputs).double()
    lazy.add_weighted_sum(scales, total)
    assert "formed" not in vars(lazy)
    found = torch.cat([total[name].flatten(1) for name in NAMES], 1)
    torch.testing.assert_close(found, 1 + torch.einsum("kb,kbp->kp", scales, expected))
    lengths = conv_gradients.lengths(layer, x.flatten(0, 1), delta.flatten(0, 1))
    torch.testing.assert_close(lengths[:, 0], expected.flatten(0, 1).norm(dim=1))
    assert (lengths[:, 0] <= lengths[:, 1] * (1 + 1e-12)).all()


LARGE = Conv2d(64, 64, 3, padding=1)  # for pictures of 5×5, its lengths come from inner products


@pytest.mark.parametrize("chunk", [1, conv_gradients.CACHE_BYTES])
def test_a_layer_of_large_kernels_on_small_pictures_forms_no_gradient_for_its_lengths(chunk, monkeypatch):
    monkeypatch.setattr(conv_gradients, "CACHE_BYTES", chunk)
    x, delta = some(LARGE, models=2, dtype=torch.float32)
    lazy = LazyConvGradients(LARGE, NAMES, x, delta)
    norms = lazy.norms()
    assert "formed" not in vars(lazy)
    exact = of_each(LARGE, x.double(), delta.double()).norm(dim=2)
    assert norms.dtype == torch.float32
    terms = conv_gradients.lengths(LARGE, x.flatten(0, 1), delta.flatten(0, 1))[:, 1].view(2, 3)
    above = norms.double() - exact - lost(25, terms, torch.float32)
    assert (above.abs() <= torch.finfo(torch.float32).eps * exact).all()


@pytest.mark.parametrize("spread", [1e-2, 1e-4, 1e-6, 0.0])
def test_a_length_whose_terms_cancel_is_never_too_small(spread):
    """Nearly equal patches times output gradients that sum to nearly zero: gradients down to 10⁻⁸ of their terms."""
    layer = Conv2d(32, 32, 3)
    _, delta = some(layer, examples=200, seed=1)
    delta = delta - delta.mean((3, 4), keepdim=True) * (1 - spread)
    x = 1 + spread * some(layer, examples=200, seed=2)[0]
    x, delta = x.float(), delta.float()
    lazy = LazyConvGradients(layer, NAMES, x, delta)
    norms = lazy.bounded.norms.double()
    exact = of_each(layer, x.double(), delta.double()).norm(dim=2)
    for example in range(200):  # what enters the sum, rounded as it is
        total = {"weight": torch.zeros(1, *layer.parameter_shapes()["weight"]), "bias": torch.zeros(1, layer.outputs)}
        lazy.add_weighted_sum((torch.arange(200) == example)[None].float(), total)
        length = torch.cat([value.flatten() for value in total.values()]).double().norm()
        assert length <= (1 + ROUNDING * torch.finfo(torch.float32).eps) * norms[0, example]
    terms = (delta.double().flatten(3).norm(dim=2) * x.double().pow(2).sum((2, 3, 4)).sqrt()[..., None]).sum(2)
    assert (norms <= exact + 2e-6 * terms + LEAST_NORM).all()


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize(
    ("layer", "sides"),
    [
        (Conv2d(1, 3, 3, 1), (21, 7)),
        (Conv2d(7, 5, 5, 2, 2), (26, 10)),
        (Conv2d(7, 8, 5, 3), (15, 24)),
        (Conv2d(1, 4, 3, 3, 1), (21, 21)),
        (Conv2d(4, 1, 8, 1, 4), (16, 27)),
        (Conv2d(16, 1, 3, 2), (27, 24)),
        (Conv2d(7, 32, 5, 3, 2), (10, 9)),
        (Conv2d(32, 5, 8), (16, 10)),
        (Conv2d(3, 3, 8, 1, 4), (28, 20)),
        (Conv2d(2, 5, 3, 3), (21, 15)),
        (Conv2d(1, 1, 1), (5, 5)),
    ],
)
@pytest.mark.parametrize("models", [1, 3])
def test_an_example_rounds_alike_wherever_it_lies_in_a_pass(layer, sides, dtype, models):
    """Else a record that leaves shifts the others, and changes their gradients where terms cancel."""
    count, generator = 48, torch.Generator().manual_seed(1)
    shape = (layer.inputs, *sides)
    x = torch.randn(models, count, *shape, generator=generator, dtype=dtype)
    delta = torch.randn(models, count, *layer.output_shape(shape), generator=generator, dtype=dtype)
    weight, bias = (
        torch.randn(models, *own, generator=generator, dtype=dtype) for own in layer.parameter_shapes().values()
    )

    def passed(rows):
        formed = convolution_gradients(layer, NAMES, x[:, rows], delta[:, rows])
        outputs = convolve(layer, weight, bias, x[:, rows])
        return outputs, convolve_back(layer, weight, x[:, rows], delta[:, rows]), formed.rows()

    everything = passed(slice(None))
    for rows in (slice(1, 17), slice(3, 35), slice(0, 16)):
        for whole, part in zip(everything, passed(rows), strict=True):
            assert torch.equal(whole[:, rows], part)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize(
    ("layer", "sides"), [(Conv2d(64, 64, 5, padding=2), (9, 5)), (Conv2d(16, 32, 3, padding=1), (3, 3))]
)
def test_a_length_without_formed_gradients_rounds_alike_wherever_the_example_lies(layer, sides, dtype):
    """Else it may decide by the company whether a gradient is formed."""
    generator, shape = torch.Generator().manual_seed(0), (layer.inputs, *sides)
    for _ in range(5):
        x = torch.randn(48, *shape, generator=generator, dtype=dtype)
        delta = torch.randn(48, *layer.output_shape(shape), generator=generator, dtype=dtype)
        everything = conv_gradients.lengths(layer, x, delta)
        for rows in (slice(1, 17), slice(3, 35), slice(0, 16)):
            assert torch.equal(everything[rows], conv_gradients.lengths(layer, x[rows], delta[rows]))


@pytest.mark.parametrize("stride", [1, 2, 3])
@pytest.mark.parametrize("sides", [(5, 5), (7, 11), (16, 16)])
def test_a_filled_up_output_is_that_of_the_record_alone(stride, sides):
    layer, generator = Conv2d(2, 3, 3, stride, 1), torch.Generator().manual_seed(2)
    x = torch.randn(2, 4, 2, *sides, generator=generator, dtype=torch.float64)
    weight, bias = (
        torch.randn(2, *own, generator=generator, dtype=torch.float64) for own in layer.parameter_shapes().values()
    )
    expected = torch.stack([F.conv2d(x[k], weight[k], bias[k], stride, 1) for k in range(2)])
    torch.testing.assert_close(convolve(layer, weight, bias, x), expected)


def test_masked_examples_leave_nothing_behind_whatever_they_held():
    x, delta = some(LARGE)
    x[0, 1, 0, 0, 0], delta[0, 2, 0, 0, 0] = torch.inf, torch.nan
    lazy = LazyConvGradients(LARGE, NAMES, x, delta)
    assert lazy.norms().isfinite().tolist() == [[True, False, False]]
    kept = lazy.where(torch.tensor([[True, False, False]]))
    expected = of_one(LARGE, x[0, 0], delta[0, 0])
    for forms in (False, True):
        total = {"weight": torch.zeros(1, 64, 64, 3, 3).double(), "bias": torch.zeros(1, 64).double()}
        (kept.formed if forms else kept).add_weighted_sum(torch.ones(1, 3).double(), total)
        torch.testing.assert_close(torch.cat([total[name].flatten() for name in NAMES]), expected)
