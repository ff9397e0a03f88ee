"""Attacks P and R and quantile regression."""

from dataclasses import replace

import numpy as np
import pytest
from scipy.special import ndtr, ndtri

from dp_leakage.attacks import ATTACKS
from dp_leakage.attacks.membership import attack_p, attack_r, quantile_regression
from dp_leakage.attacks.queries import asked_records, margins
from dp_leakage.attacks.signals import losses
from dp_leakage.data.dataset import Dataset
from dp_leakage.data.roles import asked_roles
from dp_leakage.metrics import measure_membership

LEVELS = np.linspace(0, 1, 101)
P, R = ATTACKS["attack_p"].settings, ATTACKS["attack_r"].settings


def called_members(alpha, loss, others):
    """The rule as the paper writes it: loss ≤ α-quantile of the losses of others, which 0 and 1000 surround."""
    return loss <= np.quantile(np.concatenate([others, [0, 1000]]), alpha)


def test_attack_r_equals_the_quantile_rule_at_every_level(trained, signals, frame_of):
    data, reference = trained.data, trained.reference_with_targets
    record, _ = asked_records(data, asked_roles(data.roles))
    frame = frame_of(attack_r, trained.target, data, signals(reference, data), R)
    level = -frame["score"].to_numpy().reshape(2, -1)
    loss, others = (losses(margins(m, data.x[record], data.y[record])) for m in (trained.target, reference))
    inside = signals(reference, data).asked.trained_on
    for i in np.flatnonzero(~inside.all(axis=0))[::10]:
        for alpha in LEVELS:
            rule = called_members(alpha, loss[:, i], others[~inside[:, i], i])
            np.testing.assert_array_equal(level[:, i] <= alpha + 1e-12, rule)


def test_attack_p_equals_the_quantile_rule_at_every_level(trained, frame_of):
    data = trained.data
    record, _ = asked_records(data, asked_roles(data.roles))
    level = -frame_of(attack_p, trained.target, data, None, P)["score"].to_numpy().reshape(2, -1)
    pool = data.roles["reference_pool"]
    loss, others = (losses(margins(trained.target, data.x[rows], data.y[rows])) for rows in (record, pool))
    for repeat in range(2):
        for alpha in LEVELS:
            rule = called_members(alpha, loss[repeat], others[repeat])
            np.testing.assert_array_equal(level[repeat] <= alpha + 1e-12, rule)


def test_levels_of_tied_zero_and_huge_losses():
    others = np.array([[1.0], [2.0], [2.0], [np.nan]])
    loss = np.array([0.0, 0.5, 2.0, 3.0, 5000.0])
    below = np.array([0, 0, 1, 3, 3])
    expected = [0, 0.125, 0.5, (3 + 1 / 998) / 4, 1]
    np.testing.assert_allclose(attack_p.alpha_of(loss, others, below), expected)


def test_attack_r_takes_the_mean_loss_for_a_record_that_all_references_saw(trained, signals):
    data = trained.data
    seen = data.roles["target_members"][0]
    reference = trained.reference
    indices = reference.train_indices.clone()
    indices[:, 0] = int(seen)
    fitted = attack_r.reference_losses(signals(replace(reference, train_indices=indices), data).asked, 1)
    assert fitted[0, 0] == pytest.approx(np.mean(fitted[:, 1:]))
    assert np.isnan(fitted[1:, 0]).all()


@pytest.fixture
def uneven():
    """Margins spread ten times wider where feature 1 is positive; members' are one deviation higher."""
    rng, n = np.random.default_rng(0), 6000
    x = rng.normal(size=(n, 2)).astype(np.float32)
    x[:, 0] = np.arange(n)
    names = ("target_members", "target_nonmembers", "reference_pool")
    roles = dict(zip(names, np.split(rng.permutation(n), [1000, 2000]), strict=True))
    margin = np.where(x[:, 1] > 0, 10.0, 1.0) * (rng.normal(size=n) + np.isin(np.arange(n), roles["target_members"]))
    return Dataset(x, np.zeros(n, dtype=np.int64), roles, np.array([], dtype=np.int64)), margin


def test_quantile_regression_finds_the_quantile_of_each_kind_of_record_and_holds_its_level(uneven, known, frame_of):
    """The exact one is that of a normal distribution, ten times wider for one kind."""
    data, margin = uneven
    model = known(lambda k, x: np.stack([margin[x[:, 0].astype(int)], np.zeros(len(x))], axis=1), 1)
    settings = ATTACKS["quantile_regression"].settings | {"alpha": 0.1, "rounds": 40, "leaves": 4}
    frame = frame_of(quantile_regression, model, data, None, settings)
    wide = data.x[frame["record"], 1] > 0
    outside = ~frame["member"].to_numpy()
    width, record = np.where(wide, 10.0, 1.0), frame["record"].to_numpy()
    exact = (margin[record] - frame["score"]) / width
    assert np.median(exact[wide]) == pytest.approx(ndtri(0.9), abs=0.15)  # of 2,000 records: a standard error of 0.04
    assert np.median(exact[~wide]) == pytest.approx(ndtri(0.9), abs=0.15)
    assert np.mean(np.abs(exact - ndtri(0.9)) < 0.5) > 0.9
    for kind in (wide, ~wide):  # about 500 records each: a standard error of 0.013, and the regression's own error
        assert frame["flagged"][kind & outside].mean() == pytest.approx(0.1, abs=0.05)
        assert frame["flagged"][kind & ~outside].mean() == pytest.approx(ndtr(1 - ndtri(0.9)), abs=0.09)
    # One threshold for all flags hardly any of the narrow kind.
    simple = frame_of(attack_p, model, data, None, {"alpha": 0.1})
    advantages = [
        next(r["value"] for r in measure_membership(f, "a") if r["metric"] == "membership_advantage")
        for f in (frame, simple)
    ]
    assert advantages[0] > advantages[1] + 0.05
