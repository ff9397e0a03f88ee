"""Privacy loss distributions of our own: quadrature, draws, dp-accounting and SciPy. None may be too small."""

from itertools import pairwise
from math import exp, inf, log, pi, sqrt

import numpy as np
import pytest
import scipy.fft
from asked import epsilon_spent
from dp_accounting import NeighboringRelation, get_epsilon_gaussian
from dp_accounting.pld import privacy_loss_distribution
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.integrate import quad
from scipy.stats import norm, vonmises_fisher

from dp_leakage.privacy.accounting import losses, tradeoff, vmf
from dp_leakage.privacy.accounting.curve import proven_curve
from dp_leakage.privacy.mechanism import Mechanism
from dp_leakage.privacy.training import Training

DRAWS = 20_000
EPSILONS = np.array([0.0, 0.1, 0.5, 1.0, 2.0, 4.0])


def gaussian_delta(mu, epsilon):
    return norm.cdf(mu / 2 - epsilon / mu) - np.exp(epsilon) * norm.cdf(-mu / 2 - epsilon / mu)


# ---------------------------------------------------------------------- closed forms
@pytest.mark.parametrize(("steps", "mu"), [(1, 0.3), (1, 6.0), (10, 1.0), (1000, 2.0), (100_000, 1.0), (10**7, 3.0)])
def test_gaussian_steps_compose_to_a_gaussian(steps, mu):
    epsilon, delta = losses.profile(losses.gaussian(mu / sqrt(steps)), 1.0, "shown", steps)
    exact = gaussian_delta(mu, epsilon)
    assert np.all(delta >= exact)
    assert np.all(delta <= exact * (1 + 1e-2) + 2 * losses.rounding(steps, 2**22, 4.0) + 1e-12)
    found = losses.epsilon(losses.gaussian(mu / sqrt(steps)), 1.0, "shown", steps, 1e-5)
    assert found == pytest.approx(get_epsilon_gaussian(1 / mu, 1e-5), rel=1e-3 if steps < 10**7 else 3e-3)
    assert found >= get_epsilon_gaussian(1 / mu, 1e-5)


@pytest.mark.parametrize(("steps", "mu", "delta"), [(26_607, 3.7120748427, 1.8e-12), (50_000, 1.0, 1e-12)])
def test_what_rounding_may_hide_of_a_small_delta_is_paid_for(steps, mu, delta):
    """With rounding of 1e-13, 26,607 steps had 32.108 for an exact 32.134."""
    exact = get_epsilon_gaussian(1 / mu, delta)
    assert losses.epsilon(losses.gaussian(mu / sqrt(steps)), 1.0, "shown", steps, delta) >= exact
    run = {"epochs": steps, "batch_size": 10**9 - 1, "dataset_size": 10**9, "delta": delta}
    sampled = epsilon_spent("pld", noise_multiplier=2 * sqrt(2 * steps) / mu, sampler="wor", **run)
    assert exact * (1 - 1e-6) <= sampled < 1.05 * exact  # of two steps an epoch that hold nearly every record


@pytest.mark.parametrize(("steps", "mu"), [(1, 2.0), (64, 1.0), (4096, 3.0), (100_000, 0.5)])
def test_delta_of_a_composition_is_off_by_no_more_than_its_rounding(steps, mu):
    """Against the same losses in extended precision, at every ε."""
    (one,) = losses.one_step(losses.gaussian(mu / sqrt(steps)), 1.0, "shown", mu / sqrt(steps) / 16)
    total, size = one.repeated(steps), 2**18
    exact = scipy.fft.irfft(scipy.fft.rfft(one.masses.astype(np.longdouble), size) ** steps, size)
    place = total.lowest - steps * one.lowest + np.arange(len(total.masses))
    epsilons = np.linspace(0.0, 8 * mu, 50)
    weight = np.maximum(-np.expm1(epsilons[:, None] - total.values), 0.0)
    error = np.abs(weight @ (exact[place % size] - total.masses)).max()
    assert error <= total.infinite - losses.TAIL
    assert total.infinite <= 1e-12 * max(steps / 20, 1)


@pytest.mark.parametrize("how", ["shown", "replaced"])
def test_a_step_whose_loss_is_all_infinite_has_no_epsilon(how):
    pair = vmf.worst_pair(10**3.03125, (17,))
    assert losses.one_step(pair, 1.0, how, losses.LARGEST / 16)[0].infinite == 1.0
    assert losses.epsilon(pair, 1.0, how, 2, 1e-3) == inf


