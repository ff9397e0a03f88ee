"""One step's privacy loss distribution: dp-accounting's own, bit for bit."""

import numpy as np
import pytest
from dp_accounting import NeighboringRelation
from dp_accounting.pld.privacy_loss_distribution import from_gaussian_mechanism

from dp_leakage.privacy.accounting.loss_grids import gaussian_step

RELATIONS = {True: NeighboringRelation.REPLACE_ONE, False: NeighboringRelation.ADD_OR_REMOVE_ONE}


@pytest.mark.parametrize("replaced", RELATIONS)
@pytest.mark.parametrize("rate", [1e-4, 0.01, 0.5, 0.999, 1.0])
@pytest.mark.parametrize("sigma", [0.3, 1.1, 40.0])
@pytest.mark.parametrize("points", [100, 5000])  # up to the largest loss that the library resolves
def test_a_step_is_the_librarys_bit_for_bit(sigma, rate, replaced, points):
    spacing = float(np.logaddexp(0.0, np.log(rate) + (10 + 0.5 / sigma) / sigma)) / points
    ours = gaussian_step(sigma, spacing, rate, replaced=replaced)
    theirs = from_gaussian_mechanism(
        sigma,
        value_discretization_interval=spacing,
        sampling_prob=rate,
        neighboring_relation=RELATIONS[replaced],
    )
    for epsilon in (-0.1, 0.0, 0.01, 1.0, 8.0):
        assert ours.get_delta_for_epsilon(epsilon) == theirs.get_delta_for_epsilon(epsilon)
    for name in ("_pmf_remove", "_pmf_add"):
        one, other = (getattr(distribution, name).to_dense_pmf() for distribution in (ours, theirs))
        assert one._lower_loss == other._lower_loss
        assert one._infinity_mass == other._infinity_mass
        np.testing.assert_array_equal(one._probs, other._probs)
