"""The attacks that read predicted classes alone."""

import numpy as np
import pytest
import torch
from scipy.stats import norm
from sklearn.metrics import roc_auc_score

from dp_leakage.attacks import ATTACKS
from dp_leakage.attacks.membership import boundary, gap, label_noise
from dp_leakage.common.errors import UserError

SETTINGS = ATTACKS["label_noise"].settings
SEARCH = ATTACKS["boundary"].settings
FEW = SEARCH | {"rounds": 2, "copies": 10}


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


@pytest.mark.parametrize("shape", [(6,), (1, 3, 2)])
def test_the_distance_from_a_plane_is_nearly_that_of_the_perpendicular_and_never_less(numbered, known, shape):
    """Two classes on the sides of a plane in six dimensions: |w·x + b| / ‖w‖ is the least that any search can find."""
    rng = np.random.default_rng(3)
    data = numbered(n_classes=2, target_members=60, target_nonmembers=60, reference_pool=200)
    x = rng.normal(size=(len(data.x), 6)).astype(np.float32)
    w, b = rng.normal(size=6), 0.3
    side = x @ w + b
    data = data._replace(x=x.reshape(len(x), *shape), y=(side > 0).astype(np.int64))

    def plane(k, x):
        z = x.reshape(len(x), -1) @ w + b
        return np.stack([-z, z], axis=1)

    rows, population = data.targets, data.roles["reference_pool"]
    search = boundary.Search(8, 100, 14)
    found = boundary.distances(known(plane, 1), data, rows, population, search, 0)[0]
    exact = np.abs(side[rows]) / np.linalg.norm(w)
    assert (found >= exact * (1 - 1e-4)).all()
    assert np.median(found / exact) < 1.1
    start = boundary.distances(known(plane, 1), data, rows, population, boundary.Search(0, 2, 14), 0)[0]
    assert (found <= start * (1 + 1e-6)).all()
    assert np.median(found / start) < 0.9


def test_a_record_that_the_model_errs_about_has_no_distance(line, known):
    wrong = known(lambda k, x: -sign(k, x), 1)
    rows, population = line.targets, line.roles["reference_pool"]
    assert (boundary.distances(wrong, line, rows, population, boundary.Search(1, 4, 4), 0) == 0).all()


def test_where_all_of_the_population_have_the_records_class_the_distance_is_the_largest_that_was_found(line, known):
    one = known(lambda k, x: np.tile([0.0, 1.0], (len(x), 1)), 1)
    rows, population = line.targets, line.roles["reference_pool"]
    found = boundary.distances(one, line, rows, population, boundary.Search(1, 4, 4), 0)
    assert (found == 0).all()  # nothing was found at all


def test_a_member_lies_further_from_the_boundary(trained):
    frame = boundary.score(trained.target, trained.data, None, FEW, 0)
    assert roc_auc_score(frame["member"], frame["score"]) > 0.6


def test_models_that_never_saw_the_records_have_boundaries_that_tell_nothing(trained):
    frame = boundary.score(trained.shadow, trained.data, None, FEW, 0)
    assert abs(roc_auc_score(frame["member"], frame["score"]) - 0.5) < 0.06
    assert abs(frame["flagged"].mean() - FEW["alpha"]) < 0.08


def test_a_boundary_is_the_same_whatever_is_done_to_confidences(trained, known):
    def hidden(k, x):
        z = trained.target.logits(torch.from_numpy(x), [k])[0].numpy()
        return z.argsort(axis=1).argsort(axis=1)

    behind = known(hidden, 2, trained.target.train_indices.numpy())
    frames = [boundary.score(models, trained.data, None, FEW, 0) for models in (trained.target, behind)]
    assert frames[0].equals(frames[1])