def test_a_gaussian_mechanism_beside_the_steps_is_one_more_step():
    epsilon, delta = losses.profile(losses.gaussian(0.3), 1.0, "shown", 16, beside=1.6**2 / 2)
    exact = gaussian_delta(2.0, epsilon)
    assert np.all(delta >= exact)
    assert np.all(delta <= 1.002 * exact + 1e-11)


@pytest.mark.parametrize(("dimension", "kappa"), [(2, 0.3), (2, 30.0), (3, 2.0), (10, 5.0), (401, 60.0)])
def test_masses_of_directional_losses_are_integrals_of_the_density(dimension, kappa):
    def density(angle):
        return exp(kappa * (np.sin(angle) - 1)) * np.cos(angle) ** (dimension - 2)

    edges = np.array([-0.9, -0.3, 0.05, 0.4, 0.9]) * pi / 2
    exact = np.array([quad(density, a, b, epsabs=0, limit=200)[0] for a, b in pairwise(edges)])
    whole = quad(density, -pi / 2, pi / 2, epsabs=0, limit=500, points=[np.arcsin(min(1, kappa / dimension))])[0]
    limits = 2 * kappa * np.sin(edges)
    p, q = vmf.vmf_pair(dimension, kappa).masses(limits)
    assert p == pytest.approx(exact / whole, rel=1e-8)
    mirrored, _ = vmf.vmf_pair(dimension, kappa).masses(-limits[::-1])
    assert q == pytest.approx(mirrored[::-1], rel=1e-12)
    assert q[-1] <= p[-1] * exp(-limits[-2])


@pytest.mark.parametrize(("dimension", "kappa"), [(61_706, 100.0), (10**6, 1e3), (10**6, 30.0)])
def test_directions_in_many_dimensions_are_nearly_gaussian(dimension, kappa):
    """Their losses then have the mean and the deviation of a Gaussian pair with μ = 2κ/√d."""
    mu = 2 * kappa / sqrt(dimension)
    _, found = losses.profile(vmf.vmf_pair(dimension, kappa), 1.0, "shown", 1)
    assert found[0] == pytest.approx(gaussian_delta(mu, 0.0), rel=2e-3)


# ---------------------------------------------------------------------- the worst pair
def sphere_hockey_stick(kappa, angle, epsilon):
    """∫ max(0, p − e^ε q) on the sphere of R³ for means that far apart; x is the axis of their difference."""
    height, azimuth = (np.arange(400) + 0.5) / 200 - 1, (np.arange(400) + 0.5) * pi / 200
    x, (c, s) = height[:, None], (np.cos(angle / 2), np.sin(angle / 2))
    across = np.sqrt(1 - x**2) * np.cos(azimuth)
    normalizer = kappa / (4 * pi * np.sinh(kappa))
    p, q = (normalizer * np.exp(kappa * (c * across + sign * s * x)) for sign in (1, -1))
    return np.maximum(p - exp(epsilon) * q, 0).sum() / 200 * pi / 200


@pytest.mark.parametrize("epsilon", [-2.0, -0.4, 0.0, 0.3, 1.0, 3.0])
@pytest.mark.parametrize("kappa", [0.2, 1.0, 4.0])
def test_divergence_of_directions_grows_with_the_angle_up_to_the_pair_that_is_used(kappa, epsilon):
    found = np.array([sphere_hockey_stick(kappa, angle, epsilon) for angle in np.linspace(0.05, pi, 12)])
    assert np.all(np.diff(found) >= -1e-6)
    (one,) = losses.one_step(vmf.vmf_pair(3, kappa), 1.0, "shown", 1e-3)
    forth = float(one.delta(np.array([abs(epsilon)]))[0])
    worst = forth if epsilon >= 0 else 1 - exp(epsilon) + exp(epsilon) * forth  # swap the two
    assert worst == pytest.approx(found[-1], abs=1e-4)


def three_normals(rate, places, epsilon):
    """E_e^ε of (1−q) N(a) + q N(b) from (1−q) N(a) + q N(c), by quadrature."""
    grid = np.arange(-12, 12, 1e-3)
    a, b, c = (np.exp(-((grid - place) ** 2) / 2) / sqrt(2 * pi) for place in places)
    first, second = (1 - rate) * a + rate * b, (1 - rate) * a + rate * c
    return np.maximum(first - exp(epsilon) * second, 0).sum() * 1e-3


