"""Noise and batches from the operating system. It gives no seed to fix, so every test states its false positives."""

from math import ceil, sqrt

import numpy as np
import pytest
import torch
from scipy import stats
from small import data_of, layers_of

from dp_leakage.common.errors import UserError
from dp_leakage.privacy.mechanism import Mechanism
from dp_leakage.training import released
from dp_leakage.training.flat import size
from dp_leakage.training.released import GridNoise, Release, normals, positions, uniforms
from dp_leakage.training.settings import TrainingSettings
from dp_leakage.training.trainer import train

RARE = 1e-9  # false positives of each test


def test_draws_of_the_system_are_uniform_and_normal():
    assert stats.kstest(uniforms(200_000), "uniform").pvalue > RARE
    assert stats.kstest(normals(200_000), "norm").pvalue > RARE
    assert 0 < uniforms(1000).min() <= uniforms(1000).max() <= 1


def on_grid(gradient, clip_norm=0.6, noise_multiplier=1.7, divisor=8.0):
    """The noisy gradient float64 (1, P), and the noise that made it."""
    total = torch.tensor(gradient, dtype=torch.float64)[None]
    noise = GridNoise(Mechanism(clip_norm=clip_norm, noise_multiplier=noise_multiplier), total, divisor, [], 0)
    noise.finish()
    return total[0].numpy(), noise


def test_noise_on_the_grid_has_its_standard_deviation_and_leaves_the_gradient_where_it_was():
    gradient = np.full(200_000, 0.123)
    found, noise = on_grid(gradient)
    assert stats.kstest((found - gradient) / noise.deviation, "norm").pvalue > RARE


def test_the_step_of_the_grid_and_the_slack_cover_what_rounding_moves():
    _, noise = on_grid(np.zeros(10_000))
    assert np.log2(noise.step) == int(np.log2(noise.step))
    assert sqrt(10_000) * noise.step <= released.SLACK / 2 * 0.6 / 8.0


def low_bits(values, step):
    """Among the numbers near 0, the share that are multiples of a step."""
    near = values[np.abs(values) < 2.0**-6]
    assert len(near) > 200
    return float((near / step == np.rint(near / step)).mean())


def test_low_bits_tell_the_gradient_under_seeded_float_noise_and_tell_nothing_on_the_grid():
    count, third = 200_000, np.float32(1 / 3)
    drawn = torch.empty(count).normal_(generator=torch.Generator().manual_seed(1)).numpy()
    # What the noise cancels keeps the last bits that the noise had there: the attack of Mironov (2012).
    assert low_bits((drawn + third).astype(np.float64), 2.0**-26) == 1
    assert low_bits(drawn.astype(np.float64), 2.0**-26) < 0.5
    for gradient in (0.0, float(third)):
        found, noise = on_grid(np.full(count, gradient), 1.0, 1.0, 1.0)
        assert (found / noise.step == np.rint(found / noise.step)).all()
        assert 0.4 < low_bits(found, 2 * noise.step) < 0.6  # binomial of over 200: less than 1e-2 from chance; see next
        # The bits below carry no more of one gradient than of another: over all numbers, six standard deviations.
        odd = (np.rint(found / noise.step) % 2).mean()
        assert abs(odd - 0.5) < 3 / sqrt(count)


def test_poisson_batches_hold_each_record_at_the_rate_and_shuffled_ones_each_once():
    drawn = [batch for _ in range(200) for batch in positions("poisson", 100, 8.0)]
    assert len(drawn) == 200 * ceil(100 / 8)
    counts = np.bincount(torch.cat(drawn).numpy(), minlength=100)
    deviation = sqrt(len(drawn) * 0.08 * 0.92)
    assert np.abs(counts - len(drawn) * 0.08).max() < 7 * deviation  # 100 normals: 3e-10
    for batch in positions("poisson", 20, 20.0):
        assert batch.tolist() == list(range(20))
    shuffled = positions("shuffle", 100, 8.0)
    assert [len(batch) for batch in shuffled] == [8] * 12 + [4]
    assert sorted(torch.cat(shuffled).tolist()) == list(range(100))
    assert torch.cat(shuffled).tolist() != list(range(100))


def test_records_that_are_left_out_are_in_no_batch():
    x, y = data_of("mlp")
    held = torch.arange(len(x)) % 2 == 0
    for sampler, person in (("poisson", None), ("shuffle", None), ("poisson", torch.arange(len(x)) % 4)):
        mechanism = Mechanism(sampler, "example" if person is None else "person", noise_multiplier=1.0)
        size = 20 if person is None else 4
        one = Release(layers_of("mlp"), x, y, TrainingSettings(batch_size=size), mechanism, held, person)
        (batches,) = one._training.draw(0)
        drawn = torch.cat([rows for batch in batches for rows in batch])
        assert len(drawn)
        assert (drawn % 2 == 0).all()


@pytest.mark.parametrize("name", ["mlp", "lenet", "mixed", "residual"])
def test_a_release_takes_the_steps_of_the_trainer(name):
    x, y = data_of(name)
    layers, settings = layers_of(name), TrainingSettings("sgd", 0.1, epochs=3, batch_size=len(x), momentum=0.5)
    mechanism = Mechanism("poisson", clip_norm=0.6, noise_multiplier=1e-6)  # batches are whole, noise is next to none
    one = Release(layers, x, y, settings, mechanism)
    begin = {name: view[0].clone() for name, view in one._training.models().parameters.items()}
    for _ in range(3):
        assert one.run_epoch()
    rows = torch.arange(len(x))[None]
    ours, _ = train(layers, x.double(), y, rows, [1], settings, mechanism, initial=begin)
    for name, value in one.parameters().items():
        torch.testing.assert_close(value, ours.parameters[name][0].float(), rtol=1e-4, atol=1e-5)


def test_a_release_that_is_resumed_goes_on_where_it_was_with_other_noise():
    x, y = data_of("mlp")
    settings, mechanism = TrainingSettings(epochs=2, batch_size=8), Mechanism("poisson", noise_multiplier=1.0)
    one, two = (Release(layers_of("mlp"), x, y, settings, mechanism) for _ in range(2))
    one.run_epoch()
    two.restore(1, one.state())
    assert two.epoch == 1
    assert all(torch.equal(one.parameters()[name], value) for name, value in two.parameters().items())
    one.run_epoch(), two.run_epoch()
    assert not any(torch.equal(one.parameters()[name], value) for name, value in two.parameters().items())


def test_the_state_of_a_release_holds_no_random_stream():
    x, y = data_of("mlp")
    one = Release(layers_of("mlp"), x, y, TrainingSettings(batch_size=8), Mechanism("poisson", noise_multiplier=1.0))
    parameters = size(layers_of("mlp"))
    assert all(tensor.numel() in (1, parameters) and tensor.is_floating_point() for tensor in one.state().values())


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        ({"noise": "none"}, "only under Gaussian noise"),
        ({"noise_multiplier": None}, "only under Gaussian noise"),
        ({"unit": "class"}, "must bound each record, or each person"),
        ({"sampler": "balls_in_bins"}, "sampler of a release must be poisson or shuffle"),
    ],
)
def test_what_cannot_be_released_is_refused(given, sentence):
    x, y = data_of("mlp")
    mechanism = Mechanism(**{"sampler": "poisson", "noise_multiplier": 1.0} | given)
    with pytest.raises(UserError, match=sentence):
        Release(layers_of("mlp"), x, y, TrainingSettings(batch_size=8), mechanism)
