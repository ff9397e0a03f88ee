"""Clipping norms that follow a quantile: what a record moves, what the noise hides, and where the norm goes."""

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats
from small import cut_and_resumed

from dp_leakage.models.architectures import build
from dp_leakage.privacy.mechanism import Mechanism
from dp_leakage.privacy.mechanisms.adaptive import Noise
from dp_leakage.training.settings import TrainingSettings
from dp_leakage.training.trainer import start, train

OWN = {"quantile": 0.5, "rate": 0.2, "share": 0.01}


def adaptive(sigma=1.0, clip_norm=0.5, **own):
    return Mechanism("poisson", bound="adaptive", clip_norm=clip_norm, noise_multiplier=sigma, settings=OWN | own)


def noise_of(mechanism, models=1, parameters=4, divisor=8.0):
    generators = [torch.Generator().manual_seed(model) for model in range(models)]
    return Noise(mechanism, torch.zeros(models, parameters), divisor, generators, 1)


lengths = st.lists(st.floats(0, 2.0**60, width=32), min_size=1, max_size=8)


@given(lengths, st.floats(2.0**-10, 2.0**10, width=32), st.floats(0.001, 0.5))
def test_one_record_moves_sum_and_count_by_no_more_than_the_noise_hides(norms, clip_norm, share):
    """In units of their noise: 1/z for a record's presence, 2/z for its exchange (theorem 1 of the paper)."""
    z, norms = 1.3, torch.tensor([norms])
    noise = noise_of(adaptive(z, clip_norm, share=share), divisor=1.0)
    scales = noise.scales(norms, range(1))
    lengths = (scales.double() * norms.double())[0] / clip_norm  # of what each record adds to the sum, in units of C
    assert (lengths <= 1).all()
    counted = []
    for row in range(norms.shape[1]):
        alone = noise_of(noise.mechanism, divisor=1.0)
        alone.scales(norms[:, row : row + 1], range(1))
        counted.append(float(alone.counts))
    assert float(noise.counts) == sum(counted)
    moved = (lengths / noise.of_sum) ** 2 + (torch.tensor(counted) / noise.of_count) ** 2
    assert moved.max() <= 1 / z**2 * (1 + 1e-6)
    apart = (2 * lengths.max() / noise.of_sum) ** 2 + ((max(counted) - min(counted)) / noise.of_count) ** 2
    assert apart <= 4 / z**2 * (1 + 1e-6)


def test_padding_is_not_counted():
    noise = noise_of(adaptive(), models=2)
    noise.scales(torch.tensor([[0.1, 9.0, 0.1]]), range(1, 2), torch.tensor([[1.0, 1.0, 0.0]]))
    assert noise.counts.tolist() == [[0.0], [0.0]]
    noise.scales(torch.tensor([[0.1, 9.0, 0.1]]), range(1, 2))
    assert noise.counts.tolist() == [[0.0], [0.5]]


def test_sum_and_count_get_the_noise_that_the_docstring_says():
    mechanism = adaptive(2.0, 0.5, share=0.2, rate=1.0)
    noise = noise_of(mechanism, models=1, parameters=20_000, divisor=8.0)
    noise.add(0)
    expected = 2.0 / np.sqrt(0.8) * 0.5 / 8.0
    # A KS test at the level of 1 in 10,000.
    assert stats.kstest(noise.gradient[0].numpy() / expected, "norm").pvalue > 1e-4
    found = []
    for _ in range(2000):
        noise.clip_norms.fill_(1.0)
        noise.counts.fill_(3.0)
        noise.finish()
        found.append(-np.log(float(noise.clip_norms)))  # (3 + N(0, σ_b²))/8 + 1/2 − 1/2
    assert np.mean(found) == pytest.approx(3 / 8, abs=4 * noise.of_count / 8 / np.sqrt(2000))
    assert np.std(found) == pytest.approx(2.0 / (2 * np.sqrt(0.2)) / 8, rel=0.07)