@given(st.floats(0.01, 0.99), st.floats(0.1, 3), st.lists(st.floats(0, 1), min_size=3, max_size=3), st.floats(-3, 3))
@settings(max_examples=60, deadline=None)
def test_no_batches_of_a_fixed_size_exceed_the_stitched_pair(rate, apart, places, epsilon):
    (one,) = losses.one_step(losses.gaussian(apart), rate, "replaced", 1e-3)
    bound = float(one.delta(np.array([abs(epsilon)]))[0])
    if epsilon < 0:
        bound = 1 - exp(epsilon) + exp(epsilon) * bound
    assert three_normals(rate, apart * np.array(places), epsilon) <= bound + 1e-6
    if epsilon >= 0:
        assert three_normals(rate, (0.0, apart, 0.0), epsilon) == pytest.approx(bound, abs=1e-4)


@given(st.floats(0.01, 0.99), st.floats(0.1, 3), st.floats(0, 1), st.floats(0, 3))
@settings(max_examples=20, deadline=None)
def test_a_unit_that_comes_or_goes_moves_no_poisson_batch_further_than_the_pair(rate, apart, place, epsilon):
    forth, back = losses.one_step(losses.gaussian(apart), rate, "added", 1e-3)
    at = np.array([epsilon])
    for found, places in ((forth, (0, place * apart, 0)), (back, (0, 0, place * apart))):
        exact = three_normals(rate, places, epsilon)
        assert exact <= float(found.delta(at)[0]) + 1e-6
        if place == 1:
            assert exact == pytest.approx(float(found.delta(at)[0]), abs=1e-4)


# ---------------------------------------------------------------------- other people's code
@pytest.mark.parametrize(("rate", "sigma", "steps"), [(0.01, 1.1, 600), (0.2, 2.0, 30), (0.01, 0.6, 500)])
def test_added_gaussian_steps_have_the_profile_of_dp_accounting(rate, sigma, steps):
    theirs = privacy_loss_distribution.from_gaussian_mechanism(
        sigma,
        sampling_prob=rate,
        value_discretization_interval=3e-4,
        neighboring_relation=NeighboringRelation.ADD_OR_REMOVE_ONE,
    ).self_compose(steps)
    pair = losses.gaussian(1 / sigma)
    epsilon, delta = losses.profile(pair, rate, "added", steps)
    for at in (0.0, 0.2, 1.0, 2.5):
        found = float(np.interp(at, epsilon, delta, right=0.0))
        assert found == pytest.approx(theirs.get_delta_for_epsilon(at), rel=5e-3, abs=1e-5)
    found = losses.epsilon(pair, rate, "added", steps, 1e-5)
    assert found == pytest.approx(theirs.get_epsilon_for_delta(1e-5), rel=2e-3)


@pytest.mark.parametrize(("rate", "sigma"), [(0.0035, 0.451), (0.1, 1.0), (0.5, 3.0)])
def test_one_step_of_a_fixed_size_is_dp_accountings_removal_above_zero(rate, sigma):
    theirs = privacy_loss_distribution.from_gaussian_mechanism(
        sigma / 2, sampling_prob=rate, value_discretization_interval=1e-3
    )
    (one,) = losses.one_step(losses.gaussian(2 / sigma), rate, "replaced", 1e-3)
    for epsilon in EPSILONS.tolist():
        assert float(one.delta(np.array([epsilon]))[0]) == pytest.approx(
            theirs._pmf_remove.get_delta_for_epsilon(epsilon), rel=1e-3, abs=1e-12
        )


# ---------------------------------------------------------------------- likelihood ratios drawn at random
def reach(share):
    """Half of an interval for a share of ``DRAWS`` (Bernstein): by chance the truth lies outside in 2e-6 of them."""
    return 5.3 * np.sqrt(share * (1 - share) / DRAWS) + 30 / DRAWS


def assert_bounds_draws(curve, members, nonmembers):
    """No threshold on log-likelihood ratios passes the curve by more than chance, in either direction."""
    for first, second in ((members, nonmembers), (-nonmembers, -members)):
        thresholds = np.quantile(second, 1 - np.geomspace(1e-3, 0.999, 30))
        fpr, tpr = (np.mean(ratios[:, None] > thresholds, axis=0) for ratios in (second, first))
        assert np.all(tpr - reach(tpr) <= curve.tpr(np.minimum(fpr + reach(fpr), 1)))


