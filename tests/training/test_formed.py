"""What one person moves in the sum of a release, in exact arithmetic: whole numbers of grid steps have no rounding."""

from fractions import Fraction

import pytest
import torch
import torch.nn.functional as F
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from small import SHAPES, data_of, layers_of

from dp_leakage.common.errors import UserError
from dp_leakage.models.layers import module
from dp_leakage.privacy.mechanism import Mechanism
from dp_leakage.training import flat, formed
from dp_leakage.training.formed import check_size, terms
from dp_leakage.training.released import SLACK, Release
from dp_leakage.training.settings import TrainingSettings

N = 40
SIZES = [(1, 2, 3, 7, 11, 16), (8, 8, 8, 8, 8), (1, 1, 1, 1, 36), (17, 23)]
MANY = {"deadline": None, "suppress_health_check": list(HealthCheck)}


def persons_of(sizes):
    """Whose record each of N is, in an order in which nobody's records lie side by side."""
    persons = torch.repeat_interleave(torch.arange(len(sizes)), torch.tensor(sizes))
    return persons[torch.randperm(N, generator=torch.Generator().manual_seed(7))]


def release_of(name, x, y, persons, batch_size=5, start=None, **mechanism):
    """A release of persons before its first epoch, without dropout; ``start`` is name → parameters."""
    step = Mechanism("poisson", "person", noise_multiplier=1.0, **mechanism)
    one = Release(layers_of(name), x, y, TrainingSettings("sgd", 0.1, batch_size=batch_size), step, person=persons)
    with torch.inference_mode():
        for key, view in one._training.models().parameters.items():
            view.copy_(torch.zeros_like(view) if start is None else start[key])
    return one


def steps_of(one, persons, chosen):
    """The sum of one step over these persons as whole numbers of grid steps, exactly."""
    program = one._training.program
    batch = [torch.nonzero(persons == each)[:, 0] for each in chosen]
    with torch.inference_mode():
        one._training.fill_gradient([batch], step=0)
    found = program.gradient[0] / program.noise.step
    assert torch.equal(found, found.round())
    return [int(value) for value in found.tolist()]


def within(steps, one, clip_norm):
    """Whether these grid steps are no longer than C(1 + slack) over the divisor, without any rounding."""
    program = one._training.program
    allowed = Fraction(clip_norm) * (1 + Fraction(SLACK)) / Fraction(program.divisor) / Fraction(program.noise.step)
    return sum(value * value for value in steps) <= allowed**2


def minus(left, right):
    return [one - other for one, other in zip(left, right, strict=True)]


@settings(max_examples=60, derandomize=True, **MANY)
@given(
    seed=st.integers(0, 2**32),
    power=st.integers(-30, 30),
    nearly=st.sampled_from([0.0, 1e-15, 1e-12, 1e-7, 1e-3]),
    clip_norm=st.sampled_from([1e-3, 1.0, 40.0]),
    bound=st.sampled_from(["clip", "normalize"]),
    name=st.sampled_from(["softmax_regression", "mlp", "table"]),
)
def test_records_that_cancel_move_the_sum_by_no_more_than_the_bound_and_nobody_elses_term(
    seed, power, nearly, clip_norm, bound, name
):
    """A person's records come in pairs of opposite labels, whose gradients cancel but for a share of ``nearly``."""
    generator = torch.Generator().manual_seed(seed)
    persons = torch.arange(N) // 8
    x, y = data_of(name, N, torch.float64)
    x[1::2] = x[::2]  # pairs
    y[::2], y[1::2] = 0, 1
    one = int(torch.randint(5, (1,), generator=generator))
    x[persons == one] *= 10.0**power
    x[1::2] *= 1 + nearly
    weights = {key: torch.zeros(shape) for key, shape in _shapes(name).items()}
    if name == "mlp":  # at zero, no gradient reaches the first layers
        weights = {key: torch.randn(value.shape, generator=generator) for key, value in weights.items()}
    release = release_of(name, x, y, persons, start=weights, clip_norm=clip_norm, bound=bound)
    whole = steps_of(release, persons, range(5))
    moved = minus(whole, steps_of(release, persons, [other for other in range(5) if other != one]))
    assert within(moved, release, clip_norm)
    assert moved == steps_of(release, persons, [one])


def _shapes(name):
    from dp_leakage.models.layers import parameter_shapes

    return parameter_shapes(layers_of(name))


