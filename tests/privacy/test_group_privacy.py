"""What a training proves for a person, if units are single records: group privacy."""

from dataclasses import replace

import numpy as np
import pytest

from dp_leakage.privacy.accounting import tradeoff
from dp_leakage.privacy.accounting.curve import proven_curve
from dp_leakage.privacy.mechanism import Mechanism
from dp_leakage.privacy.training import Training


@pytest.mark.parametrize("count", [1, 2, 5, 9])
def test_several_steps_of_a_gaussian_are_one_gaussian(count):
    fpr = np.array([0.0, 1e-4, 0.01, 0.2, 0.9, 1.0])
    got = tradeoff.several(tradeoff.gaussian(0.3), count)
    np.testing.assert_allclose(got.tpr(fpr), tradeoff.gaussian(0.3 * count).tpr(fpr), rtol=1e-12)
    assert got.mu == pytest.approx(0.3 * count, rel=1e-9)


@pytest.mark.parametrize("count", [1, 3])
def test_epsilon_delta_has_the_groups_epsilon_of_the_definition(count):
    # (ε, δ)-DP for one gives (kε, δ Σ e^{iε}) for k (Dwork & Roth 2014, theorem 2.2).
    epsilon, delta = 0.4, 1e-6
    curve = tradeoff.several(tradeoff.epsilon_delta(epsilon, delta), count)
    together = delta * sum(np.exp(i * epsilon) for i in range(count))
    # A curve is what its budget allows at every δ, so at a slightly larger δ its ε may be a little less than kε.
    assert count * epsilon - 0.05 <= curve.epsilon(together * 1.0001) <= count * epsilon + 0.051


@pytest.mark.parametrize("mu", [0.5, 1.0, 3.0])
@pytest.mark.parametrize("delta", [1e-5, 1e-3])
def test_a_curves_epsilon_is_never_below_dp_accountings(mu, delta):
    from dp_accounting import GaussianDpEvent
    from dp_accounting.pld import PLDAccountant

    accountant = PLDAccountant(value_discretization_interval=1e-4)
    accountant.compose(GaussianDpEvent(1 / mu))
    expected = accountant.get_epsilon(delta)
    got = tradeoff.gaussian(mu).epsilon(delta)
    assert expected - 1e-3 <= got <= expected + 0.051


def test_a_training_proves_less_for_more_records():
    training = Training(Mechanism("poisson", noise_multiplier=2.0), epochs=2, batch_size=50, dataset_size=500)
    alone = proven_curve(training, "add_remove")
    four = proven_curve(replace(training, records=4), "add_remove")
    assert four.advantage == pytest.approx(tradeoff.several(alone, 4).advantage)
    assert four.advantage > 2 * alone.advantage


@pytest.mark.parametrize(("sampler", "relation"), [("poisson", "add_remove"), ("shuffle", "zero_out")])
def test_persons_are_proven_what_records_are(sampler, relation):
    terms = {"epochs": 2, "batch_size": 50, "dataset_size": 500}
    found = [
        proven_curve(Training(Mechanism(sampler, unit, noise_multiplier=1.5), **terms), relation).advantage
        for unit in ("example", "person")
    ]
    assert found[0] == found[1]