def mixtures(rng, rate, steps, draw, log_density, others):
    """Log-likelihood ratios of steps with one unit or the other, whose place a third takes in batches without it.

    Args:
        draw: place, number → draws. log_density: draws, place → log density. others: places of member, non-member and
            the third.
    """
    member, nonmember, third = others
    ratios = []
    for unit in (member, nonmember):
        total = np.zeros(DRAWS)
        for _ in range(steps):
            inside = rng.random(DRAWS) < rate
            seen = np.where(inside[:, None], draw(unit, DRAWS), draw(third, DRAWS))
            base = log1m(rate) + log_density(seen, third)
            total += np.logaddexp(base, log(rate) + log_density(seen, member))
            total -= np.logaddexp(base, log(rate) + log_density(seen, nonmember))
        ratios.append(total)
    return ratios


def log1m(rate):
    return log(1 - rate) if rate < 1 else -inf


RANDOM = np.random.default_rng(7)
FIXED = [
    (10 ** RANDOM.uniform(-2, -0.1), 10 ** RANDOM.uniform(-0.5, 0.7), int(RANDOM.integers(1, 20))) for _ in range(24)
]


@pytest.mark.parametrize(("rate", "sigma", "epochs"), FIXED)
def test_gaussian_batches_of_a_fixed_size_are_bounded_wherever_the_third_record_is(rate, sigma, epochs):
    rng, size = np.random.default_rng(1), max(30, round(rate * 1000))
    run = Training(Mechanism("wor", noise_multiplier=sigma), epochs, size, 1000)
    if run.steps > 60:
        run = Training(run.mechanism, 1, size, 1000)
    curve = proven_curve(run, "replace_one")
    assert curve.source == "loss_distribution"

    def draw(place, number):
        return place + sigma * rng.standard_normal((number, 1))

    def log_density(seen, place):
        return -((seen[:, 0] - place) ** 2) / (2 * sigma**2)

    for third in (-1.0, 1.0, 0.0):
        assert_bounds_draws(curve, *mixtures(rng, run.rate, run.steps, draw, log_density, (1.0, -1.0, third)))


VMF = [(int(RANDOM.integers(2, 16)), 10 ** RANDOM.uniform(-0.7, 1), RANDOM.uniform(0.2, 0.9)) for _ in range(5)]


@pytest.mark.parametrize("sampler", ["wor", "poisson", "shuffle"])
@pytest.mark.parametrize(("dimension", "kappa", "rate"), VMF)
def test_directions_are_bounded_between_vectors_at_any_angle(dimension, kappa, rate, sampler):
    rng = np.random.default_rng(3)
    mechanism = Mechanism(sampler, bound="normalize", noise="vmf", kappa=kappa, block="sum")
    run = Training(mechanism, 1, round(100 * rate), 100, blocks=(dimension,))
    curve = proven_curve(run, "replace_one")
    assert curve.source in ("loss_distribution", "pure")
    steps, q = (1, 1.0) if sampler == "shuffle" else (run.steps, run.rate)

    def draw(mean, number):
        return vonmises_fisher(mean, kappa).rvs(number, random_state=rng)

    def log_density(seen, mean):
        return kappa * seen @ mean

    axis = np.eye(dimension)
    for angle, third in ((pi, -axis[0]), (pi, axis[1]), (rng.uniform(0, pi), axis[-1])):
        other = np.cos(angle) * axis[0] + np.sin(angle) * axis[1]
        assert_bounds_draws(curve, *mixtures(rng, q, steps, draw, log_density, (axis[0], other, third)))


def test_independent_blocks_are_bounded_and_nearly_reached():
    rng, kappas, blocks = np.random.default_rng(4), 1.5, (3, 3, 8)
    mechanism = Mechanism("shuffle", bound="normalize", noise="vmf", kappa=kappas, block="layer")
    curve = proven_curve(Training(mechanism, 2, 10, 100, blocks=blocks), "replace_one")
    draws = [vonmises_fisher(np.eye(d)[0], kappas).rvs(2 * DRAWS, random_state=rng)[:, 0] for d in blocks]
    loss = 2 * kappas * np.sum(draws, axis=0).reshape(2, DRAWS).sum(axis=0)  # two epochs
    assert_bounds_draws(curve, loss, -loss)
    reached = 2 * np.mean(loss > 0) - 1
    assert curve.advantage <= reached + 2 * reach(np.mean(loss > 0)) + 1e-3


