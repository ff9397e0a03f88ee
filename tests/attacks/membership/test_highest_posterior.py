"""The highest posterior (Salem et al. 2019)."""

import numpy as np
import pytest
import torch

from dp_leakage.attacks import ATTACKS
from dp_leakage.attacks.membership import highest_posterior
from dp_leakage.common.errors import UserError

SETTINGS = ATTACKS["highest_posterior"].settings


def test_scores_are_the_largest_softmax_and_flags_a_quantile_of_new_records(trained, frame_of):
    data = trained.data
    frame = frame_of(highest_posterior, trained.target, data, None, SETTINGS).set_index(["repeat", "record"])
    for k in range(2):
        module = trained.target.module(k).double()

        def highest(rows, module=module):
            return torch.softmax(module(torch.from_numpy(data.x[rows]).double()), 1).max(1).values.detach().numpy()

        outside = np.sort(highest(data.roles["shadow_pool"]))
        threshold = np.quantile(outside, 0.9)  # the top tenth of what the model says of records that it has not seen
        for role in ("target_members", "target_nonmembers"):
            rows = data.roles[role]
            found = frame.loc[[(k, row) for row in rows]]
            expected = highest(rows)
            np.testing.assert_allclose(found["score"], np.log(expected), rtol=1e-3, atol=1e-5)
            sure = np.abs(expected - threshold) > 1e-5
            np.testing.assert_array_equal(found["flagged"][sure], (expected > threshold)[sure])


def test_a_planted_leak_is_found(known, numbered, frame_of):
    """The model is sure of its members, of whichever class, and of a tenth of all others."""
    data = numbered(n_classes=2, target_members=500, target_nonmembers=300, shadow_pool=400)
    sure = np.arange(len(data.x)) % 10 == 0
    sure[data.roles["target_members"]] = True
    model = known(lambda k, x: np.where(sure[x[:, 0].astype(int)], 5.0, 1.0)[:, None] * [1, -1], 2)
    frame = frame_of(highest_posterior, model, data, None, {"alpha": 0.2})
    assert frame["flagged"][frame["member"]].all()
    assert frame["flagged"][~frame["member"]].mean() == pytest.approx(0.1, abs=0.01)


def test_the_class_of_a_record_does_not_matter(trained, frame_of):
    data = trained.data
    other = data._replace(y=(data.y + 1) % data.n_classes)
    first, second = (frame_of(highest_posterior, trained.target, one, None, SETTINGS) for one in (data, other))
    np.testing.assert_array_equal(first["score"], second["score"])


def test_without_records_of_its_own_it_has_no_threshold(trained, signals):
    said = signals(trained.target, trained.data).of("target_members", "target_nonmembers")
    with pytest.raises(UserError, match="role 'shadow_pool' has no records"):
        highest_posterior.score(said, None, SETTINGS, 0)
