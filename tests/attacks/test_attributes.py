"""Attribute inference beside imputation."""

import importlib

import numpy as np
import pandas as pd
import pytest
import torch
from scipy.special import log_softmax
from scipy.stats import norm
from sklearn.linear_model import LogisticRegression
from sklearn.preprocessing import StandardScaler

from dp_leakage.attacks import ATTACKS
from dp_leakage.attacks.attributes import guessing
from dp_leakage.data.dataset import Dataset
from dp_leakage.metrics import measure_attribute
from dp_leakage.metrics.rows import tidy

NAMES = ["yeom_values", "fredrikson", "csmia", "learned_attribute"]
SETTINGS = {**ATTACKS["csmia"].settings, "features": 1}
SIZE = 150  # of each role


def attacked(name, target, data, settings=SETTINGS):
    return importlib.import_module(ATTACKS[name].module).score(target, data, None, settings, 0)


def planted(seed=0):
    """Records whose feature 1 is a category of 3, a bit of which the others tell; feature 0 is the row."""
    rng = np.random.default_rng(seed)
    n = 3 * SIZE
    x = rng.normal(size=(n, 4)).astype(np.float32)
    x[:, 0] = np.arange(n)
    x[:, 1] = rng.permutation(n) % 3
    x[:, 2] += x[:, 1]
    y = (x[:, 1] + rng.normal(size=n) > 1).astype(np.int64)
    roles = dict(zip(["target_members", "target_nonmembers", "reference_pool"], np.split(np.arange(n), 3), strict=True))
    return Dataset(x, y, roles, np.array([1]))


def said(data, k, x):
    """Logits of model k, (n, 2): sharp at the true value of members, else anything."""
    rows = x[:, 0].astype(int)
    noise = np.random.default_rng(k).normal(size=(len(data.x), 3))[rows, x[:, 1].astype(int)]
    right = (x[:, 1] == data.x[rows, 1]) & (rows < SIZE)
    margin = np.where(rows < SIZE, np.where(right, 4.0, noise - 1), noise)
    return np.stack([np.zeros(len(x)), np.where(data.y[rows] == 1, margin, -margin)], axis=1)


def remembering(data, known, size=2):
    return known(lambda k, x: said(data, k, x), size, np.tile(data.roles["target_members"], (size, 1)))


def by_hand(name, data, k, row):
    """The attack's guess of one record, by a loop over candidates, as its paper says."""
    own = data.roles["reference_pool"]
    values = data.x[own, 1].astype(int)
    prior = [(np.sum(values == v) + 1) / (len(own) + 3) for v in range(3)]
    tried = np.tile(data.x[row], (3, 1))
    tried[:, 1] = range(3)
    logs = log_softmax(said(data, k, tried), axis=1)
    label = data.y[row]
    if name == "yeom_values":
        members = data.roles["target_members"]
        training = log_softmax(said(data, k, data.x[members]), axis=1)[np.arange(SIZE), data.y[members]]
        density = norm.logpdf(logs[:, label], scale=np.sqrt(np.mean(training**2)))  # as such it would be 0
        return int(np.argmax(density + np.log(prior)))
    if name == "fredrikson":
        predicted = said(data, k, data.x[own]).argmax(axis=1)
        of_class = predicted[data.y[own] == label]
        chance = [(np.sum(of_class == c) + 1) / (len(of_class) + 2) for c in logs.argmax(axis=1)]
        return int(np.argmax(np.multiply(chance, prior)))
    right = logs.argmax(axis=1) == label
    if right.sum() == 1:  # case 1
        return int(np.flatnonzero(right)[0])
    if right.any():  # case 2: the surest of them
        return int(max(np.flatnonzero(right), key=lambda v: logs[v].max()))
    return int(min(range(3), key=lambda v: logs[v].max()))  # case 3: the least sure


@pytest.mark.parametrize("name", NAMES[:3])
def test_guesses_equal_a_loop_over_records_and_candidates(name, known):
    data = planted()
    frame = attacked(name, remembering(data, known), data).set_index(["repeat", "record"])
    rows = [*range(30), *range(SIZE, SIZE + 60)]
    expected = [by_hand(name, data, k, row) for k in range(2) for row in rows]
    assert [frame.loc[(k, row), "guess"] for k in range(2) for row in rows] == expected
    assert len(set(expected)) == 3
    np.testing.assert_array_equal(frame.loc[0, "truth"].sort_index(), data.x[: 2 * SIZE, 1])
    assert ((frame["score"] > 0) <= (frame["guess"] == frame["truth"])).all()