def test_planted_optimism_crosses_the_curve():
    """A curve for half of the rate, and the comparison with likelihood ratios sees it."""
    rng, sigma, rate = np.random.default_rng(5), 1.0, 0.5
    ratios = mixtures(
        rng,
        rate,
        8,
        lambda place, number: place + sigma * rng.standard_normal((number, 1)),
        lambda seen, place: -((seen[:, 0] - place) ** 2) / (2 * sigma**2),
        (1.0, -1.0, -1.0),
    )
    pair = losses.gaussian(2 / sigma)
    assert_bounds_draws(tradeoff.profile(*losses.profile(pair, rate, "replaced", 8)), *ratios)
    with pytest.raises(AssertionError):
        assert_bounds_draws(tradeoff.profile(*losses.profile(pair, 0.5 * rate, "replaced", 8)), *ratios)


# ---------------------------------------------------------------------- as the workflow asks
def test_curves_are_as_low_as_the_loss_distribution_allows():
    wor = Training(Mechanism("wor", noise_multiplier=0.451), 1, 35, 10_000)
    assert proven_curve(wor, "replace_one").advantage == pytest.approx(0.593, abs=1e-3)  # 0.985 by Rényi divergences
    directional = Mechanism("shuffle", bound="normalize", noise="vmf", kappa=5.0)
    twice = Training(directional, 2, 10, 100, blocks=(100,))
    assert proven_curve(twice, "replace_one").advantage == pytest.approx(0.521, abs=1e-3)  # 0.648 by Rényi divergences


@pytest.mark.parametrize("sampler", ["wor", "poisson", "shuffle"])
@given(st.lists(st.integers(2, 10**6), min_size=1, max_size=4), st.floats(-9, 12).map(lambda x: 10**x), st.booleans())
@settings(max_examples=10, deadline=None)
def test_any_concentration_has_an_epsilon_and_a_curve_that_rises(sampler, blocks, kappa, summed):
    run = {"epochs": 2, "batch_size": 20, "dataset_size": 100}
    terms = run | {"kappa": kappa, "delta": 1e-5, "blocks": blocks, "summed": summed, "sampler": sampler}
    relations = ["replace_one", *(["add_remove"] if summed and sampler == "poisson" else [])]
    mechanism = Mechanism(sampler, bound="normalize", noise="vmf", kappa=kappa, block="sum" if summed else "layer")
    for neighbors in relations:
        assert epsilon_spent("vmf_pld", **terms, neighbors=neighbors) <= epsilon_spent(
            "vmf_rdp", **terms, neighbors=neighbors
        )
        curve = proven_curve(Training(mechanism, **run, blocks=blocks), neighbors)
        fpr = np.linspace(0, 1, 41)
        tpr = curve.tpr(fpr)
        assert np.all(np.isfinite(tpr))
        assert np.all(np.diff(tpr) >= -1e-12)
        assert np.all(np.diff(tpr, 2) <= 1e-9)


@given(st.floats(-4, 0).map(lambda x: 10**x), st.floats(-2, 5).map(lambda x: 10**x), st.integers(1, 50))
@settings(max_examples=20, deadline=None)
def test_epsilon_of_a_fixed_size_is_the_curves_and_at_most_the_renyi_bound(rate, sigma, epochs):
    run = {"epochs": epochs, "batch_size": max(1, round(10_000 * rate)), "dataset_size": 10_000}
    terms = run | {"noise_multiplier": sigma, "delta": 1e-5, "sampler": "wor", "neighbors": "replace_one"}
    epsilon = epsilon_spent("pld", **terms)
    assert 0 <= epsilon <= epsilon_spent("rdp", **terms)
    curve = proven_curve(Training(Mechanism("wor", noise_multiplier=sigma), **run), "replace_one")
    fine = np.concatenate(([0.0], np.geomspace(1e-12, 1, 2000)))
    if curve.source != "renyi" and epsilon < 300:
        assert float(np.max(curve.tpr(fine) - exp(epsilon) * fine)) <= 1.05e-5 + 1e-9


def test_more_noise_and_fewer_steps_cost_less_by_loss_distributions():
    run = {"delta": 1e-5, "batch_size": 50, "dataset_size": 1000, "sampler": "wor", "blocks": (100, 40)}
    of_kappa = [epsilon_spent("vmf_pld", kappa=kappa, epochs=3, **run) for kappa in (0.1, 0.5, 2.0, 8.0)]
    of_epochs = [epsilon_spent("vmf_pld", kappa=2.0, epochs=epochs, **run) for epochs in (1, 3, 10, 40)]
    assert np.all(np.diff(of_kappa) > 0)
    assert np.all(np.diff(of_epochs) > 0)
