"""von Mises–Fisher accounting against numerical integration, Monte Carlo and other formulas."""

from itertools import product

import mpmath
import numpy as np
import pytest
import torch
from asked import epsilon_spent
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.integrate import quad
from scipy.special import ive

from dp_leakage.privacy.accounting.sampling import any_unit, poisson_unit, whole_orders, wor_unit
from dp_leakage.privacy.accounting.vmf import bessel_ratio, vmf_divergence
from dp_leakage.privacy.noise import Streams, vmf_cosines

TRAINING = {"delta": 1e-5, "epochs": 20, "batch_size": 50, "dataset_size": 5000}


@pytest.mark.parametrize("dimension", [2, 3, 10, 401, 61_706, 1_000_000])
@pytest.mark.parametrize("t", [1e-6, 0.5, 10.0, 2e3, 1e5, 1e7, 2e9])
def test_the_bessel_ratio_is_the_continued_fraction_and_never_below(dimension, t):
    exact = 0.0
    for k in range(int(10 * np.sqrt(t)) + 200, -1, -1):  # what is cut off shrinks as exp(−steps²/t)
        exact = t / (dimension + 2 * k + t * exact)
    ours = bessel_ratio(dimension, np.array([t]))[0]
    assert ours == pytest.approx(exact, rel=1e-6)
    assert ours >= exact * (1 - 1e-13)


@pytest.mark.parametrize(("dimension", "t"), [(2, 3.0), (10, 700.0), (401, 50.0)])
def test_the_bessel_ratio_is_scipys_where_that_does_not_underflow(dimension, t):
    exact = ive(dimension / 2, t) / ive(dimension / 2 - 1, t)
    assert bessel_ratio(dimension, np.array([t]))[0] == pytest.approx(exact, rel=1e-6)


@pytest.mark.parametrize(
    ("dimension", "kappa", "order"), list(product([2, 3, 5, 12], [0.1, 2.0, 40.0], [1.1, 2, 7.5, 60]))
)
def test_the_closed_form_divergence_is_the_integral(dimension, kappa, order):
    # With t the cosine to the first mean, p has density ∝ e^{κt} (1−t²)^{(d−3)/2} and p/q = e^{2κt}; t = sin a.
    def log_moment(rate):
        return (
            np.log(
                quad(
                    lambda a: np.exp(rate * (np.sin(a) - 1)) * np.cos(a) ** (dimension - 2),
                    -np.pi / 2,
                    np.pi / 2,
                    points=[np.pi / 2 - 3 / np.sqrt(1 + rate)],
                    epsabs=0,
                    epsrel=1e-11,
                    limit=300,
                )[0]
            )
            + rate
        )

    exact = (log_moment(kappa * (2 * order - 1)) - log_moment(kappa)) / (order - 1)
    assert vmf_divergence(dimension, kappa, np.array([order]))[0] == pytest.approx(exact, rel=1e-6)


@pytest.mark.parametrize(("dimension", "kappa"), [(1_000, 20.0), (10_000, 100.0), (1_000_000, 900.0)])
@pytest.mark.parametrize("order", [1.5, 2.0, 3.0])
def test_the_closed_form_divergence_is_the_monte_carlo_estimate_at_large_dimension(dimension, kappa, order):
    stream = Streams([torch.Generator().manual_seed(5)], [400_000], torch.device("cpu"))
    cosine, _ = vmf_cosines(dimension, torch.full((400_000,), kappa, dtype=torch.float64), stream)
    moments = np.exp(2 * kappa * (order - 1) * cosine.numpy())
    mean, error = moments.mean(), moments.std() / np.sqrt(len(moments))
    exact = np.exp((order - 1) * vmf_divergence(dimension, kappa, np.array([order]))[0])
    assert abs(mean - exact) < 4.5 * error  # false alarm below 1e-5 each


@given(st.integers(2, 10**6), st.floats(-6, 6).map(lambda x: 10**x))
@settings(max_examples=60, deadline=None)
def test_the_divergence_rises_with_order_and_concentration_up_to_the_pure_bound(dimension, kappa):
    orders = 1 + np.geomspace(0.01, 1e4, 60)
    divergence = vmf_divergence(dimension, kappa, orders)
    assert np.all(np.diff(divergence) >= -1e-12 * divergence[1:])
    assert np.all(divergence <= 2 * kappa * (1 + 1e-12))
    assert np.all(vmf_divergence(dimension, 1.01 * kappa, orders) >= divergence)


@given(
    st.sampled_from(["poisson", "wor", "shuffle"]),
    st.booleans(),
    st.lists(st.integers(2, 10**5), min_size=1, max_size=5),
    st.floats(-5, 6).map(lambda x: 10**x),
)
@settings(max_examples=80, deadline=None)
def test_vmf_rdp_is_at_most_vmf_pure(sampler, summed, blocks, kappa):
    terms = TRAINING | {"kappa": kappa, "blocks": blocks, "sampler": sampler, "summed": summed}
    assert epsilon_spent("vmf_rdp", **terms) <= epsilon_spent("vmf_pure", **terms)


