"""No unit moves a sum by more than C where rounding is made to add up: crafted models, records and batches."""

from itertools import product
from math import log, sqrt

import pytest
import torch
from torch.nn.functional import pad

from dp_leakage.models.architectures import ARCHITECTURES, build
from dp_leakage.models.layers import Conv2d, Flatten, Linear, initial_parameters
from dp_leakage.models.layers.conv_gradients import LazyConvGradients, convolution_gradients
from dp_leakage.models.layers.embedding import EmbeddingGradients
from dp_leakage.models.layers.formed_gradients import FormedGradients
from dp_leakage.models.layers.linear import LinearGradients
from dp_leakage.models.layers.scale_gradients import ScaleGradients
from dp_leakage.models.products import CHAIN
from dp_leakage.privacy.clipping import allowance, bound_scales
from dp_leakage.privacy.mechanism import Mechanism
from dp_leakage.training.backward import BackwardPass, backpropagate
from dp_leakage.training.gradients import fill_gradient, lay_out
from dp_leakage.training.settings import TrainingSettings
from dp_leakage.training.trainer import start

C, CLASSES = 0.5, 2
SMALLER = {"wide_resnet": {"depth": 10, "width": 1}, "resnet": {"channels": [8, 8], "groups": 4}}


def moved(layers, parameters, x, y, units, mechanism, groups=None):
    """How far a whole step's bounded sum moves without the first of the ``units`` (rows), in units of C."""
    how = TrainingSettings("sgd", 0.1, epochs=1, batch_size=len(units))
    sums = []
    with torch.inference_mode():
        training = start(layers, x, y, torch.arange(len(x))[None], [3], how, mechanism, groups, initial=parameters)
        for rest in (units, units[1:]):
            records = torch.cat(rest) if rest else torch.arange(0)
            fill_gradient(training.program, [[records] if mechanism.unit == "example" else rest])
            sums.append(training.program.gradient[0].double() * training.program.divisor)
    return float((sums[0] - sums[1]).norm()) / mechanism.clip_norm


def losing(count, dtype, share):
    """(count,) terms of a sum of nearly zero that a product in order makes large: each rounds to a whole step.

    The first is 1 and the last takes back what all are together. Each of the others is a little more than half of the
    first one's last digit.
    """
    terms = torch.full((count,), share * torch.finfo(dtype).eps, dtype=torch.float64)
    terms[0], terms[-1] = 1.0, -1.0 - (count - 2) * share * torch.finfo(dtype).eps
    return terms.to(dtype)


@pytest.mark.parametrize("bound", ["clip", "normalize"])
@pytest.mark.parametrize(
    ("channels", "side", "kernel", "dtype"),
    [
        (64, 6, 3, torch.float32),
        (128, 8, 3, torch.float32),
        (128, 9, 3, torch.float64),
        (256, 12, 3, torch.float32),
        (128, 12, 5, torch.float32),
    ],
)
def test_a_convolution_whose_positions_cancel_stays_within_the_bound(channels, side, kernel, dtype, bound):
    """The inputs of the large convolution are 1, and its output gradients what the last layer's weights say.

    They are 0 at positions whose patches reach over the border.
    """
    border = kernel // 2
    inner = side - 2 * border
    layers = (
        Conv2d(1, channels, 1),
        Conv2d(channels, channels, kernel, padding=border),
        Flatten(),
        Linear(channels * side**2, CLASSES),
    )
    initial = initial_parameters(layers, torch.Generator().manual_seed(1))
    parameters = {name: 0 * own.to(dtype) for name, own in initial.items()}
    parameters["0.bias"] += 1
    mechanism = Mechanism("poisson", bound=bound, clip_norm=C, noise_multiplier=0.0)
    for share, reverse, others in product((0.51, 0.6, 0.75), (False, True), (0, 3)):
        terms = losing(inner**2, dtype, share)
        terms = pad((terms.flip(0) if reverse else terms).view(inner, inner), [border] * 4)
        parameters["3.weight"][1] = 2.0**30 * terms.flatten().repeat(channels)
        x, y = torch.zeros(others + 1, 1, side, side, dtype=dtype), torch.arange(others + 1) % CLASSES
        units = list(torch.arange(len(x))[:, None])
        assert moved(layers, parameters, x, y, units, mechanism) <= 1, (share, reverse, others)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("bound", ["clip", "normalize"])
