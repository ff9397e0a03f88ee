"""The law of the sum against sums of rows. Each z-score and p-value has a false-alarm rate below 1e-5."""

import numpy as np
import pytest
import torch
from scipy import stats

from dp_leakage.privacy.noise import sample_vmf
from dp_leakage.privacy.vmf_sum import combinations, draw_vmf_sums

P, Z = 1e-5, 4.5


def generator(seed=0):
    return torch.Generator().manual_seed(seed)


def unit_rows(n, dimension, seed=1, repeated=False, alike=0.0):
    rows = torch.randn(n, dimension, dtype=torch.float64, generator=generator(seed))
    rows = alike * rows[:1] + rows
    if repeated:
        rows[1], rows[3] = rows[0], -rows[2]
    return rows / rows.norm(dim=1, keepdim=True)


def fused(means, kappa, stream, signs=None, count=1):
    """Sums as the trainer forms them, (m, d): combinations of the means and one normal vector each."""
    kappa = torch.as_tensor(kappa, dtype=torch.float64).expand(count if signs is None else len(signs), len(means))
    (drawn,) = draw_vmf_sums([means @ means.T], means.shape[1], [kappa], signs if signs is None else [signs], [stream])
    z = torch.randn(len(kappa), means.shape[1], dtype=torch.float64, generator=stream)
    coefficients, factor = combinations(drawn, z @ means.T, z.square().sum(1))
    return coefficients @ means + factor[:, None] * z


def assert_alike(naive, ours, directions):
    """Two samples of vectors, (n, d), have the same law along each direction, by length and in a plane."""
    for direction in directions:
        assert stats.ks_2samp(naive @ direction, ours @ direction).pvalue > P
    lengths = [np.linalg.norm(x, axis=1) for x in (naive, ours)]
    if np.ptp(lengths[0]) > 1e-4:  # one row has length one, whatever the draw
        assert stats.ks_2samp(*lengths).pvalue > P
    squares = [np.square(x @ directions[:2].T).sum(1) for x in (naive, ours)]
    assert stats.ks_2samp(*squares).pvalue > P


CASES = {
    "batch_well_below_dimension": (unit_rows(12, 60), 20.0),
    "little_noise": (unit_rows(12, 60), 2_000.0),
    "hardly_any_signal": (unit_rows(12, 60), 0.1),
    "gradients_alike": (unit_rows(10, 40, alike=5.0), 30.0),
    "equal_and_opposite_gradients": (unit_rows(12, 60, repeated=True), 20.0),
    "one_dimension_to_spare": (unit_rows(7, 8), 10.0),
    "as_many_as_dimensions": (unit_rows(8, 8), 10.0),
    "more_than_dimensions": (unit_rows(20, 5), 3.0),
    "one_example": (unit_rows(1, 30), 10.0),
    "the_plane": (unit_rows(5, 2), 2.0),
}


@pytest.mark.parametrize("name", CASES)
def test_the_sum_is_distributed_as_the_sum_of_rows(name):
    means, kappa = CASES[name]
    stream, n = generator(12), 60_000
    naive = sample_vmf(means.repeat(n, 1), kappa, stream).view(n, *means.shape).sum(1).numpy()
    ours = fused(means, kappa, stream, count=n).numpy()
    assert_alike(naive, ours, np.concatenate((plain_directions(means), means[:3].numpy())))
    error = np.cov(naive.T) - np.cov(ours.T)
    scale = np.sqrt(np.outer(naive.var(0), naive.var(0)) * 4 / n)
    assert np.all(np.abs(error) < 5.5 * scale)


def plain_directions(means):
    return np.random.default_rng(0).normal(size=(3, means.shape[1]))