@settings(max_examples=8, derandomize=True, **MANY)
@pytest.mark.parametrize("name", SHAPES)
@given(
    seed=st.integers(0, 2**32),
    magnitude=st.sampled_from([1e-30, 1.0, 1e4, 1e16, 1e30]),
    bound=st.sampled_from(["clip", "normalize"]),
    sizes=st.sampled_from(SIZES),
)
def test_any_layer_and_any_number_of_records(name, seed, magnitude, bound, sizes):
    generator = torch.Generator().manual_seed(seed)
    x, y = data_of(name, N)
    persons = persons_of(sizes)
    one = int(torch.randint(len(sizes), (1,), generator=generator))
    own = persons == one
    x[own] = torch.where(torch.rand(x[own].shape, generator=generator) < 0.5, x[own] * magnitude, x[own])
    weights = {key: torch.randn(shape, generator=generator) for key, shape in _shapes(name).items()}
    release = release_of(name, x, y, persons, start=weights, bound=bound)
    whole = steps_of(release, persons, range(len(sizes)))
    moved = minus(whole, steps_of(release, persons, [other for other in range(len(sizes)) if other != one]))
    assert within(moved, release, 1.0)
    assert moved == steps_of(release, persons, [one])


@settings(max_examples=200, derandomize=True, **MANY)
@given(
    seed=st.integers(0, 2**32),
    powers=st.lists(st.integers(-320, 308), min_size=1, max_size=6),
    clip_norm=st.sampled_from([1e-30, 1e-3, 1.0, 1e30]),
    bound=st.sampled_from(["clip", "normalize"]),
    odd=st.sampled_from([None, float("nan"), float("inf")]),
)
def test_a_term_is_no_longer_than_the_bound_whatever_the_vector(seed, powers, clip_norm, bound, odd):
    x, y = data_of("softmax_regression", N)
    release = release_of("softmax_regression", x, y, torch.arange(N) // 8, clip_norm=clip_norm, bound=bound)
    program = release._training.program
    generator = torch.Generator().manual_seed(seed)
    means = torch.randn(len(powers), program.gradient.shape[1], dtype=torch.float64, generator=generator)
    means = torch.stack([row * 10.0**power for row, power in zip(means, powers, strict=True)])
    if odd is not None:
        means[0, 3] = odd
    for row in terms(program, program.noise.step, means.clone()).tolist():
        assert within([int(value) for value in row], release, clip_norm)


@pytest.mark.parametrize("name", SHAPES)
@pytest.mark.parametrize("sizes", SIZES)
def test_the_sum_is_that_of_clipped_mean_gradients_by_autograd(name, sizes):
    x, y = data_of(name, N)
    x = x.clamp(min=0) if name == "table" else x
    persons, clip_norm, layers = persons_of(sizes), 0.3, layers_of(name)
    generator = torch.Generator().manual_seed(2)
    weights = {key: torch.randn(shape, generator=generator) / 4 for key, shape in _shapes(name).items()}
    release = release_of(name, x, y, persons, start=weights, clip_norm=clip_norm)
    program = release._training.program
    steps_of(release, persons, range(len(sizes)))
    got = torch.cat([view[0].flatten() for view in flat.views(layers, program.gradient).values()]) * program.divisor
    twin = module(layers).double()
    twin.load_state_dict({key: value.double() for key, value in weights.items()})
    expected = torch.zeros_like(got)
    for one in range(len(sizes)):
        twin.zero_grad()
        F.cross_entropy(twin(x[persons == one].double()), y[persons == one]).backward()
        mean = torch.cat([parameter.grad.flatten() for parameter in twin.parameters()])
        expected += mean * min(1.0, clip_norm / float(mean.norm()))
    torch.testing.assert_close(got, expected, rtol=1e-5, atol=3e-6)  # Opacus' 1e-6 beside the length


@pytest.mark.parametrize("name", ["mlp", "cnn_small"])
def test_a_person_with_more_records_than_fit_into_a_pass_goes_in_parts(name, monkeypatch):
    x, y = data_of(name, N)
    persons = persons_of((1, 1, 1, 1, 36))
    generator = torch.Generator().manual_seed(2)
    weights = {key: torch.randn(shape, generator=generator) / 4 for key, shape in _shapes(name).items()}
    release = release_of(name, x, y, persons, start=weights)
    at_once = steps_of(release, persons, range(5))
    monkeypatch.setattr(formed, "pass_width", lambda *_: 8)
    in_parts = steps_of(release, persons, range(5))
    assert max(abs(value) for value in minus(at_once, in_parts)) <= 5  # a step each, from rounding


def test_so_many_persons_that_their_sum_could_round_are_refused():
    x, y = data_of("mlp", N)
    program = release_of("mlp", x, y, torch.arange(N) // 8)._training.program
    check_size(program, program.noise.step, 10**6)
    with pytest.raises(UserError, match=r"can have up to [0-9,]+ persons; got 1,000,000,000"):
        check_size(program, program.noise.step, 10**9)
