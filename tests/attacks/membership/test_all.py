"""What holds for every membership attack of the registry."""

from importlib import import_module

import numpy as np
import pytest

from dp_leakage.attacks import ATTACKS
from dp_leakage.metrics import measure_membership

MEMBERSHIP = [name for name, attack in ATTACKS.items() if attack.family == "membership"]
SMALL = {
    "shokri": {"epochs": 20, "hidden": [16]},
    "quantile_regression": {"rounds": 20, "leaves": 4},
}


@pytest.fixture(params=MEMBERSHIP)
def attack(request, trained):
    """A function target, data -> score frame, of each attack in turn."""
    name = request.param
    entry = ATTACKS[name]
    module, settings = import_module(entry.module), entry.settings | SMALL.get(name, {})
    models = {
        "shadow": trained.shadow,
        "reference": trained.reference_with_targets if settings.get("online") else trained.reference,
    }.get(entry.needs)

    def run(target, data=trained.data, seed=0):
        fitted = module.fit(models, data, settings, seed) if entry.needs else None
        return module.score(target, data, fitted, settings, seed)

    return run


def auc(frame):
    return next(r for r in measure_membership(frame, "a") if (r["metric"], r["repeat"]) == ("membership_auc", "all"))


def test_an_overfitted_model_is_found_out(attack, trained):
    assert auc(attack(trained.target))["low"] > 0.52


def test_models_that_never_saw_the_records_give_chance(attack, trained):
    """The interval holds 1/2 for 19 of 20 seeds; these are fixed."""
    row = auc(attack(trained.shadow))
    assert row["low"] <= 0.5 <= row["high"]


def test_the_same_call_gives_the_same_frame(attack, trained):
    a, b = attack(trained.target), attack(trained.target)
    assert a.equals(b)
    assert list(a.columns) == ["repeat", "record", "member", "score", "flagged"]
    assert np.isfinite(a["score"]).all()


def test_flags_are_the_highest_scores_of_each_repeat(attack, trained):
    for _, run in attack(trained.target).groupby("repeat"):
        if run["flagged"].any() and not run["flagged"].all():
            assert run["score"][run["flagged"]].min() >= run["score"][~run["flagged"]].max()


def test_the_order_of_the_roles_changes_no_record(attack, trained):
    roles = {name: rows[::-1].copy() for name, rows in trained.data.roles.items()}
    a, b = (
        attack(trained.target, data).set_index(["repeat", "record"]).sort_index()
        for data in (trained.data, trained.data._replace(roles=roles))
    )
    np.testing.assert_allclose(a["score"], b["score"], rtol=1e-3, atol=1e-3)
    assert (a["member"] == b["member"]).all()
