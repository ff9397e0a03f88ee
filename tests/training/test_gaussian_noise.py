import pytest
import torch
from small import SHAPES, data_of, layers_of, started, subsets_of, take

from dp_leakage.privacy.mechanism import Mechanism
from dp_leakage.training.noise import start_noise
from dp_leakage.training.streams import stream

SIGMA, CLIP, BATCH = 1.7, 0.6, 8


def moved(name, noise_multiplier, unit="example", seeds=(1, 2), **arguments):
    """How far one SGD step at rate 1 takes each model, float64 (K, P)."""
    x, y = data_of(name)
    mechanism = Mechanism(unit=unit, clip_norm=CLIP, noise_multiplier=noise_multiplier, **arguments)
    training = started(
        layers_of(name), x, y, subsets_of(len(x), len(seeds)), seeds, mechanism, learning_rate=1.0, batch_size=BATCH
    )
    before = training.parameters.double().clone()
    take(training, [[torch.arange(BATCH)] * len(seeds)])
    return before - training.parameters.double()


def z_of_chi_square(values, deviation):
    count = values.numel()
    return ((values / deviation).square().sum() - count) / (2 * count) ** 0.5


@pytest.mark.parametrize("name", SHAPES)
def test_noise_has_standard_deviation_sigma_c_on_the_sum(name):
    noise = (moved(name, SIGMA) - moved(name, 0.0)) * BATCH
    # χ² of P normals over two models; six standard deviations: false alarm 2e-9 per case. Float32 adds 1e-6.
    assert abs(z_of_chi_square(noise, SIGMA * CLIP)) < 6
    assert abs(noise.mean()) < 6 * SIGMA * CLIP / noise.numel() ** 0.5


def test_noise_on_a_whole_batch_is_not_divided_by_its_size():
    noise = moved("mlp", SIGMA, unit="batch") - moved("mlp", 0.0, unit="batch")
    assert abs(z_of_chi_square(noise, SIGMA * CLIP)) < 6


def test_noise_on_classes_is_divided_by_their_number():
    noise = (moved("mlp", SIGMA, unit="class") - moved("mlp", 0.0, unit="class")) * 5
    assert abs(z_of_chi_square(noise, SIGMA * CLIP)) < 6


def test_models_and_steps_draw_independent_noise():
    noise = torch.cat(
        [moved("mlp", SIGMA, seeds=(seed, seed + 1)) - moved("mlp", 0.0, seeds=(seed, seed + 1)) for seed in (1, 3)]
    )
    correlation = torch.corrcoef(noise) - torch.eye(4)
    assert correlation.abs().max() < 6 / noise.shape[1] ** 0.5


def test_an_empty_poisson_batch_still_gets_its_noise():
    x, y = data_of("mlp")
    mechanism = Mechanism("poisson", clip_norm=CLIP, noise_multiplier=SIGMA)
    training = started(
        layers_of("mlp"), x, y, subsets_of(len(x), 1), [1], mechanism, learning_rate=1.0, batch_size=BATCH
    )
    before = training.parameters.double().clone()
    take(training, [[torch.arange(0)]])
    noise = (before - training.parameters.double()) * BATCH
    assert abs(z_of_chi_square(noise, SIGMA * CLIP)) < 6


SETTINGS = {"gaussian": {}, "banded": {"bands": 3, "horizon": None}, "blt": {"buffers": 2}, "tree": {}}


def noises(kind, ahead, steps=5, count=12):
    """What a training of three models adds in each of ``count`` steps, if so many steps are drawn at once."""
    mechanism = Mechanism("cyclic", noise=kind, noise_multiplier=SIGMA, clip_norm=CLIP, settings=SETTINGS[kind])
    gradient, generators = torch.empty(3, 48), [stream(seed, "noise") for seed in range(3)]
    noise = start_noise(mechanism, gradient, BATCH, generators, steps)
    noise.ahead = ahead
    added = []
    for step in range(count):
        noise.add(step)
        added.append(gradient.clone())
    return torch.stack(added)


@pytest.mark.parametrize("kind", SETTINGS)
def test_normals_that_a_gpu_draws_ahead_are_the_same_numbers(kind):
    """Here on a CPU, whose generator goes on as if steps were drawn singly."""
    single = noises(kind, 1)
    assert len(single.unique(dim=0)) == len(single)
    for ahead in (2, 5):
        assert torch.equal(noises(kind, ahead), single)


def test_how_many_steps_a_gpu_draws_at_once_does_not_depend_on_the_company():
    def ahead(models, size, device="meta"):
        gradient = torch.empty(models, size, device=device)
        return start_noise(Mechanism(noise_multiplier=SIGMA), gradient, BATCH, [], 200).ahead

    assert ahead(1, 16) == ahead(30, 16) == 200
    assert ahead(1, 2**16) == ahead(30, 2**16) == 16
    assert ahead(1, 2**22) == 1
    assert ahead(30, 16, "cpu") == 1