@pytest.mark.parametrize("size", [4, 16, 64, 80])
def test_a_person_whose_records_cancel_stays_within_the_bound(size, bound, dtype):
    """Each record's weight gradient is ±½ of the record, by its class."""
    persons, width = 3, 40
    layers = (Linear(width, CLASSES),)
    initial = initial_parameters(layers, torch.Generator().manual_seed(1))
    parameters = {name: 0 * own.to(dtype) for name, own in initial.items()}
    groups = torch.arange(persons).repeat_interleave(size)
    mechanism = Mechanism("poisson", "person", bound, C, noise_multiplier=0.0)
    for share in (0.51, 0.6, 0.75):
        terms = losing(size, dtype, share).repeat(persons)
        x, y = 2.0**30 * terms.abs()[:, None].repeat(1, width), (terms < 0).long()
        units = list(torch.arange(len(x)).view(persons, size))
        assert moved(layers, parameters, x, y, units, mechanism, groups) <= 1, share


@pytest.mark.parametrize("clip_norm", [1e-2, 1e-4])
@pytest.mark.parametrize("size", [1e18, 1e25, 1e35, 1e37, 3e38])
@pytest.mark.parametrize("unit", ["example", "person"])
def test_a_record_so_large_that_its_factors_have_few_digits_stays_within_the_bound(unit, size, clip_norm):
    """A convolution's lengths, and a person's, are float64, so they are finite where a float32 square overflows."""
    records = 2 if unit == "person" else 1
    layers = (Linear(8, CLASSES),) if unit == "person" else (Conv2d(64, 64, 3), Flatten(), Linear(256, CLASSES))
    initial = initial_parameters(layers, torch.Generator().manual_seed(1))
    parameters = {name: 0 * own for name, own in initial.items()}
    if unit == "example":
        parameters["2.weight"][1] = 1e-30
    mechanism = Mechanism("poisson", unit, clip_norm=clip_norm, noise_multiplier=0.0)
    for count, share in product((2, 100), (1.0, 0.77, 0.6, 0.48, 0.3)):
        x = torch.zeros(count * records, *((8,) if unit == "person" else (64, 4, 4)))
        x[:records] = size * share
        units = list(torch.arange(len(x)).view(count, records))
        groups = torch.arange(count).repeat_interleave(records)
        found = moved(layers, parameters, x, torch.zeros(len(x), dtype=torch.int64), units, mechanism, groups)
        assert found <= 1, (count, share)


@pytest.mark.parametrize("count", [1024, 2048])
def test_many_persons_of_many_records_that_are_made_to_round_on_two_grids_stay_within_the_bound(count):
    """Each is added by itself: half are C long, the others move a sum just below a power of two by rounding alone."""
    size, width, aligned = 65, 8, count // 2
    layers = (Linear(width, CLASSES),)
    initial = initial_parameters(layers, torch.Generator().manual_seed(1))
    parameters = {name: 0 * own for name, own in initial.items()}
    parameters["0.weight"][1, 0] = 1.0
    clip_norm = sqrt(2 * width) * (1 + allowance(count, torch.float32)) * (1 + 2.0**-20) / 4
    short = 1.04 * aligned * 2.0**-26  # the gradients of the others' output
    first = torch.where(torch.arange(count) < aligned, 0.0, log(short / (1 - short)))
    x = torch.ones(count * size, width)
    x[:, 0] = first.repeat_interleave(size)
    mechanism = Mechanism("poisson", "person", clip_norm=clip_norm, noise_multiplier=0.0)
    units, groups = list(torch.arange(len(x)).view(count, size)), torch.arange(count).repeat_interleave(size)
    assert moved(layers, parameters, x, torch.zeros(len(x), dtype=torch.int64), units, mechanism, groups) <= 1


