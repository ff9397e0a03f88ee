"""von Mises–Fisher rows. Each z-score and p-value below raises a false alarm with probability under 1e-5."""

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats
from scipy.special import ive

from dp_leakage.privacy import noise
from dp_leakage.privacy.noise import (
    Streams,
    _accepted_at_once,
    sample_vmf,
    sample_vmf_of_streams,
    sphere_coordinate,
    sphere_coordinates,
    vmf_cosines,
)

DIMENSIONS = [2, 3, 10, 100, 10_000, 1_000_000]
CONCENTRATIONS = [0.0, 0.5, 25.0, 250.0, 1e4, 1e6]
Z, P = 4.5, 1e-5


def generator(seed=0):
    return torch.Generator().manual_seed(seed)


def cosines(dimension, kappa, count, stream):
    """Of one stream alone."""
    kappas = torch.as_tensor(kappa, dtype=torch.float64).expand(count)
    return vmf_cosines(dimension, kappas, Streams([stream], [count], torch.device("cpu")))


def accepted_at_once(dimension, kappa, count, stream):
    """The same as a GPU draws them."""
    m, streams = dimension - 1.0, Streams([stream], [count], torch.device("cpu"))
    x0 = torch.full((count,), 2 * kappa / (m + (m * m + 4 * kappa * kappa) ** 0.5), dtype=torch.float64)
    first = sphere_coordinate(dimension, *streams.uniforms(2))
    s, c = _accepted_at_once(dimension, x0, first, streams.uniforms(1)[0], streams)
    torch.testing.assert_close(s.square() + c.square(), torch.ones(count, dtype=torch.float64))
    return (x0 + s) / (1 + x0 * s)


def coordinate(dimension, shape, stream):
    return sphere_coordinate(dimension, *(1 - torch.rand((2, *shape), generator=stream, dtype=torch.float64)))


def unit_rows(n, dimension, dtype=torch.float64, seed=1):
    rows = torch.randn(n, dimension, dtype=dtype, generator=generator(seed))
    return rows / rows.norm(dim=1, keepdim=True)


def mean_cosine(dimension, kappa):
    """The Bessel ratio by its continued fraction; scipy's ive underflows at large d and small κ."""
    ratio = 0.0
    for k in range(int(10 * np.sqrt(kappa)) + 200, -1, -1):
        ratio = kappa / (dimension + 2 * k + kappa * ratio)
    return ratio


def z_score(draws, mean):
    return abs(draws.mean() - mean) / (draws.std() / np.sqrt(len(draws)))


@pytest.mark.parametrize("dimension", DIMENSIONS)
@pytest.mark.parametrize("kappa", CONCENTRATIONS)
def test_cosines_have_the_bessel_ratio_as_mean_and_the_right_second_moment(dimension, kappa):
    cosine, sine = (x.numpy() for x in cosines(dimension, kappa, 60_000, generator()))
    np.testing.assert_allclose(cosine**2 + sine**2, 1, atol=1e-12)
    assert np.all(sine >= 0)
    mean = mean_cosine(dimension, kappa)
    assert z_score(cosine, mean) < Z
    spread = (dimension - 1) * mean / kappa if kappa else (dimension - 1) / dimension
    assert z_score(sine**2, spread) < Z


def test_the_continued_fraction_agrees_with_scipys_bessel_functions():
    for dimension, kappa in [(2, 0.5), (10, 25.0), (100, 250.0)]:
        assert mean_cosine(dimension, kappa) == pytest.approx(ive(dimension / 2, kappa) / ive(dimension / 2 - 1, kappa))


@pytest.mark.parametrize(("dimension", "kappa"), [(2, 0.7), (3, 5.0), (10, 25.0), (80, 250.0)])
def test_rows_are_distributed_as_scipys(dimension, kappa):
    mean = unit_rows(1, dimension)[0]
    ours = sample_vmf(mean.expand(8_000, -1), kappa, generator(2)).numpy()
    theirs = stats.vonmises_fisher(mean.numpy(), kappa).rvs(8_000, random_state=3)
    directions = [mean.numpy(), *np.random.default_rng(0).normal(size=(3, dimension))]
    for direction in directions:
        assert stats.ks_2samp(ours @ direction, theirs @ direction).pvalue > P


