"""The law of the sum against sums of rows. Each z-score and p-value has a false-alarm rate below 1e-5."""

import numpy as np
import pytest
import torch
from scipy import stats

from dp_leakage.privacy.noise import sample_vmf
from dp_leakage.privacy.vmf_sum import combination, draw_vmf_sum

P, Z = 1e-5, 4.5


def generator(seed=0):
    return torch.Generator().manual_seed(seed)


def unit_rows(n, dimension, seed=1, repeated=False, alike=0.0):
    rows = torch.randn(n, dimension, dtype=torch.float64, generator=generator(seed))
    rows = alike * rows[:1] + rows
    if repeated:
        rows[1], rows[3] = rows[0], -rows[2]
    return rows / rows.norm(dim=1, keepdim=True)


def fused(means, kappa, stream):
    """The sum as the trainer forms it: a combination of the means and one normal vector."""
    drawn = draw_vmf_sum(means @ means.T, means.shape[1], kappa, stream)
    z = torch.randn(means.shape[1], dtype=torch.float64, generator=stream)
    coefficients, factor = combination(drawn, means @ z, float(z @ z))
    return means.T @ coefficients + factor * z


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
    stream, n = generator(11), 2_500
    naive = torch.stack([sample_vmf(means, kappa, stream).sum(0) for _ in range(n)]).numpy()
    ours = torch.stack([fused(means, kappa, stream) for _ in range(n)]).numpy()
    directions = np.concatenate((np.random.default_rng(0).normal(size=(3, means.shape[1])), means[:3].numpy()))
    for direction in directions:
        assert stats.ks_2samp(naive @ direction, ours @ direction).pvalue > P
    lengths = [np.linalg.norm(x, axis=1) for x in (naive, ours)]
    if means.shape[0] > 1:  # one row has length one, whatever the draw
        assert stats.ks_2samp(*lengths).pvalue > P
    squares = [np.square(x @ directions[:2].T).sum(1) for x in (naive, ours)]
    assert stats.ks_2samp(*squares).pvalue > P


@pytest.mark.slow
@pytest.mark.parametrize("name", CASES)
def test_the_sum_over_many_draws(name):
    means, kappa = CASES[name]
    stream, n = generator(12), 60_000
    naive = sample_vmf(means.repeat(n, 1), kappa, stream).view(n, *means.shape).sum(1).numpy()
    ours = torch.stack([fused(means, kappa, stream) for _ in range(n)]).numpy()
    for direction in np.concatenate((np.random.default_rng(1).normal(size=(3, means.shape[1])), means[:3].numpy())):
        assert stats.ks_2samp(naive @ direction, ours @ direction).pvalue > P
    error = np.cov(naive.T) - np.cov(ours.T)
    scale = np.sqrt(np.outer(naive.var(0), naive.var(0)) * 4 / n)
    assert np.all(np.abs(error) < 5.5 * scale)


def test_the_normal_vector_directs_only_what_lies_outside_the_span():
    means = unit_rows(6, 50)
    drawn = draw_vmf_sum(means @ means.T, 50, 30.0, generator(3))
    for seed in range(3):
        z = torch.randn(50, dtype=torch.float64, generator=generator(seed))
        coefficients, factor = combination(drawn, means @ z, float(z @ z))
        total = means.T @ coefficients + factor * z
        outside = total - means.T @ drawn.inside
        assert (means @ outside).abs().max() < 1e-10
        assert float(outside.norm()) == pytest.approx(drawn.outside)


def test_without_noise_the_sum_is_the_sum_of_the_means():
    means = unit_rows(9, 40)
    torch.testing.assert_close(fused(means, 1e12, generator()), means.sum(0), atol=1e-4, rtol=0)


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
    draws = [draw_vmf_sum(gram, dimension, kappa, stream) for _ in range(60)]
    signal = 0.0
    for k in range(1_000, -1, -1):
        signal = kappa / (dimension + 2 * k + kappa * signal)  # E[cos], the Bessel ratio
    along = np.array([float(means.sum(0) @ (means.T @ draw.inside)) for draw in draws])
    squared = np.array([float((means.T @ draw.inside).square().sum()) + draw.outside**2 for draw in draws])
    total = float(gram.sum())
    for values, mean in ((along, signal * total), (squared, size + signal**2 * (total - size))):
        assert abs(values.mean() - mean) < Z * values.std() / np.sqrt(len(values))


def test_equal_generators_give_equal_sums():
    means, kappa = CASES["batch_well_below_dimension"]
    assert torch.equal(fused(means, kappa, generator(6)), fused(means, kappa, generator(6)))