@pytest.mark.parametrize("count", [8, 16, 17, 33, 64, 65, 100])
@pytest.mark.parametrize("unit", ["example", "person"])
def test_a_record_that_leaves_does_not_change_how_the_others_round(unit, count):
    """Scores of records with two equal halves are nothing but rounding, and the weights make them the larger."""
    width, generator = 25, torch.Generator().manual_seed(count)
    layers = (Linear(2 * width, CLASSES),)
    weights = 2.0**30 * torch.randn(width, generator=generator)
    parameters = {
        "0.weight": torch.stack([torch.zeros(2 * width), torch.cat([weights, -weights])]),
        "0.bias": torch.zeros(CLASSES),
    }
    records = 2 if unit == "person" else 1
    x = torch.rand(count * records, width, generator=generator).repeat(1, 2)
    mechanism = Mechanism("poisson", unit, clip_norm=C, noise_multiplier=0.0)
    units, groups = list(torch.arange(len(x)).view(count, records)), torch.arange(count).repeat_interleave(records)
    for first in (0, count // 2, count - 1):
        order = units[first:] + units[:first]
        found = moved(layers, parameters, x, torch.zeros(len(x), dtype=torch.int64), order, mechanism, groups)
        assert found <= 1, first


@pytest.mark.parametrize(
    ("dtype", "side"), [(torch.float32, 14), (torch.float32, 10), (torch.float64, 8), (torch.float64, 9)]
)
@pytest.mark.parametrize("outputs", [1, 2, 3, 5])
@pytest.mark.parametrize("stride", [1, 2])
def test_a_record_that_leaves_does_not_change_how_convolutions_round_the_others(dtype, side, outputs, stride):
    """As above: pictures have two equal halves, whose scores cancel but for rounding."""
    if side % stride:
        pytest.skip("the halves would not be alike")
    count, generator = 18, torch.Generator().manual_seed(1)
    layer = Conv2d(1, outputs, 3, stride)
    _, high, wide = layer.output_shape((1, side, 2 * side))
    layers = (layer, Flatten(), Linear(outputs * high * wide, CLASSES))
    apart = side // stride
    alike = wide - apart
    halves = torch.zeros(outputs, high, wide, dtype=dtype)
    halves[..., :alike] = 8 / torch.finfo(dtype).eps * torch.randn(outputs, high, alike, generator=generator)
    halves[..., apart:] -= halves[..., :alike]
    parameters = {
        "0.weight": torch.randn(outputs, 1, 3, 3, generator=generator, dtype=dtype),
        "0.bias": torch.zeros(outputs, dtype=dtype),
        "2.weight": torch.stack([torch.zeros(halves.numel(), dtype=dtype), halves.flatten()]),
        "2.bias": torch.zeros(CLASSES, dtype=dtype),
    }
    x = torch.rand(count, 1, side, side, generator=generator, dtype=dtype).repeat(1, 1, 1, 2)
    mechanism = Mechanism("poisson", clip_norm=C, noise_multiplier=0.0)
    units = list(torch.arange(count)[:, None])
    for first in (0, count // 2):
        order = units[first:] + units[:first]
        assert moved(layers, parameters, x, torch.zeros(count, dtype=torch.int64), order, mechanism) <= 1, first


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("name", ARCHITECTURES)
def test_a_records_gradient_is_the_same_bits_in_any_batch(name, dtype):
    shape = (3, 16, 16) if name in SMALLER else (1, 28, 28)
    layers, generator = build(name, shape, 5, **SMALLER.get(name, {})), torch.Generator().manual_seed(1)
    x, y = torch.rand(50, *shape, generator=generator).to(dtype), torch.arange(50) % 5
    how = TrainingSettings("sgd", 0.1, epochs=1, batch_size=20)
    mechanism = Mechanism("poisson", clip_norm=C, noise_multiplier=1.0)

    def gradients(rows):
        """Of each record of a batch, as a step computes them, for each layer."""
        (examples,) = lay_out(training.program, [[rows]])
        parameters = training.program.model_batches[0].parameters
        found = [
            [own.rows()[0] for own in backpropagate(layers, parameters, x[part.rows], y[part.rows]).parts]
            for part in examples.parts(training.program.width)
        ]
        return [torch.cat(own)[: len(rows)] for own in zip(*found, strict=True)]

    with torch.inference_mode():
        training = start(layers, x, y, torch.arange(50)[None], [3], how, mechanism)
        before = gradients(torch.arange(33))
        for other in (torch.arange(1, 33), torch.arange(8), torch.tensor([3]), torch.arange(50).flip(0)):
            known = [(place, int(row)) for place, row in enumerate(other) if row < 33]
            places, rows = (torch.tensor(own) for own in zip(*known, strict=True))
            for was, now in zip(before, gradients(other), strict=True):
                assert torch.equal(was[rows], now[places]), len(other)


POSITIONS, WIDTH = 16, 32


def parts_of(kind, sizes):
    """Gradients of one layer for examples whose output gradients are constant and of these sizes, float32 (B,)."""
    count = len(sizes)
    if kind == "linear":
        delta = sizes[None, :, None].repeat(1, 1, WIDTH)
        return LinearGradients(("weight", "bias"), torch.ones(1, count, WIDTH), delta)
    if kind == "embedding":
        places = torch.zeros(1, count, 1, dtype=torch.int64)
        return EmbeddingGradients(("weight",), places, sizes[None, :, None, None].repeat(1, 1, 1, WIDTH), 3)
    if kind == "scale":
        return ScaleGradients(("weight", "bias"), sizes[None, :, None, None].repeat(1, 1, WIDTH, 2))
    if kind == "formed":
        return FormedGradients(("weight",), (sizes[None, :, None].repeat(1, 1, WIDTH),))
    layer = Conv2d(64, 64, 3)
    x, delta = torch.ones(1, count, 64, 6, 6), sizes[None, :, None, None, None].repeat(1, 1, 64, 4, 4)
    found = convolution_gradients if kind == "conv_formed" else LazyConvGradients
    return found(layer, ("weight", "bias"), x, delta)


SHAPES = {
    "linear": {"weight": (WIDTH, WIDTH), "bias": (WIDTH,)},
    "embedding": {"weight": (3, WIDTH)},
    "scale": {"weight": (WIDTH,), "bias": (WIDTH,)},
    "formed": {"weight": (WIDTH,)},
    "conv": {"weight": (64, 64, 3, 3), "bias": (64,)},
    "conv_formed": {"weight": (64, 64, 3, 3), "bias": (64,)},
}
LENGTHS = {  # of an example's gradient with output gradients of size 1
    "linear": sqrt(WIDTH * (WIDTH + 1)),
    "embedding": sqrt(WIDTH),
    "scale": sqrt(2 * WIDTH),
    "formed": sqrt(WIDTH),
    "conv": POSITIONS * sqrt(64 * (64 * 9 + 1)),
    "conv_formed": POSITIONS * sqrt(64 * (64 * 9 + 1)),
}


def hovering(kind, count, aligned, factor, more):
    """How far, in units of C, one removal moves a sum that is at a power of two with it, and just below without.

    The first ``aligned`` gradients are C long, and each number of their sum a power of two or little more. The others
    are so short that they move such a sum, but not the one just below, by rounding alone.
    """
    terms = POSITIONS if kind.startswith("conv") else 1
    step = (1 + more) / terms  # of one term, once it is bounded
    clip_norm = LENGTHS[kind] * step * (1 + allowance(count, torch.float32))
    sizes = torch.full((count,), step)
    sizes[aligned:] = factor * aligned * 2.0**-24 / (1 if kind == "conv" else terms)  # each position is a term
    sizes[:aligned] *= 2  # longer than C
    part = BackwardPass([parts_of(kind, sizes)])
    scales = bound_scales(part.norms(), clip_norm, "clip", float(count))
    sums = []
    for start_at in (0, 1):
        own = BackwardPass([parts_of(kind, sizes[start_at:])])
        own.norms()
        total = {name: torch.zeros(1, *shape) for name, shape in SHAPES[kind].items()}
        own.add_weighted_sum(scales[:, start_at:] * count, total)
        sums.append(torch.cat([value.flatten().double() for value in total.values()]))
    return float((sums[0] - sums[1]).norm()) / clip_norm


@pytest.mark.parametrize(
    ("kind", "count"),
    [*product(["linear", "embedding", "scale", "formed"], [48, CHAIN, 1000, 4096]), ("conv", 64), ("conv_formed", 64)],
)
def test_a_batch_that_is_made_to_round_on_two_grids_stays_within_the_bound(kind, count):
    tried = [max(2, CHAIN // 2), max(2, CHAIN // 4), CHAIN // 16, 2, count // 2]
    for aligned, factor, more in product((own for own in tried if own < count), (0.52, 1.02), (2.0**-20, 2.0**-16)):
        assert hovering(kind, count, aligned, 2 * factor, more) <= 1, (aligned, factor, more)


@pytest.mark.parametrize("count", [8192, 32768])
@pytest.mark.parametrize("kind", ["linear", "embedding"])
def test_large_batches_of_aligned_gradients_stay_within_the_bound(kind, count):
    for size in (1.0, 0.7, 0.9999):
        sizes = torch.full((count,), size)
        scales = bound_scales(BackwardPass([parts_of(kind, sizes)]).norms(), C, "normalize", float(count)) * count
        sums = []
        for start_at in (0, 1):
            total = {name: torch.zeros(1, *shape) for name, shape in SHAPES[kind].items()}
            BackwardPass([parts_of(kind, sizes[start_at:])]).add_weighted_sum(scales[:, start_at:], total)
            sums.append(torch.cat([value.flatten().double() for value in total.values()]))
        assert (sums[0] - sums[1]).norm() <= C