@pytest.mark.parametrize("dimension", [2, 3, 63, 64, 1_000])
@pytest.mark.parametrize("kappa", [0.0, 3.0, 1e6])
def test_float32_rows_are_of_unit_length_and_as_far_from_their_own_means_as_they_should_be(dimension, kappa):
    means = unit_rows(3_000, dimension, torch.float32)
    draws = sample_vmf(means, kappa, generator(4))
    assert draws.dtype == torch.float32
    assert draws.shape == means.shape
    assert (draws.double().norm(dim=1) - 1).abs().max() < 5e-6
    distance = (draws.double() - means.double()).square().sum(1).numpy() / 2  # 1 − cosine, without canceling
    assert z_score(distance, 1 - mean_cosine(dimension, kappa)) < Z + 5e-7 / (distance.std() / np.sqrt(3_000))


def test_the_tangent_is_uniform_and_independent_of_the_cosine():
    mean = unit_rows(1, 4)[0]
    draws = sample_vmf(mean.expand(20_000, -1), 2.0, generator(5))
    cosine = draws @ mean
    tangent = draws - cosine[:, None] * mean
    tangent /= tangent.norm(dim=1, keepdim=True)
    basis = torch.linalg.svd(mean[None])[2][1:]
    coordinate = (tangent @ basis[0]).numpy()
    assert stats.kstest(coordinate, stats.uniform(-1, 2).cdf).pvalue > P  # Archimedes: uniform on the sphere of R³
    assert abs(stats.spearmanr(coordinate, cosine.numpy()).statistic) < Z / np.sqrt(20_000)


def test_each_row_may_have_its_own_concentration():
    kappa = torch.tensor([0.0, 10.0, 1e4], dtype=torch.float64).repeat_interleave(4_000)
    means = unit_rows(1, 20)[0].expand(12_000, -1)
    cosine = (sample_vmf(means, kappa, generator(6)) @ means[0]).view(3, -1).numpy()
    for row, value in zip(cosine, (0.0, 10.0, 1e4), strict=True):
        assert z_score(row, mean_cosine(20, value)) < Z


def test_rows_are_independent_of_each_other():
    means = unit_rows(1, 30)[0].expand(2, -1)
    pairs = torch.stack([sample_vmf(means, 5.0, generator(seed)) for seed in range(2_000)])
    products = (pairs[:, 0] * pairs[:, 1]).sum(1).numpy()
    assert z_score(products, mean_cosine(30, 5.0) ** 2) < Z


def test_a_single_vector_is_a_single_row():
    mean = unit_rows(1, 100, torch.float32)
    one = sample_vmf(mean[0], 7.0, generator(7))
    assert one.shape == (100,)
    torch.testing.assert_close(one, sample_vmf(mean, 7.0, generator(7))[0])


# Torch's generator looks at the low 32 bits of a seed: none of these draws the means' own stream, which begins at 0.
@given(st.integers(2, 300), st.floats(-3, 8).map(lambda x: 10**x), st.integers(1, 2**32 - 1))
@settings(max_examples=50, deadline=None)
def test_equal_generators_give_equal_finite_rows(dimension, kappa, seed):
    means = unit_rows(5, dimension, torch.float32, seed=0)
    first, again = (sample_vmf(means, kappa, generator(seed)) for _ in range(2))
    assert torch.equal(first, again)
    assert first.isfinite().all()
    assert (first.double().norm(dim=1) - 1).abs().max() < 5e-6


@pytest.mark.parametrize("dimension", [2, 64, 1_000])
def test_a_gaussian_along_the_mean_itself_gives_a_finite_draw(dimension):
    means = unit_rows(5, dimension, torch.float32)
    assert sample_vmf(means, 10.0, generator(1)).isfinite().all()  # drawn from the very stream that made the means


@pytest.mark.parametrize("dimension", [2, 3, 5, 1_000, 10**7])
def test_a_sphere_coordinate_is_beta_distributed(dimension):
    s, c = (x.numpy() for x in coordinate(dimension, (20_000,), generator(8)))
    np.testing.assert_allclose(s**2 + c**2, 1, atol=1e-12)
    half = (dimension - 1) / 2
    assert stats.kstest((1 + s) / 2, stats.beta(half, half).cdf).pvalue > P