@settings(max_examples=10, deadline=None)
@given(st.sampled_from([1e-4, 1.0, 1e4]), st.sampled_from([0.25, 0.5, 0.8]))
def test_the_norm_goes_to_the_quantile(first, quantile):
    norms = torch.from_numpy(np.random.default_rng(0).lognormal(0, 1, (1, 400))).float()
    noise = noise_of(adaptive(0.5, first, quantile=quantile), divisor=400.0)
    for step in range(300):
        noise.add(step)
        noise.scales(norms, range(1))
        noise.finish()
    within = float((norms <= noise.clip_norms).double().mean())
    assert within == pytest.approx(quantile, abs=0.06)


def case():
    generator = torch.Generator().manual_seed(1)
    x, y = torch.rand(60, 6, generator=generator), torch.arange(60) % 3
    return build("mlp", (6,), 3, hidden=[8]), x, y, torch.arange(60).expand(3, -1), [1, 2, 3]


def test_with_a_rate_of_nearly_nothing_the_first_step_is_that_of_plain_clipping():
    how = TrainingSettings("sgd", 0.5, epochs=2, batch_size=20)
    still, _ = train(*case(), how, adaptive(1.0, 0.5, rate=1e-12, share=1e-9))
    plain, _ = train(*case(), how, Mechanism("poisson", clip_norm=0.5, noise_multiplier=1.0))
    # Every step draws one number more, so only the first step's noise is the same.
    assert not torch.equal(still.parameters["0.weight"], plain.parameters["0.weight"])
    one = TrainingSettings("sgd", 0.5, epochs=1, batch_size=60)
    still, _ = train(*case(), one, adaptive(1.0, 0.5, rate=1e-12, share=1e-9))
    plain, _ = train(*case(), one, Mechanism("poisson", clip_norm=0.5, noise_multiplier=1.0))
    for name, value in plain.parameters.items():
        torch.testing.assert_close(still.parameters[name], value, rtol=1e-5, atol=1e-6)


def test_a_model_does_not_depend_on_the_others_and_goes_on_from_a_checkpoint(tmp_path):
    layers, x, y, subsets, seeds = case()
    how = TrainingSettings("sgd", 0.5, epochs=4, batch_size=20)
    whole, _ = train(layers, x, y, subsets, seeds, how, adaptive())
    alone, _ = train(layers, x, y, subsets[:1], seeds[1:2], how, adaptive())
    for name, value in alone.parameters.items():
        torch.testing.assert_close(value[0], whole.parameters[name][1], rtol=1e-5, atol=1e-7)
    resumed, _ = cut_and_resumed(tmp_path, 2, layers, x, y, subsets, seeds, how, adaptive())
    for name, value in whole.parameters.items():
        assert torch.equal(resumed.parameters[name], value)


def test_each_layer_is_clipped_to_its_share():
    layers, x, y, subsets, seeds = case()
    mechanism = Mechanism("shuffle", bound="per_layer", clip_norm=0.01, noise_multiplier=0.0)
    with torch.inference_mode():
        training = start(layers, x, y, subsets[:1], seeds[:1], TrainingSettings(epochs=1, batch_size=60), mechanism)
        training.fill_gradient([[torch.tensor([5])]], 0)
        (model_batch,), divisor = training.program.model_batches, training.program.divisor
        parameters, ours = (
            model_batch.parameters,
            {name: view[0] * divisor for name, view in model_batch.gradient.items()},
        )
    # Autograd's gradient of this record, layer by layer.
    leaves = {name: value[0].clone().requires_grad_() for name, value in parameters.items()}
    hidden = torch.relu(x[5] @ leaves["0.weight"].T + leaves["0.bias"])
    loss = torch.nn.functional.cross_entropy((hidden @ leaves["2.weight"].T + leaves["2.bias"])[None], y[5:6])
    by_name = dict(zip(leaves, torch.autograd.grad(loss, list(leaves.values())), strict=True))
    for layer in ("0", "2"):
        names = [f"{layer}.weight", f"{layer}.bias"]
        whole = torch.cat([by_name[name].flatten() for name in names])
        expected = whole / whole.norm() * min(float(whole.norm()), 0.01 / np.sqrt(2))
        found = torch.cat([ours[name].clone().flatten() for name in names])
        torch.testing.assert_close(found, expected, rtol=1e-3, atol=1e-6)
