"""Persons as units: whole persons are drawn, and none moves a step's sum by more than the bound."""

from dataclasses import replace

import pytest
import torch
import torch.nn.functional as F
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from small import SETTINGS, SHAPES, data_of, layers_of, subsets_of

from dp_leakage.common.errors import UserError
from dp_leakage.models.layers import module
from dp_leakage.privacy.mechanism import Mechanism
from dp_leakage.training import flat
from dp_leakage.training.gradients import fill_gradient
from dp_leakage.training.samplers import draw_persons, roster
from dp_leakage.training.trainer import start, train

N = 24
SIZES = [(1, 2, 3, 7, 11), (4, 4, 4, 4, 8), (1, 1, 1, 1, 20), (24,)]


def persons_of(sizes):
    """Whose record each of N is, in an order in which nobody's records lie side by side."""
    persons = torch.repeat_interleave(torch.arange(len(sizes)), torch.tensor(sizes))
    return persons[torch.randperm(N, generator=torch.Generator().manual_seed(7))]


def person(**settings):
    return Mechanism("poisson", "person", noise_multiplier=0.0, **settings)


def step_sum(name, x, y, persons, mechanism, chosen, **changed):
    """The bounded sum of one step over these persons, float64, before it is divided; ``changed`` of the program."""
    training = start(layers_of(name), x, y, torch.arange(len(x))[None], [3], SETTINGS, mechanism, persons)
    with torch.inference_mode():
        batch = [torch.nonzero(persons == one)[:, 0] for one in chosen]
        fill_gradient(replace(training.program, **changed), [batch])
    return training.program.gradient[0].double() * training.program.divisor


@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@pytest.mark.parametrize("name", SHAPES)
@given(
    seed=st.integers(0, 2**32),
    magnitude=st.sampled_from([1e-6, 1.0, 30.0, 1e4, 1e16, 1e30, 1e38]),
    clip_norm=st.sampled_from([1e-2, 1.0, 25.0]),
    bound=st.sampled_from(["clip", "normalize"]),
    sizes=st.sampled_from(SIZES),
)
def test_no_person_moves_the_sum_by_more_than_the_bound(name, seed, magnitude, clip_norm, bound, sizes):
    generator = torch.Generator().manual_seed(seed)
    x, y = data_of(name, N)
    persons = persons_of(sizes)
    one = int(torch.randint(len(sizes), (1,), generator=generator))
    own = persons == one
    hostile = torch.rand(x[own].shape, generator=generator) < 0.5
    x[own] = torch.where(hostile, x[own] * magnitude, x[own])
    mechanism = person(clip_norm=clip_norm, bound=bound)
    training = start(layers_of(name), x, y, torch.arange(N)[None], [3], SETTINGS, mechanism, persons)
    batch = [torch.nonzero(persons == other)[:, 0] for other in range(len(sizes))]
    sums = []
    for units in (batch, [unit for other, unit in enumerate(batch) if other != one]):
        training.program.gradient.zero_()
        with torch.inference_mode():
            fill_gradient(training.program, [units])
        sums.append(training.program.gradient[0].double() * training.program.divisor)
    assert sums[0].isfinite().all()
    # Float32 sums of up to five vectors of length ≤ C carry an error of their own of some 1e-7·5·C.
    assert (sums[0] - sums[1]).norm() <= clip_norm * (1 + 1e-5)


@pytest.mark.parametrize("name", SHAPES)
@pytest.mark.parametrize("sizes", SIZES)
def test_the_sum_is_that_of_clipped_mean_gradients_by_autograd(name, sizes):
    x, y = data_of(name, N)
    x = x.clamp(min=0) if name == "table" else x
    persons, clip_norm = persons_of(sizes), 0.3
    layers = layers_of(name)
    training = start(layers, x, y, torch.arange(N)[None], [3], SETTINGS, person(clip_norm=clip_norm), persons)
    with torch.inference_mode():
        fill_gradient(training.program, [[torch.nonzero(persons == one)[:, 0] for one in range(len(sizes))]])
    named = {k: v[0].double() for k, v in flat.views(layers, training.program.gradient).items()}
    got = torch.cat([value.flatten() for value in named.values()]) * training.program.divisor
    twin = module(layers)
    twin.load_state_dict({k: v[0] for k, v in flat.views(layers, training.parameters.clone()).items()})
    expected = torch.zeros_like(got)
    for one in range(len(sizes)):
        twin.zero_grad()
        F.cross_entropy(twin(x[persons == one]), y[persons == one]).backward()
        mean = torch.cat([p.grad.flatten().double() for p in twin.parameters()])
        expected += mean * min(1.0, clip_norm / float(mean.norm()))
    torch.testing.assert_close(got, expected, rtol=1e-3, atol=2e-6)


@pytest.mark.parametrize("name", ["mlp", "cnn_small"])
def test_persons_side_by_side_add_what_they_add_one_by_one(name):
    x, y = data_of(name, N, torch.float64)
    persons = persons_of(SIZES[0])
    beside = step_sum(name, x, y, persons, person(), range(5))
    alone = step_sum(name, x, y, persons, person(), range(5), tiles=(0, 0))
    torch.testing.assert_close(alone, beside, rtol=1e-5, atol=1e-6)


