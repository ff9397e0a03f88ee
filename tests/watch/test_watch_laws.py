"""The tests of a watch on noise and batches that are drawn here: false alarms, and what they find. Fixed seeds."""

import numpy as np
import pytest
import torch
from scipy import stats

from dp_leakage.opacus.clipping import clipped_sum, explained
from dp_leakage.opacus.laws import ALPHA, dispersion, least_square, repeated_batches, std_interval
from dp_leakage.opacus.noise import NoiseSums, judge_noise
from dp_leakage.opacus.spent import Steps, curve_of, epsilon_of, grouped

SIZES = (300, 40, 2)


def judged(draw, steps=30, std=0.5, scale=1.0):
    """Judge noise that ``draw(step, size, generator)`` makes, standardized, on sums of 20 records."""
    rng = np.random.default_rng(5)
    sums = NoiseSums(SIZES)
    for step in range(steps):
        totals = [torch.tensor(rng.normal(0, 1, size), dtype=torch.float32) for size in SIZES]
        noise = [torch.tensor(std * draw(step, size, rng), dtype=torch.float32) for size in SIZES]
        applied = [scale * (s + u) / 8 for s, u in zip(totals, noise, strict=True)]
        sums.add(totals, applied, 8, std, step < 3)
    return judge_noise(sums.table([f"t{i}" for i in range(len(SIZES))], np.full(steps, std)))


def gaussian(step, size, rng):
    return rng.normal(size=size)


def test_gaussian_noise_passes_and_its_interval_holds_one():
    seen, found = judged(gaussian)
    assert found == []
    assert seen.interval[0] < 1 < seen.interval[1]
    assert seen.numbers == 30 * sum(SIZES)
    assert (seen.factors == 1).all()


@pytest.mark.parametrize(
    ("draw", "code"),
    [
        (lambda step, size, rng: 0.7 * rng.normal(size=size), "noise"),
        (lambda step, size, rng: rng.normal(size=size) * (step % 5 != 0), "noise"),
        (lambda step, size, rng: np.concatenate([[0.0], rng.normal(size=size - 1)]), "coordinates"),
        (lambda step, size, rng: rng.laplace(size=size) / 2**0.5, "law"),
        (lambda step, size, rng: np.random.default_rng([step // 2, size]).normal(size=size), "repeat"),
        (lambda step, size, rng: np.repeat(rng.normal(size=size // 4 + 1), 4)[:size], "correlation"),
    ],
)
def test_noise_that_is_not_is_found(draw, code):
    seen, found = judged(draw)
    assert code in [finding.code for finding in found]
    if code in ("noise", "coordinates", "repeat"):
        assert seen.factors.min() < 0.8


def test_a_noisy_sum_that_is_scaled_is_as_private():
    """Post-processing: half of (sum + noise) has half of the noise and half of the sum."""
    seen, found = judged(gaussian, scale=0.5)
    assert [finding.code for finding in found] == ["scaled"]
    assert seen.ratio == pytest.approx(1, abs=0.02)


def test_the_interval_of_a_standard_deviation_holds_it_as_often_as_it_says():
    rng = np.random.default_rng(0)
    squares = (rng.normal(size=(4000, 20)) ** 2).sum(1)
    low, high = std_interval(squares, np.array(20), 0.1)
    inside = ((low < 1) & (high > 1)).mean()
    assert inside == pytest.approx(0.9, abs=0.02)  # four standard errors


def test_a_least_square_is_the_quantile_that_scipy_gives():
    assert least_square(ALPHA, 12, np.array([1000]))[0] == pytest.approx(stats.chi2.ppf(1e-9, 12))


def test_poisson_batches_raise_no_alarm_and_others_do():
    """2,000 trainings: at a level of 1 % about 20 alarms, at most 40 (four standard errors)."""
    rng = np.random.default_rng(1)
    alarms = sum(min(dispersion(rng.binomial(500, 0.05, 40), 500, 0.05)) < 0.005 for _ in range(2000))
    assert alarms <= 40
    assert dispersion(np.full(40, 25), 500, 0.05)[0] < ALPHA  # batches of one size
    assert dispersion(rng.binomial(500, 0.05, 400) * 2, 500, 0.05)[1] < ALPHA


def test_equal_batches_are_no_surprise_where_they_are_small():
    assert repeated_batches(1, 100, 1000, 0.05) < ALPHA
    assert repeated_batches(3, 100, 10, 0.01) == 1.0
    assert repeated_batches(0, 100, 1000, 0.05) == 1.0


def test_records_are_clipped_as_by_hand():
    samples = [torch.tensor([[3.0, 4.0], [0.3, 0.4]]), torch.tensor([[0.0], [1.0]])]
    whole = clipped_sum(samples, [1.0, 1.0], flat=True)
    second = 1 / 1.25**0.5
    assert torch.allclose(whole[0], torch.tensor([0.6 + 0.3 * second, 0.8 + 0.4 * second]), atol=1e-4)
    assert torch.allclose(whole[1], torch.tensor([second]), atol=1e-4)
    apart = clipped_sum(samples, [1.0, 0.5], flat=False)
    assert torch.allclose(apart[1], torch.tensor([0.5]), atol=1e-4)


def test_a_sum_of_other_weights_is_explained():
    rng = torch.Generator().manual_seed(0)
    samples = [torch.randn(6, 40, generator=rng)]
    told = explained(samples, [samples[0].sum(0)], 1.0, 1.0)
    assert (told.code, told.level) == ("clipping", "refuted")
    assert "Records are not clipped" in told.sentence
    whole = samples[0].sum(0)
    told = explained(samples, [whole / whole.norm()], 1.0, 1.0)
    assert "The sum of the batch is clipped" in told.sentence
    assert explained(samples, [torch.randn(40, generator=rng)], 1.0, 1.0).level == "cannot tell"


def test_the_epsilon_of_steps_is_that_of_dp_accounting():
    from dp_accounting import GaussianDpEvent, PoissonSampledDpEvent, SelfComposedDpEvent
    from dp_accounting.pld import PLDAccountant

    for steps in ([Steps(1.0, 0.05, 60)], [Steps(1.0, 0.05, 30), Steps(1.5, 0.05, 30)]):
        accountant = PLDAccountant()
        for sigma, rate, count in steps:
            accountant.compose(SelfComposedDpEvent(PoissonSampledDpEvent(rate, GaussianDpEvent(sigma)), count))
        expected = accountant.get_epsilon(1e-5)
        assert epsilon_of(steps, 1e-5, "add_remove") == pytest.approx(expected, rel=0.01)
        curve = curve_of(steps, "add_remove")
        assert curve.epsilon(1e-5) == pytest.approx(expected, abs=0.1)


def test_groups_of_steps_never_have_more_noise():
    sigmas = np.linspace(1, 2, 200)
    groups = grouped([(float(sigma), 0.1) for sigma in sigmas])
    assert len(groups) <= 32
    assert sum(group.number for group in groups) == 200
    lower = np.sort(np.repeat([group.noise_multiplier for group in groups], [group.number for group in groups]))
    assert (lower <= sigmas + 1e-9).all()