def logistic(x, code, asked):
    scaler = StandardScaler().fit(x)
    return LogisticRegression(max_iter=2000).fit(scaler.transform(x), code).predict(scaler.transform(asked))


def test_imputation_and_the_learned_attack_are_logistic_regressions_of_what_each_knows(known):
    data = planted()
    frame = attacked("learned_attribute", remembering(data, known), data).set_index(["repeat", "record"]).sort_index()
    own, asked = data.roles["reference_pool"], np.arange(2 * SIZE)

    def without(rows):
        return np.column_stack([data.x[rows][:, [0, 2, 3]], data.y[rows] == 0, data.y[rows] == 1])

    def with_answers(rows, k):
        tried = [np.column_stack([data.x[rows][:, :1], np.full(len(rows), v), data.x[rows][:, 2:]]) for v in range(3)]
        logs = [
            log_softmax(said(data, k, x.astype(np.float32)), axis=1)[np.arange(len(rows)), data.y[rows]] for x in tried
        ]
        return np.column_stack([without(rows), *logs])

    imputed = logistic(without(own), data.x[own, 1].astype(int), without(asked))
    for k in range(2):
        np.testing.assert_array_equal(frame.loc[k, "imputed"], imputed)
        learned = logistic(with_answers(own, k), data.x[own, 1].astype(int), with_answers(asked, k))
        assert (frame.loc[k, "guess"] == learned).mean() > 0.99  # float32 answers


def rows_of(frame, metric):
    rows = tidy(measure_attribute(frame, "a")).query("metric == @metric and repeat == 'all'")
    return rows.set_index(["of", "by"] if metric == "attribute_accuracy" else "of")[["value", "low", "high"]]


def test_what_a_model_remembers_is_added_to_members_and_to_nobody_else(known):
    data = planted()
    frame = attacked("csmia", remembering(data, known), data)
    added, accuracy = (rows_of(frame, metric) for metric in ("attribute_added", "attribute_accuracy"))
    right, imputed = (frame[column] == frame["truth"] for column in ("guess", "imputed"))
    inside = frame["member"]
    assert added.loc["members", "value"] == pytest.approx(right[inside].mean() - imputed[inside].mean())
    assert accuracy.loc[("members", "attack"), "value"] == pytest.approx(right[inside].mean())
    assert accuracy.loc[("nonmembers", "imputation"), "value"] == pytest.approx(imputed[~inside].mean())
    assert added.loc["members", "low"] > 0.2
    assert added.loc["difference", "low"] > 0.2
    assert added.loc["nonmembers", "high"] < 0  # imputation knows what this model hides


@pytest.mark.parametrize("name", NAMES)
def test_models_that_never_saw_the_records_add_no_more_to_members(name, known):
    """Of 100 worlds the 95 % interval misses 0 in 5; more than 11 have a chance of 0.4 %.

    Roles are drawn by chance, so that neither these very models nor imputation know members by feature 0, the row.
    """
    missed = 0
    for seed in range(100):
        data = planted(seed)
        rng = np.random.default_rng([seed, 1])
        noise, rows = rng.normal(size=(2, 4, 2)), np.split(rng.permutation(3 * SIZE), 3)
        data = data._replace(roles=dict(zip(data.roles, rows, strict=True)))
        target = known(lambda k, x, noise=noise: x / [100, 1, 1, 1] @ noise[k], 2, np.tile(rows[0], (2, 1)))
        found = rows_of(attacked(name, target, data), "attribute_added").loc["difference"]
        missed += not found["low"] <= 0 <= found["high"]
    assert missed <= 11


def test_by_coins_the_differences_are_over_the_records_in_and_out_of_each_model(known):
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"repeat": np.repeat(np.arange(6), 80), "record": np.tile(np.arange(80), 6), "feature": 3})
    frame["member"] = rng.random(480) < 0.5
    frame["truth"], frame["imputed"], frame["guess"] = rng.integers(3, size=(3, 480))
    frame["guess"] = frame["guess"].where(~frame["member"], frame["truth"])
    gain = (frame["guess"] == frame["truth"]).astype(int) - (frame["imputed"] == frame["truth"])
    found = rows_of(frame, "attribute_added")
    for of, inside in (("members", frame["member"]), ("nonmembers", ~frame["member"])):
        assert found.loc[of, "value"] == pytest.approx(gain[inside].mean())
    assert found.loc["members", "low"] > 0.4
    assert found.loc["nonmembers", "low"] < 0 < found.loc["nonmembers", "high"]