@pytest.mark.parametrize("kappa", [1e3, 1e6])
def test_the_bound_without_replacement_does_not_lose_its_first_term_where_it_is_huge(kappa):
    orders = np.array([2.0, 3.0])
    divergence = vmf_divergence(10, kappa, orders)
    bound = wor_unit(0.1, orders, lambda o: vmf_divergence(10, kappa, o), 2 * kappa)
    assert np.all(bound >= divergence + 2 * np.log(0.1))


@pytest.mark.parametrize("sampler", ["poisson", "wor", "shuffle"])
@pytest.mark.parametrize("summed", [False, True])
def test_no_concentration_spends_nothing(sampler, summed):
    for name in ("vmf_pure", "vmf_rdp"):
        assert epsilon_spent(name, kappa=0, blocks=[30], sampler=sampler, summed=summed, **TRAINING) == 0


def test_blocks_add_up_and_do_not_grow_as_their_root():
    one = epsilon_spent("vmf_pure", kappa=0.1, blocks=[50], **TRAINING)
    assert epsilon_spent("vmf_pure", kappa=0.1, blocks=[50] * 9, **TRAINING) == pytest.approx(9 * one)


@pytest.mark.parametrize("sampler", ["poisson", "wor"])
def test_without_sampling_nothing_is_amplified(sampler):
    every = TRAINING | {"batch_size": 5000}
    for name in ("vmf_pure", "vmf_rdp"):
        sampled = epsilon_spent(name, kappa=0.3, blocks=[30], sampler=sampler, **every)
        assert sampled == pytest.approx(
            epsilon_spent(name, kappa=0.3, blocks=[30], sampler="shuffle", **every), rel=1e-3
        )


def _vmf3(kappa, rate):
    """Densities in t on the sphere of R³, where t is uniform: around the pole, the antipode, and a mixture."""
    t = (np.arange(200_000) + 0.5) / 100_000 - 1
    p, q = (np.exp(sign * kappa * t) * kappa / (2 * np.sinh(kappa)) for sign in (1, -1))
    return p, q, (1 - rate) * p + rate * q, 1 / 100_000


@pytest.mark.parametrize(("kappa", "rate"), list(product([0.2, 1.0, 4.0], [0.01, 0.3])))
def test_the_add_remove_expansion_is_the_mixtures_divergence_and_covers_the_reverse(kappa, rate):
    p, _, mixture, step = _vmf3(kappa, rate)
    orders = np.array([2.0, 3, 5, 8])
    ours = poisson_unit(rate, orders, lambda o: vmf_divergence(3, kappa, o))
    for order, value in zip(orders, ours, strict=True):
        forward = np.log((mixture**order * p ** (1 - order)).sum() * step) / (order - 1)
        reverse = np.log((p**order * mixture ** (1 - order)).sum() * step) / (order - 1)
        assert value == pytest.approx(forward, rel=1e-4)
        assert reverse <= value * (1 + 1e-9)


@pytest.mark.parametrize(("kappa", "rate"), list(product([0.05, 0.5, 3.0], [0.01, 0.3])))
def test_bounds_for_replacing_cover_the_worst_mixtures(kappa, rate):
    # Outside the batch: any third direction; the pole, the antipode and the equator's mixture are tried.
    p, q, _, step = _vmf3(kappa, rate)
    orders = np.array([2.0, 3, 5, 8])
    divergence = vmf_divergence(3, kappa, orders)
    convex = any_unit(rate, orders, divergence)
    wor = wor_unit(rate, orders, lambda o: vmf_divergence(3, kappa, o), 2 * kappa)
    for other in (p, q, (p + q) / 2):
        first, second = (1 - rate) * other + rate * p, (1 - rate) * other + rate * q
        for order, a, b in zip(orders, convex, wor, strict=True):
            exact = np.log((first**order * second ** (1 - order)).sum() * step) / (order - 1)
            assert exact <= a * (1 + 1e-9)
            assert exact <= b * (1 + 1e-9)


@pytest.mark.parametrize(("rate", "pure"), [(0.02, 0.1), (0.02, 3.0), (0.3, np.inf)])
def test_the_bound_without_replacement_is_the_printed_theorem(rate, pure):
    def divergence(orders):
        return np.minimum(0.02 * orders, pure)

    orders = np.array([2.0, 3, 6, 20])
    ours = wor_unit(rate, orders, divergence, pure)
    excess = mpmath.expm1(pure) if np.isfinite(pure) else mpmath.inf
    for order, value in zip(orders, ours, strict=True):
        d2 = float(divergence(np.array(2.0)))
        total = rate**2 * mpmath.binomial(order, 2) * min(4 * mpmath.expm1(d2), mpmath.exp(d2) * min(2, excess**2))
        for j in range(3, int(order) + 1):
            moment = mpmath.exp((j - 1) * float(divergence(np.array(float(j)))))
            total += rate**j * mpmath.binomial(order, j) * moment * min(2, excess**j)
        assert value == pytest.approx(float(mpmath.log1p(total) / (order - 1)), rel=1e-9)


def test_whole_orders_are_all_up_to_128_and_end_at_the_top():
    orders = whole_orders(1024)
    assert list(orders[:127]) == list(range(2, 129))
    assert orders[-1] == 1024
    assert np.all(np.diff(orders) > 0)