@pytest.mark.parametrize("dimension", [6, 80])
def test_sums_around_the_same_means_differ_in_signs_and_concentrations(dimension):
    means, m, n = unit_rows(10, dimension, alike=2.0), 3, 2_500
    stream = generator(13)
    signs = torch.randint(2, (m, len(means)), generator=stream).double() * 2 - 1
    kappa = torch.rand(m, len(means), dtype=torch.float64, generator=stream) * 40
    kappa[:, :2] = 0  # as for a dead ReLU
    naive = [sample_vmf((signs[:, :, None] * means).view(-1, dimension), kappa.view(-1), stream) for _ in range(n)]
    naive = torch.stack([draw.view(m, -1, dimension).sum(1) for draw in naive]).numpy()
    ours = torch.stack([fused(means, kappa, stream, signs) for _ in range(n)]).numpy()
    directions = np.concatenate((plain_directions(means), means[:4].numpy()))
    for row in range(m):
        assert_alike(naive[:, row], ours[:, row], directions)
    other = (naive[:, 0] * naive[:, 1]).sum(1), (ours[:, 0] * ours[:, 1]).sum(1)
    assert stats.ks_2samp(*other).pvalue > P  # the sums are independent of each other


def test_the_normal_vector_directs_only_what_lies_outside_the_span():
    means = unit_rows(6, 50)
    kappa = torch.full((1, 6), 30.0).double()
    (drawn,) = draw_vmf_sums([means @ means.T], 50, [kappa], generators=[generator(3)])
    for seed in range(3):
        z = torch.randn(1, 50, dtype=torch.float64, generator=generator(seed))
        coefficients, factor = combinations(drawn, z @ means.T, z.square().sum(1))
        outside = (coefficients - drawn.inside) @ means + factor[:, None] * z
        assert (outside @ means.T).abs().max() < 1e-10
        assert float(outside.norm()) == pytest.approx(float(drawn.outside))


def test_without_noise_the_sum_is_the_sum_of_the_means():
    means = unit_rows(9, 40)
    torch.testing.assert_close(fused(means, 1e12, generator())[0], means.sum(0), atol=1e-4, rtol=0)


@pytest.mark.parametrize("repeated", [False, True])
def test_a_large_batch_of_a_real_size_has_the_right_mean_and_length(repeated):
    size, dimension, kappa = 200, 61_706, 3_000.0
    rows = torch.randn(size, 300, dtype=torch.float64, generator=generator(4))
    rows = rows + rows[0]
    if repeated:
        rows[5] = rows[6]
    means = rows / rows.norm(dim=1, keepdim=True)  # in 300 of the dimensions
    gram = means @ means.T
    stream = generator(5)
    (drawn,) = draw_vmf_sums([gram], dimension, [torch.full((60, size), kappa).double()], generators=[stream])
    signal = 0.0
    for k in range(1_000, -1, -1):
        signal = kappa / (dimension + 2 * k + kappa * signal)  # E[cos], the Bessel ratio
    inside = drawn.inside @ means
    along = (inside @ means.sum(0)).numpy()
    squared = (inside.square().sum(1) + drawn.outside**2).numpy()
    total = float(gram.sum())
    for values, mean in ((along, signal * total), (squared, size + signal**2 * (total - size))):
        assert abs(values.mean() - mean) < Z * values.std() / np.sqrt(len(values))


def test_equal_generators_give_equal_sums():
    means, kappa = CASES["batch_well_below_dimension"]
    assert torch.equal(fused(means, kappa, generator(6)), fused(means, kappa, generator(6)))


def test_models_side_by_side_draw_what_each_draws_alone_to_the_last_bit():
    """Also where the Gram matrix is singular, and where one dimension or none is left outside the span."""
    cases = [unit_rows(12, 9), unit_rows(8, 9), unit_rows(1, 9), unit_rows(7, 9, repeated=True), unit_rows(3, 9)]
    grams, kappas = [own @ own.T for own in cases], [torch.full((4, len(own)), 9.0).double() for own in cases]
    together = draw_vmf_sums(grams, 9, kappas, generators=[generator(seed) for seed in range(5)])
    for seed, (gram, kappa, found) in enumerate(zip(grams, kappas, together, strict=True)):
        (alone,) = draw_vmf_sums([gram], 9, [kappa], generators=[generator(seed)])
        assert all(torch.equal(one, other) for one, other in zip(found, alone, strict=True))