def test_few_values_are_categories_and_many_are_intervals_of_equal_weight():
    few = guessing.question(np.array([0.0, 1, 1]), np.array([0.0, 1, 1, 5]), categories=3, intervals=5)
    assert few.tried.tolist() == [0, 1, 5]
    assert few.code(np.array([0.0, 1, 5])).tolist() == [0, 1, 2]
    values = np.random.default_rng(0).normal(size=1000)
    many = guessing.question(values, values, categories=10, intervals=4)
    assert np.bincount(many.code(values)).tolist() == [250] * 4
    np.testing.assert_allclose(many.tried, [np.median(part) for part in np.split(np.sort(values), 4)])


def test_where_most_values_are_equal_fewer_intervals_are_asked():
    values = np.concatenate([np.zeros(900), np.arange(1, 101)])
    asked = guessing.question(values, values, categories=10, intervals=5)
    assert len(asked.tried) == len(np.unique(asked.code(values))) == len(asked.edges) + 1


def test_trees_impute_what_no_line_can():
    x = np.random.default_rng(0).normal(size=(600, 2))
    code = (x[:, 0] * x[:, 1] > 0).astype(np.int64)
    right = {
        by: (guessing.fitted(by, x[:400], code[:400], 2)(x[400:]).argmax(1) == code[400:]).mean()
        for by in ("linear", "trees")
    }
    assert right["trees"] > 0.85 > 0.65 > right["linear"]


def test_a_value_that_the_attacker_never_saw_has_no_chance():
    assert guessing.fitted("linear", np.ones((3, 1)), np.array([1, 1, 1]), 3)(np.ones((1, 1))).tolist() == [[0, 1, 0]]
    found = guessing.fitted("linear", np.arange(4.0)[:, None], np.array([0, 0, 2, 2]), 3)(np.ones((1, 1)))
    assert found[0, 1] == 0
    assert found.sum() == pytest.approx(1)


def test_trained_models_are_asked_alike(overfitted):
    """Numbers and a real network: every attack's frame is whole, and probabilities are those of its torch twin."""
    data, target, _ = overfitted
    x = data.x[data.targets[:5]]
    twin = target.module(1)(torch.from_numpy(x)).softmax(1).detach().numpy()
    np.testing.assert_allclose(guessing.probabilities(target, x, data.n_classes)[1], twin, atol=1e-6)
    for name in NAMES:
        frame = attacked(name, target, data)
        assert len(frame) == 2 * len(data.targets)
        assert set(frame["truth"]) == set(range(5))


def test_the_surest_guesses_and_guesses_of_numbers_are_measured_beside_imputation(known):
    """What the model remembers makes members' guesses surer and nearer: the same rows as a count by hand."""
    data = planted()
    frame = attacked("csmia", remembering(data, known), data)
    inside = frame[frame["member"]]
    shares = []
    for _, run in inside.groupby("repeat"):
        least = np.sort(run["confidence"])[-round(0.1 * len(run))]
        surest = run[run["confidence"] >= least]
        shares.append((surest["guess"] == surest["truth"]).mean())
    rows = tidy(measure_attribute(frame, "a"))
    ppv = rows[rows["metric"] == "attribute_ppv"].set_index("by")
    assert ppv.loc["attack", "value"] == pytest.approx(np.mean(shares))
    assert set(ppv["top"]) == {0.1}
    (added,) = rows.loc[rows["metric"] == "attribute_ppv_added", "value"]
    assert added == pytest.approx(np.subtract(*ppv["value"]))
    assert frame["value"].isna().all()  # categories have no numbers
    assert "attribute_r2" not in set(rows["metric"])
    few = attacked("csmia", remembering(data, known), data, SETTINGS | {"categories": 2, "intervals": 3})
    assert not few["value"].isna().any()
    members = few[few["member"] & (few["repeat"] == 0)]
    expected = (
        1
        - ((members["value"] - members["guess_value"]) ** 2).sum()
        / ((members["value"] - members["value"].mean()) ** 2).sum()
    )
    rows = tidy(measure_attribute(few[few["repeat"] == 0], "a")).set_index(["metric", "by"])["value"]
    assert rows["attribute_r2", "attack"] == pytest.approx(expected, rel=1e-4)


def test_attacks_of_a_study_ask_the_same_features():
    assert {ATTACKS[name].draws_as for name in NAMES} == {"attributes"}
    assert ATTACKS["yeom_attribute"].draws_as == "yeom_attribute"
