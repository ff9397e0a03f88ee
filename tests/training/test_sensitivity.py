"""Removing any one unit changes the bounded sum by at most C: float32 work, checked in float64."""

from dataclasses import fields
from itertools import product

import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from small import SHAPES, data_of, layers_of

from dp_leakage.models.architectures import build
from dp_leakage.models.layers import initial_parameters
from dp_leakage.models.layers.linear import LinearGradients
from dp_leakage.privacy.clipping import bound_scales, layer_norm
from dp_leakage.privacy.mechanism import Mechanism
from dp_leakage.training.backward import BackwardPass, backpropagate
from dp_leakage.training.gradients import fill_gradient
from dp_leakage.training.settings import TrainingSettings
from dp_leakage.training.trainer import start

BATCH = 12


def in_float64(passed):
    """The same gradients, to the last bit, with all further work in float64."""

    def widened(part):
        values = {field.name: getattr(part, field.name) for field in fields(part)}
        return type(part)(**{key: v.double() if torch.is_tensor(v) else v for key, v in values.items()})

    return BackwardPass([widened(part) for part in passed.parts])


@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@pytest.mark.parametrize("name", SHAPES)
@given(
    seed=st.integers(0, 2**32),
    magnitude=st.sampled_from([1e-6, 1e-2, 1.0, 30.0, 1e4]),
    clip_norm=st.sampled_from([1e-3, 0.1, 1.0, 25.0]),
    bound=st.sampled_from(["clip", "normalize", "automatic"]),
)
def test_removing_any_one_example_moves_the_sum_by_at_most_the_bound(name, seed, magnitude, clip_norm, bound):
    layers = layers_of(name)
    parameters = {
        key: value[None] for key, value in initial_parameters(layers, torch.Generator().manual_seed(seed)).items()
    }
    x, y = data_of(name, BATCH)
    x, y = (x * magnitude)[None], y[None]
    passed = backpropagate(layers, parameters, x, y)
    scales = bound_scales(passed.norms(), clip_norm, bound)
    contributions = scales.double() * in_float64(passed).norms()
    assert (contributions <= clip_norm).all()

    # The sums themselves, formed in float32 with and without each example.
    sums = []
    for left_out in range(BATCH):
        total = {key: torch.zeros_like(value) for key, value in parameters.items()}
        kept = scales.clone()
        kept[0, left_out] = 0
        passed.add_weighted_sum(kept, total)
        sums.append(torch.cat([value.flatten().double() for value in total.values()]))
    total = {key: torch.zeros_like(value) for key, value in parameters.items()}
    passed.add_weighted_sum(scales, total)
    whole = torch.cat([value.flatten().double() for value in total.values()])
    # Float32 sums of BATCH vectors of length ≤ C carry an error of their own of some 1e-7·BATCH·C.
    assert max((whole - part).norm() for part in sums) <= clip_norm * (1 + 1e-6 * BATCH)


@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@pytest.mark.parametrize("name", SHAPES)
@given(
    seed=st.integers(0, 2**32),
    magnitude=st.sampled_from([1e-6, 1.0, 1e4]),
    clip_norm=st.sampled_from([1e-3, 0.1, 25.0]),
)
def test_layers_that_are_bounded_by_themselves_move_the_sum_by_at_most_the_bound_together(
    name, seed, magnitude, clip_norm
):
    layers = layers_of(name)
    generator = torch.Generator().manual_seed(seed)
    parameters = {key: value[None] for key, value in initial_parameters(layers, generator).items()}
    x, y = data_of(name, BATCH)
    passed = backpropagate(layers, parameters, (x * magnitude)[None], y[None])
    share = layer_norm(clip_norm, len(passed.parts))
    scales = [bound_scales(part.norms(), share, "per_layer").double() for part in passed.parts]
    lengths = [scale * part.norms() for scale, part in zip(scales, in_float64(passed).parts, strict=True)]
    assert (torch.stack(lengths).square().sum(0).sqrt() <= clip_norm).all()


@pytest.mark.parametrize(
    ("unit", "bound"),
    [*product(("example", "batch"), ("clip", "normalize", "automatic")), ("example", "per_layer")],
)
@pytest.mark.parametrize("gray", [197 / 255, 0.1])
def test_the_bound_holds_for_wide_inputs_whose_squares_sum_up_to_rounding(unit, bound, gray):
    """A gray image: float32 sums of 12,288 equal squares drift by a hundred units of precision."""
    x, y = torch.full((2, 3, 64, 64), gray), torch.tensor([0, 1])
    mechanism = Mechanism(unit=unit, bound=bound, clip_norm=0.01, noise_multiplier=0.0)
    how = TrainingSettings("sgd", 0.1, epochs=1, batch_size=1)
    layers = build("softmax_regression", (3, 64, 64), 10)
    with torch.inference_mode():
        training = start(layers, x, y, torch.arange(2)[None], [3], how, mechanism)
        fill_gradient(training.program, [[torch.tensor([0])]])
    assert training.program.gradient[0].double().norm() * training.program.divisor <= 0.01


@pytest.mark.parametrize("bound", ["clip", "normalize"])
@pytest.mark.parametrize("magnitude", [1.0, 1e6, 1e13, 1e18, 1e30])
@pytest.mark.parametrize("delta", [1.0, 1e-12, 1e-20, 1e-30, 1e-42])
def test_the_bound_holds_where_squares_vanish_or_overflow(bound, magnitude, delta):
    passed = BackwardPass(
        [LinearGradients(("0.weight", "0.bias"), torch.full((1, 1, 9), magnitude), torch.tensor([[[-delta, delta]]]))]
    )
    scales = bound_scales(passed.norms(), 0.5, bound)
    total = {"0.weight": torch.zeros(1, 2, 9), "0.bias": torch.zeros(1, 2)}
    passed.add_weighted_sum(scales, total)
    assert torch.cat([value.flatten().double() for value in total.values()]).norm() <= 0.5 * (1 + 1e-6)
