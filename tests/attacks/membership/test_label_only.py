"""The attacks that read predicted classes alone."""

import numpy as np
import pytest
import torch
from scipy.stats import norm
from sklearn.metrics import roc_auc_score

from dp_leakage.attacks import ATTACKS
from dp_leakage.attacks.membership import gap, label_noise
from dp_leakage.common.errors import UserError

SETTINGS = ATTACKS["label_noise"].settings


def test_the_gap_attack_is_accuracy_on_members_less_accuracy_on_others(trained, signals, as_targets):
    target = as_targets(signals(trained.target, trained.data))
    found, member = gap.score(target, None, {}, 0), target.asked.trained_on
    z = trained.target.logits(torch.from_numpy(trained.data.x[target.asked.record])).numpy()
    right = z.argmax(axis=2) == trained.data.y[target.asked.record]
    np.testing.assert_array_equal(found.flagged, right)
    area = roc_auc_score(member.ravel(), found.score.ravel())
    assert area == pytest.approx(0.5 + (right[member].mean() - right[~member].mean()) / 2)


@pytest.fixture
def line(numbered):
    """Two classes by the sign of feature 1, and a model whose boundary lies there."""
    data = numbered(n_classes=2, target_members=60, target_nonmembers=60, reference_pool=80)
    return data._replace(x=data.x[:, 1:2].copy(), y=(data.x[:, 1] > 0).astype(np.int64))


def sign(k, x):
    return np.stack([-x[:, 0], x[:, 0]], axis=1)


def test_shares_are_the_normal_probability_of_staying_on_ones_side(line, known):
    rows = line.targets
    settings = SETTINGS | {"copies": 4000, "noise": [1.0]}
    found = label_noise.kept(known(sign, 1), line, rows, settings, np.random.default_rng(0))[0]
    distance = np.abs(line.x[rows, 0]) / line.x[rows].std()
    np.testing.assert_allclose(found, norm.cdf(distance), atol=0.035)  # 120 shares, each within 4.4 standard errors


def test_a_member_is_found_by_a_boundary_that_keeps_away_from_it(trained):
    frame = label_noise.score(trained.target, trained.data, None, SETTINGS | {"copies": 20}, 0)
    assert roc_auc_score(frame["member"], frame["score"]) > 0.6


def test_models_that_never_saw_the_records_give_chance_and_the_level_of_the_test(trained):
    frame = label_noise.score(trained.shadow, trained.data, None, SETTINGS | {"copies": 20}, 0)
    assert abs(roc_auc_score(frame["member"], frame["score"]) - 0.5) < 0.06
    assert abs(frame["flagged"].mean() - SETTINGS["alpha"]) < 0.06


def test_what_is_done_to_confidences_changes_nothing(trained, known):
    """Logits through any increasing function, as of a mask, a temperature or rounding that keeps the order."""

    def hidden(k, x):
        z = trained.target.logits(torch.from_numpy(x), [k])[0].numpy()
        return z.argsort(axis=1).argsort(axis=1)

    behind = known(hidden, 2, trained.target.train_indices.numpy())
    frames = [label_noise.score(m, trained.data, None, SETTINGS | {"copies": 5}, 0) for m in (trained.target, behind)]
    assert frames[0].equals(frames[1])


def test_by_coins_the_other_repeats_say_how_easy_a_record_is(line, known):
    """Of models that are all alike, nothing is left but records that all others saw, which are compared with all."""
    pool = line.roles["target_members"]
    data = line._replace(roles={"pool": pool, "target_nonmembers": line.roles["target_nonmembers"]})
    models = known(sign, 4, np.stack([np.roll(pool, k)[:30] for k in (0, 10, 20, 30)]))
    frame = label_noise.score(models, data, None, SETTINGS | {"copies": 3}, 0)
    assert frame["member"].sum() == 120
    inside = frame["member"].to_numpy().reshape(4, -1)
    others_without = (~inside).sum(axis=0) - ~inside > 0
    np.testing.assert_allclose(frame["score"].to_numpy().reshape(4, -1)[others_without], 0, atol=1e-12)


def test_a_threshold_needs_records_that_no_attack_asks_about(line, known):
    roles = {name: rows for name, rows in line.roles.items() if name != "reference_pool"}
    with pytest.raises(UserError, match="role 'reference_pool' has no records"):
        label_noise.score(known(sign, 1), line._replace(roles=roles), None, SETTINGS, 0)
