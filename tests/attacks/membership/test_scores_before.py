"""Scores of every attack on fixed outputs are those of the code in which each attack asked the models itself.

``scores_before.npz`` holds the logits of planted models, and what commit 5627a8e made of them. Margins and losses come
from them in float32, whose last digits differ between processors, and more so in the networks of ``shokri``.
"""

from importlib import import_module
from pathlib import Path

import numpy as np
import pytest

from dp_leakage.attacks import ATTACKS
from dp_leakage.data.dataset import Dataset

BEFORE = np.load(Path(__file__).with_name("scores_before.npz"), allow_pickle=False)
SMALL = {
    "shokri": {"epochs": 20, "hidden": [8]},
    "quantile_regression": {"rounds": 20, "leaves": 4},
    "shokri_trees": {"rounds": 10, "leaves": 4},
    "yeom": {"probability_floor": 0.05},
    "rmia": {"a": 0.0, "temperature": 1.0},  # a as it was chosen
    "rmia_online": {"a": 0.0, "temperature": 1.0},
}
NAMES = [name.removeprefix("score_") for name in BEFORE.files if name.startswith("score_")]


@pytest.fixture(scope="module")
def data():
    roles = {name.removeprefix("role_"): BEFORE[name] for name in BEFORE.files if name.startswith("role_")}
    return Dataset(BEFORE["x"], BEFORE["y"], roles, np.array([], dtype=np.int64))


@pytest.mark.parametrize("name", NAMES)
def test_scores_are_what_they_were(name, data, known, signals, monkeypatch):
    def said(group):
        z = BEFORE[f"logits_{group}"]
        return signals(known(lambda k, x: z[k, x[:, 0].astype(int)], len(z), BEFORE[f"trained_{group}"]), data)

    entry = ATTACKS[name]
    module, settings = import_module(entry.module), entry.settings | SMALL.get(name, {})
    if name == "quantile_regression":
        monkeypatch.setattr(module, "LEAST_IN_BIN", 3)  # LightGBM's default, which it was
    reference = None
    if entry.needs:
        online = "_with_targets" if settings.get("online") else ""
        reference = said({"reference": f"reference{online}"}.get(entry.needs, entry.needs))
        reference = module.fit(reference, settings, 5) if entry.learns else reference
    target = said("target")
    found = module.score(target, reference, settings, 5)
    np.testing.assert_array_equal(target.asked.record, BEFORE["record"])
    np.testing.assert_array_equal(target.asked.trained_on[0], BEFORE["member"])
    if entry.module.endswith("rmia"):  # of a score that was a share of others, with ties: the same order, without them
        shares, order = BEFORE[f"score_{name}"].reshape(found.score.shape), found.score.argsort(axis=1)
        assert (np.diff(np.take_along_axis(shares, order, axis=1)) >= 0).all()
        assert all(len(np.unique(row)) == len(row) for row in found.score)
        return
    tolerance = 1e-4 if name == "shokri" else 1e-5
    same = np.ones(found[0].shape, bool)
    if name == "lira_online":  # records that all references saw, or none, have another variance since
        inside = reference.asked.trained_on
        same[:, inside.all(axis=0) | ~inside.any(axis=0)] = False
        assert same.mean() > 0.9
    before = BEFORE[f"score_{name}"].reshape(same.shape)
    np.testing.assert_allclose(found[0][same], before[same], rtol=tolerance, atol=tolerance)
    if f"flagged_{name}" in BEFORE.files:
        flagged = BEFORE[f"flagged_{name}"].reshape(same.shape)
        np.testing.assert_array_equal(found.flagged[same], flagged[same])
