"""What an own curve claims: the ε that is read off it."""

import numpy as np
import pytest
from scipy.special import ndtr, ndtri

from dp_leakage.audits import own_curves
from dp_leakage.audits.claims import gaussian_epsilon


def gaussian_tpr(mu):
    return lambda fpr: np.where(fpr > 0, ndtr(ndtri(fpr) + mu), 0.0)


@pytest.mark.parametrize("mu", [0.3, 1.0, 4.0, 8.0])
def test_an_own_curve_has_the_epsilon_of_its_mechanism_also_where_that_is_large(mu):
    claim = own_curves("Gaussian", 1e-5, lambda strength: gaussian_tpr(mu * strength))
    truth = gaussian_epsilon(mu, 1e-5)
    assert claim.epsilon(1.0) == pytest.approx(truth, rel=2e-3)
    assert claim.epsilon(1.0) <= truth
