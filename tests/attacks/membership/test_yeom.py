"""The loss threshold attack."""

import numpy as np
import pytest
import torch

from dp_leakage.attacks import ATTACKS
from dp_leakage.attacks.membership import yeom
from dp_leakage.metrics import measure_membership

EXACT = ATTACKS["yeom"].settings
FLOORED = {"probability_floor": 1e-3}


def overall(frame, metric="membership_advantage"):
    return next(r for r in measure_membership(frame, "a") if (r["metric"], r["repeat"]) == (metric, "all"))


def two_class_logits(losses):
    """Logits of class 0 with these cross-entropies."""
    return np.stack([-np.log(np.expm1(losses)), np.zeros(len(losses))], axis=1)


def test_scores_and_flags_equal_a_loop_over_records_and_models(overfitted, frame_of):
    data, target, _ = overfitted
    frame = frame_of(yeom, target, data, None, EXACT).set_index(["repeat", "record"])
    for k in range(2):
        module = target.module(k).double()
        loss = {}
        for row in (*data.roles["target_members"], *data.roles["target_nonmembers"]):
            z = module(torch.from_numpy(data.x[row]).double()[None])
            loss[row] = torch.nn.functional.cross_entropy(z, torch.tensor([int(data.y[row])])).item()
        threshold = np.mean([loss[row] for row in data.roles["target_members"]])
        for row, value in loss.items():
            assert frame.loc[(k, row), "score"] == pytest.approx(-value, rel=1e-3, abs=1e-6)
            if abs(value - threshold) > 1e-6:
                assert frame.loc[(k, row), "flagged"] == (value <= threshold)


def test_a_planted_leak_is_found(known, numbered, frame_of):
    """Members' losses are uniform below 0.2, so half of them lie below their mean; all others' are above 1."""
    data = numbered(n_classes=1, target_members=500, target_nonmembers=300)
    loss = np.random.default_rng(0).uniform(1, 2, len(data.x))
    loss[data.roles["target_members"]] = np.random.default_rng(1).uniform(0, 0.2, 500)
    model = known(lambda k, x: two_class_logits(loss[x[:, 0].astype(int)]), 2)
    frame = frame_of(yeom, model, data, None, EXACT)
    assert overall(frame)["value"] == pytest.approx(0.5, abs=0.06)
    assert frame["score"][frame["member"]].min() > frame["score"][~frame["member"]].max()


def test_a_model_that_never_saw_the_records_leaks_nothing(overfitted, frame_of):
    """One interval of 95 % per model: fails for 1 in 20 seeds, this one is fixed."""
    data, _, shadow = overfitted
    frame = frame_of(yeom, shadow, data, None, EXACT)
    for metric, chance in (("membership_advantage", 0), ("membership_auc", 0.5)):
        assert overall(frame, metric)["low"] <= chance <= overall(frame, metric)["high"]


def test_an_overfitted_model_leaks(overfitted, frame_of):
    data, target, _ = overfitted
    frame = frame_of(yeom, target, data, None, EXACT)
    assert overall(frame)["value"] > 0.05
    assert overall(frame, "membership_auc")["low"] > 0.53


def test_the_floor_bounds_the_judged_loss_and_leaves_the_threshold(known, numbered, frame_of):
    data = numbered(n_classes=1, target_members=3, target_nonmembers=2)
    loss = np.zeros(len(data.x))
    loss[data.roles["target_members"]] = [1.0, 2.0, 30.0]
    loss[data.roles["target_nonmembers"]] = [20.0, 10.5]
    model = known(lambda k, x: two_class_logits(loss[x[:, 0].astype(int)]), 1)
    exact, floored = (frame_of(yeom, model, data, None, s) for s in (EXACT, FLOORED))
    assert list(exact["score"]) == pytest.approx([-1, -2, -30, -20, -10.5], rel=1e-5)
    assert list(exact["flagged"]) == [True, True, False, False, True]  # the mean training loss is 11
    ceiling = np.log(1e3)
    assert list(floored["score"]) == pytest.approx([-1, -2, -ceiling, -ceiling, -ceiling], rel=1e-5)
    assert floored["flagged"].all()


def test_the_order_of_the_roles_changes_no_record(overfitted, frame_of):
    data, target, _ = overfitted
    roles = {name: rows[::-1].copy() for name, rows in data.roles.items()}
    a, b = (
        frame_of(yeom, target, d, None, EXACT).set_index(["repeat", "record"]).sort_index()
        for d in (data, data._replace(roles=roles))
    )
    np.testing.assert_allclose(a["score"], b["score"], rtol=1e-4, atol=1e-6)
    assert (a["member"] == b["member"]).all()