@pytest.mark.parametrize("dimension", [2, 31, 681, 7_000])
def test_one_row_of_each_stream_is_what_the_stream_draws_alone_to_the_last_bit(dimension):
    means, kappas = unit_rows(5, dimension, torch.float32), torch.tensor([0.0, 1.0, 50.0, 300.0, 1e6]).double()
    together = sample_vmf_of_streams(means, kappas, [generator(seed) for seed in range(5)])
    for seed, row in enumerate(together):
        own = slice(seed, seed + 1)
        assert torch.equal(sample_vmf_of_streams(means[own], kappas[own], [generator(seed)])[0], row)
        torch.testing.assert_close(sample_vmf(means[seed], kappas[own], generator(seed)), row, rtol=1e-4, atol=1e-6)


def test_coordinates_of_several_streams_and_shapes_are_those_of_a_call_each_to_the_last_bit():
    shapes = [[(1, 20), (1, 10), (1, 5), (1, 3)], [], [(64, 37), (64, 19), (64, 1)], [(1, 1)]]
    dimensions, streams, own = [33, 1, 2, 1_000], *([generator(seed) for seed in range(4)] for _ in range(2))
    for found, *alone in zip(sphere_coordinates(dimensions, shapes, streams), dimensions, shapes, own, strict=True):
        dimension, of_stream, stream = alone
        assert len(found) == len(of_stream)
        assert all(
            torch.equal(s, coordinate(dimension, shape, stream)[0]) for s, shape in zip(found, of_stream, strict=True)
        )


@pytest.mark.parametrize(
    ("dimension", "kappa"), [(2, 0.0), (2, 50.0), (3, 1.0), (76, 250.0), (3_073, 5.0), (3_073, 1e5)]
)
def test_proposals_made_at_once_have_the_law_of_those_made_one_after_the_other(dimension, kappa):
    """Two-sample tests at 1e-5, six of them."""
    at_once = accepted_at_once(dimension, kappa, 20_000, generator(8))
    in_turn, _ = cosines(dimension, kappa, 20_000, generator(9))
    assert stats.ks_2samp(at_once.numpy(), in_turn.numpy()).pvalue > 1e-5


def test_a_proposal_made_at_once_is_the_first_that_is_accepted(monkeypatch):
    monkeypatch.setattr(noise, "PROPOSALS", 4)
    rejected = torch.tensor([[1, 1, 0, 0, 1], [1, 0, 0, 1, 1], [0, 0, 1, 1, 1], [0, 1, 0, 1, 0]]).bool()
    monkeypatch.setattr(noise, "_rejects", lambda *_: rejected)
    streams = Streams([generator(1)], [5], torch.device("cpu"))
    first = torch.full((5,), 7.0).double(), torch.full((5,), 8.0).double()
    s, c = _accepted_at_once(9, torch.zeros(5), first, torch.zeros(5).double(), streams)
    radius, angle, _ = Streams([generator(1)], [5], torch.device("cpu")).uniforms(9).unflatten(0, (3, -1))
    again, across = sphere_coordinate(9, radius, angle)
    assert s.tolist() == [again[1, 0], again[0, 1], 7.0, 7.0, again[2, 4]]
    assert c.tolist() == [across[1, 0], across[0, 1], 8.0, 8.0, across[2, 4]]


@pytest.mark.parametrize("dimension", [2, 31, 7_000])
def test_cosines_of_several_streams_are_those_of_each_alone_to_the_last_bit(dimension):
    counts = [1, 40, 0, 2_560, 7]
    kappas = [torch.rand(count, generator=generator(count)).double() * 500 for count in counts]
    streams = Streams([generator(seed) for seed in range(5)], counts, torch.device("cpu"))
    together = vmf_cosines(dimension, torch.cat(kappas), streams)
    for seed, (count, kappa) in enumerate(zip(counts, kappas, strict=True)):
        alone = generator(seed)
        for flat, own in zip(together, cosines(dimension, kappa, count, alone), strict=True):
            assert torch.equal(flat.split(counts)[seed], own)
        assert torch.equal(alone.get_state(), streams.generators[seed].get_state())


@pytest.mark.slow
@pytest.mark.parametrize("dimension", DIMENSIONS)
@pytest.mark.parametrize("kappa", [0.5, 25.0, 1e4, 1e6])
def test_cosines_over_millions_of_draws(dimension, kappa):
    cosine, sine = (x.numpy() for x in cosines(dimension, kappa, 4_000_000, generator(9)))
    mean = mean_cosine(dimension, kappa)
    assert z_score(cosine, mean) < Z
    assert z_score(sine**2, (dimension - 1) * mean / kappa) < Z
