"""(Sub)classes as units (zhang2020, algorithm 2): how far replacing one moves a step, and both limits of k_sub."""

import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from small import CLASSES, SETTINGS, data_of, layers_of, subsets_of

from dp_leakage.data.subclasses import PARTITIONS
from dp_leakage.privacy.mechanism import Mechanism
from dp_leakage.training import gradients, trainer
from dp_leakage.training.gradients import fill_gradient
from dp_leakage.training.trainer import start, train

N = 24
NAMES = ["softmax_regression", "mlp", "cnn_small"]


def step_sum(name, x, y, groups, mechanism, batch):
    """The bounded sum of one step without noise, float64, before it is divided."""
    training = start(layers_of(name), x, y, torch.arange(len(x))[None], [3], SETTINGS, mechanism, groups)
    with torch.inference_mode():
        fill_gradient(training.program, [batch])
    return training.program.gradient[0].double() * training.program.divisor


@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@pytest.mark.parametrize("name", NAMES)
@given(
    seed=st.integers(0, 2**32),
    magnitude=st.sampled_from([1e-3, 1.0, 30.0, 1e4]),
    clip_norm=st.sampled_from([1e-2, 1.0, 10.0]),
    unit=st.sampled_from(["class", "subclass"]),
    sizes=st.sampled_from([(1, 1, 1, 21), (6, 6, 6, 6), (1, 1, 11, 11)]),
)
def test_replacing_all_records_of_a_unit_moves_the_sum_by_twice_the_bound(
    name, seed, magnitude, clip_norm, unit, sizes
):
    generator = torch.Generator().manual_seed(seed)
    x, y = data_of(name, N)
    groups = torch.repeat_interleave(torch.arange(4), torch.tensor(sizes))
    replaced = int(torch.randint(4, (1,), generator=generator))
    other = groups == replaced
    # The neighbor: every record of one unit is another one, and so may its label be.
    x2, y2 = x.clone(), y.clone()
    x2[other] = magnitude * torch.randn(x[other].shape, generator=generator)
    y2[other] = torch.randint(CLASSES, (int(other.sum()),), generator=generator)
    mechanism = Mechanism("class_poisson", unit, clip_norm=clip_norm, noise_multiplier=0.0)
    batch = [torch.nonzero(groups == group)[:, 0] for group in range(4)]
    without = [unit for group, unit in enumerate(batch) if group != replaced]
    here = step_sum(name, x, y, groups, mechanism, batch)
    there = step_sum(name, x2, y2, groups, mechanism, batch)
    absent = step_sum(name, x, y, groups, mechanism, without)
    # Float32 sums of four vectors of length ≤ C carry an error of their own of some 1e-7·4·C.
    assert (here - there).norm() <= 2 * clip_norm * (1 + 1e-5)
    assert (here - absent).norm() <= clip_norm * (1 + 1e-5)


def test_a_replacement_can_move_the_sum_by_nearly_twice_the_bound():
    x, y = data_of("softmax_regression", 8)
    y = torch.zeros_like(y)
    mechanism = Mechanism("class_poisson", "class", clip_norm=0.1, noise_multiplier=0.0)
    groups, batch = torch.zeros_like(y), [torch.arange(8)]
    here = step_sum("softmax_regression", x[:1].expand(8, -1), y, groups, mechanism, batch)
    there = step_sum("softmax_regression", -x[:1].expand(8, -1), y, groups, mechanism, batch)
    assert (here - there).norm() > 1.7 * 0.1


@pytest.mark.parametrize("name", NAMES)
def test_one_record_per_subclass_is_record_level_dp_sgd(name):
    x, y = data_of(name, N, torch.float64)
    subsets = subsets_of(N, 2)
    arguments = (layers_of(name), x, y, subsets, [1, 2], SETTINGS)
    record = Mechanism("poisson", clip_norm=0.5, noise_multiplier=0.7)
    subclass = Mechanism("class_poisson", "subclass", clip_norm=0.5, noise_multiplier=0.7)
    for model, rows in enumerate(subsets):  # groups are numbered in the order of each model's records
        groups = torch.empty(N, dtype=torch.int64)
        groups[rows] = torch.arange(N)
        alone = (layers_of(name), x, y, rows[None], [1 + model], SETTINGS)
        of_subclass, _ = train(*alone, subclass, groups=groups)
        of_record, _ = train(*arguments, record)
        for key, value in of_record.parameters.items():
            # Record level pads its batches, so that the sums are taken in another order.
            torch.testing.assert_close(value[model], of_subclass.parameters[key][0], rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("means", [1, 1 << 28], ids=["one at once", "all at once"])
@pytest.mark.parametrize("width", [30, 50, 80])
@pytest.mark.parametrize("name", ["softmax_regression", "mlp", "lenet", "mixed", "residual", "table"])
def test_units_that_share_passes_have_the_gradients_of_units_one_after_the_other(name, width, means, monkeypatch):
    """As on a GPU. One unit is too large for a pass of 30, and one has a record whose gradient is not finite."""
    x, y = data_of(name, 80, torch.float64)
    if name != "table":
        x[0] = 1e308
    groups = torch.repeat_interleave(torch.arange(4), torch.tensor([10, 37, 20, 13]))
    mechanism = Mechanism("class_poisson", "class", clip_norm=0.5, noise_multiplier=0.0)
    batch = [torch.nonzero(groups == group)[:, 0] for group in range(4)]
    monkeypatch.setattr(gradients, "MEANS", means)
    monkeypatch.setattr(trainer, "pass_width", lambda *_: width)
    apart = step_sum(name, x, y, groups, mechanism, batch)
    asked = []
    monkeypatch.setattr(gradients, "joins_units", lambda program: not asked.append(program))
    joined = step_sum(name, x, y, groups, mechanism, batch)
    assert asked
    assert apart.norm() > 0.1
    torch.testing.assert_close(joined, apart, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("partition", PARTITIONS)
def test_one_subclass_per_class_is_class_dp_to_the_bit(partition):
    x, y = data_of("cnn_small", N)
    groups = torch.from_numpy(PARTITIONS[partition](x.numpy(), y.numpy(), 1, 0))
    arguments = (layers_of("cnn_small"), x, y, subsets_of(N, 1), [4], SETTINGS)
    of_class, _ = train(*arguments, Mechanism("class_poisson", "class", noise_multiplier=0.3))
    of_subclass, _ = train(*arguments, Mechanism("class_poisson", "subclass", noise_multiplier=0.3), groups=groups)
    for key, value in of_class.parameters.items():
        assert torch.equal(value, of_subclass.parameters[key]), key


def test_the_noisy_sum_is_divided_by_the_expected_number_of_units():
    # Algorithm 2, line 9: noise σS on the sum of qK units, here read off a step in which nothing was drawn.
    x, y = data_of("mlp", N)
    groups = torch.arange(N) % 6
    mechanism = Mechanism("class_poisson", "subclass", clip_norm=2.0, noise_multiplier=3.0)
    training = start(layers_of("mlp"), x, y, torch.arange(N)[None], [5], SETTINGS, mechanism, groups)
    with torch.inference_mode():
        fill_gradient(training.program, [[]])
    drawn = training.program.gradient[0].double()
    rate = SETTINGS.batch_size / N
    expected = 3.0 * 2.0 / (rate * 6)
    # Sample standard deviation of P normals: six standard errors, false alarm 2e-9.
    assert abs(drawn.std() / expected - 1) < 6 / (2 * drawn.numel()) ** 0.5