def test_a_watched_person_comes_with_more_records_than_are_ever_drawn():
    x, y = data_of("mlp", N)
    persons = persons_of(SIZES[2])
    few = person(clip_norm=0.01, settings={"most": 2, "chosen": "each_step"})
    both = [step_sum("mlp", x, y, persons, how, [4], width=64) for how in (few, person(clip_norm=0.01))]
    assert float(both[1].norm()) == pytest.approx(0.01, rel=1e-3)
    torch.testing.assert_close(*both, rtol=1e-4, atol=1e-8)


@pytest.mark.parametrize("overflows", ["own", "another's"])
def test_padding_that_overflows_adds_nothing(overflows):
    """It repeats a model's last record, or, where a batch is empty, a record of another model."""
    x, y = data_of("mlp", N)
    x[-1] = 3e38
    persons = torch.arange(N) // 2
    last, quiet = [torch.tensor([N - 2, N - 1])], [torch.tensor([0, 1])]
    batches = [[*quiet, *last], quiet] if overflows == "own" else [last, []]
    training = start(layers_of("mlp"), x, y, subsets_of(N, 2), [3, 4], SETTINGS, person(), persons)
    training.parameters[0 if overflows == "own" else 1].mul_(100)
    with torch.inference_mode():
        fill_gradient(training.program, batches)
    assert training.program.gradient.isfinite().all()


@pytest.mark.parametrize("sampler", ["poisson", "shuffle", "wor", "cyclic", "balls_in_bins"])
def test_one_record_per_person_is_record_level_dp_sgd(sampler):
    x, y = data_of("mlp", N, torch.float64)
    rows = subsets_of(N, 1).sort().values  # persons are numbered in the order of the records
    arguments = (layers_of("mlp"), x, y, rows, [1], SETTINGS)
    of_record, _ = train(*arguments, Mechanism(sampler, clip_norm=0.5, noise_multiplier=0.7))
    of_person, _ = train(
        *arguments, Mechanism(sampler, "person", clip_norm=0.5, noise_multiplier=0.7), groups=torch.arange(N)
    )
    for key, value in of_record.parameters.items():
        torch.testing.assert_close(value, of_person.parameters[key], rtol=1e-10, atol=1e-12)


def draw_one(sampler, rows, batch_size, persons, generator, held=None, most=None):
    return draw_persons(sampler, [roster(rows, persons, held, most)], batch_size, [generator])[0]


@pytest.mark.parametrize("sampler", ["poisson", "shuffle", "wor", "cyclic", "balls_in_bins"])
@given(seed=st.integers(0, 2**32), out=st.integers(0, 4), most=st.sampled_from([None, 1, 3]))
def test_a_person_is_in_a_batch_with_all_records_and_changes_nobody_elses(sampler, seed, out, most):
    persons = persons_of(SIZES[0])
    rows = torch.arange(100, 100 + N)

    def drawn(held):
        generator = torch.Generator().manual_seed(seed)
        own = draw_one(sampler, rows, 2, persons, generator, held, most)
        return own, torch.rand(1, generator=generator).item()

    whole, after = drawn(torch.ones(N, dtype=torch.bool))
    without, after_without = drawn(persons != out)
    assert after == after_without
    assert drawn(None)[0] is not whole
    for batch, left in zip(whole, without, strict=True):
        for unit in batch:
            owner = persons[unit - 100].unique()
            assert len(owner) == 1
            assert len(unit.unique()) == len(unit) == min(most or N, int((persons == owner).sum()))
        others = [unit.sort().values for unit in batch if persons[unit[0] - 100] != out]
        if most is None:
            assert [unit.tolist() for unit in others] == [unit.sort().values.tolist() for unit in left]
        else:
            assert len(others) == len(left)
            assert [len(unit) for unit in others] == [len(unit) for unit in left]


def test_a_crowded_persons_records_take_turns():
    persons = torch.zeros(20, dtype=torch.int64)
    generator = torch.Generator().manual_seed(1)
    seen = torch.cat(
        [
            unit
            for _ in range(40)
            for batch in draw_one("wor", torch.arange(20), 1, persons, generator, None, 4)
            for unit in batch
        ]
    )
    counts = torch.bincount(seen, minlength=20)
    # 160 draws over 20 records, 4 at a time: mean 8, standard deviation 2.5; six of them for each end.
    assert counts.min() > 0
    assert counts.max() < 8 + 15


def test_batches_are_drawn_at_the_rate_of_persons():
    persons = torch.arange(2000) // 4
    generator = torch.Generator().manual_seed(2)
    batches = draw_one("poisson", torch.arange(2000), 50, persons, generator)
    assert len(batches) == 10
    drawn = sum(len(batch) for batch in batches)
    # 5,000 coins of 1/10: standard deviation 21; six of them, false alarm 2e-9.
    assert abs(drawn - 500) < 6 * 21.3


def test_the_unit_needs_to_know_whose_record_each_is():
    x, y = data_of("mlp", N)
    arguments = (layers_of("mlp"), x, y, torch.arange(N)[None], [1], SETTINGS, person())
    with pytest.raises(UserError, match=r"groups: missing"):
        start(*arguments)


def test_persons_take_no_turns():
    """They would be drawn at any step, while the accountant counts on one part of the steps alone."""
    x, y = data_of("mlp", N)
    turns = Mechanism("cyclic_poisson", "person", noise="banded", noise_multiplier=1.0, settings={"bands": 2})
    with pytest.raises(UserError, match="deals single records"):
        train(layers_of("mlp"), x, y, subsets_of(N, 1), [1], SETTINGS, turns, groups=torch.arange(N) // 2)
