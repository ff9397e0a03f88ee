"""What holds for every membership attack of the registry."""

import subprocess
import sys
from importlib import import_module

import numpy as np
import pytest

from dp_leakage.attacks import ATTACKS
from dp_leakage.metrics import measure_membership

# Where classes overlap, a model that knows its records by heart is as sure of others: `highest_posterior`, which never
# learns a record's class, has tests of its own.
MEMBERSHIP = [name for name, one in ATTACKS.items() if one.family == "membership" and name != "highest_posterior"]
ON_ANSWERS = [name for name in MEMBERSHIP if ATTACKS[name].reads != "models"]
SMALL = {
    "shokri": {"epochs": 20, "hidden": [16]},
    "quantile_regression": {"rounds": 20, "leaves": 4},
    "label_noise": {"copies": 40, "noise": [0.1]},
    "boundary": {"rounds": 2, "copies": 10},
}


@pytest.fixture(params=MEMBERSHIP)
def attack(request, trained, signals, frame_of):
    """A function target, data -> score frame, of each attack in turn."""
    name = request.param
    entry = ATTACKS[name]
    module, settings = import_module(entry.module), entry.settings | SMALL.get(name, {})
    models = {
        "shadow": trained.shadow,
        "reference": trained.reference_with_targets if settings.get("online") else trained.reference,
    }.get(entry.needs)

    def run(target, data=trained.data, seed=0):
        if entry.reads == "models":
            return module.score(target, data, None, settings, seed)
        reference = signals(models, data) if entry.needs else None
        reference = module.fit(reference, settings, seed) if entry.learns else reference
        return frame_of(module, target, data, reference, settings, seed)

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


@pytest.mark.parametrize("attack", ON_ANSWERS, indirect=True)  # the others' scores are shares, with many ties
def test_flags_are_the_highest_scores_of_each_repeat_and_fall_on_members_more_often(attack, trained):
    frame = attack(trained.target)
    for _, run in frame.groupby("repeat"):
        assert 0 < run["flagged"].sum() < len(run)
        assert run["score"][run["flagged"]].min() >= run["score"][~run["flagged"]].max()
    assert frame["flagged"][frame["member"]].mean() > frame["flagged"][~frame["member"]].mean()


@pytest.mark.parametrize("attack", ON_ANSWERS, indirect=True)  # the others draw noise record by record
def test_the_order_of_the_roles_changes_no_record(attack, trained):
    roles = {name: rows[::-1].copy() for name, rows in trained.data.roles.items()}
    a, b = (
        attack(trained.target, data).set_index(["repeat", "record"]).sort_index()
        for data in (trained.data, trained.data._replace(roles=roles))
    )
    np.testing.assert_allclose(a["score"], b["score"], rtol=1e-3, atol=1e-3)
    assert (a["member"] == b["member"]).all()


def test_attacks_on_signals_import_no_pytorch():
    """All but `shokri`, whose networks the trainer trains, from reading to scoring."""
    code = """
import sys
import numpy as np
from importlib import import_module
from dp_leakage.attacks import ATTACKS
from dp_leakage.attacks.signals import Signals, score_columns
from dp_leakage.steps import attack, fit_attack
rng = np.random.default_rng(0)
roles = np.repeat(["target_members", "target_nonmembers", "reference_pool", "shadow_pool"], 40)
n, y = len(roles), rng.integers(3, size=len(roles))
def signals(models, trained_on):
    probability = rng.dirichlet(np.ones(3), (models, n)).astype(np.float32)
    margin = rng.normal(size=(1, models, n))
    rank = rng.integers(1, 4, (models, n)).astype(np.int32)
    x = rng.normal(size=(n, 2)).astype(np.float32)
    losses = rng.exponential(size=(5, models, n)).astype(np.float32)
    return Signals(np.arange(n), y, roles, trained_on, margin, rank == 1, rank, probability, x, losses)
target = signals(2, np.tile(roles == "target_members", (2, 1)))
others = signals(4, rng.random((4, n)) < 0.5)
for name, entry in ATTACKS.items():
    if entry.reads == "models" or name == "shokri":
        continue
    module = import_module(entry.module)
    settings = entry.settings | ({"only_correct": False} if name == "shokri_trees" else {})
    reference = module.fit(others, settings, 0) if entry.learns else others if entry.needs else None
    columns = score_columns(target.asked, module.score(target, reference, settings, 0)._asdict())
    assert len(columns["record"]) == 160
    print(name)
assert "torch" not in sys.modules
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert {"yeom", "lira_online", "rmia", "shokri_trees", "quantile_regression", "ranks"} <= set(done.stdout.split())
