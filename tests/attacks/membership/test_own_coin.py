"""By coins, no attack's score of a record under a target knows the target's own coin for it, not even in its last bit.

Then without a leak scores and coins are independent exactly, however answers are rounded or tied.
"""

from importlib import import_module

import numpy as np
import pandas as pd
import pytest
from loading import REPO
from registries import unchanged
from sklearn.datasets import load_digits

from dp_leakage import plugins
from dp_leakage.attacks import ATTACKS
from dp_leakage.attacks.membership import lira
from dp_leakage.attacks.membership.references import leave_one_out, mean_where, moments
from dp_leakage.attacks.person_odds import learned_odds, odds
from dp_leakage.attacks.signals import Signals, score_columns
from dp_leakage.common.user_code import FILES
from dp_leakage.data.dataset import Dataset
from dp_leakage.engines.answers import signals_of
from dp_leakage.engines.estimator import answers
from dp_leakage.metrics import measure_membership

POOL, OTHERS, MODELS = 200, 60, 6
LOGIT = np.log(9.0)
# Kinds of answers → margins from those of a model that answers with all digits.
ANSWERS = {
    "constant": lambda margin: np.full_like(margin, -LOGIT),
    "two values": lambda margin: np.where(margin > 0, LOGIT, -LOGIT),
    "rounded": lambda margin: logit(np.clip((1 / (1 + np.exp(-margin))).round(1), 0.01, 0.99)),
    "continuous": lambda margin: margin,
}
MEMBERSHIP = [name for name, entry in ATTACKS.items() if entry.family == "membership"]
SMALL = {
    "shokri": {"epochs": 2, "hidden": [4]},
    "shokri_trees": {"rounds": 3, "leaves": 4},
    "quantile_regression": {"rounds": 3, "leaves": 4},
    "combined": {"rounds": 5},
    "label_noise": {"copies": 4, "noise": [0.5]},
    "boundary": {"rounds": 1, "copies": 4},
}


def logit(probability):
    return np.log(probability / (1 - probability))


def said(kind, models=MODELS, seed=0, gain=0.0, pool=POOL, role="pool"):
    """Signals of models by coins, with everything that attacks read: a record's own level, noise, and maybe a leak."""
    rng, n = np.random.default_rng(seed), pool + OTHERS
    inside = np.arange(n) < pool
    inside = inside & (rng.random((models, n)) < 0.5)
    margin = 2 + 3 * rng.normal(size=n) + 0.5 * rng.normal(size=(models, n)) + gain * inside
    margin = ANSWERS[kind](margin)
    own, share = 1 / (1 + np.exp(-margin)), rng.random(n)
    y = rng.integers(3, size=n)
    probability = np.empty((models, n, 3), np.float32)
    for place, part in enumerate((own, (1 - own) * share, (1 - own) * (1 - share))):
        np.put_along_axis(probability, ((y + place) % 3)[None, :, None].repeat(models, 0), part[..., None], axis=2)
    rank = (probability >= np.take_along_axis(probability, y[None, :, None], 2)).sum(axis=2).astype(np.int32)
    losses = np.log1p(np.exp(-margin)) * np.linspace(2, 1, 4)[:, None, None]
    roles = np.repeat([role, "target_nonmembers"], [pool, OTHERS])
    x, person = rng.normal(size=(n, 2)).astype(np.float32), np.arange(n) // 2
    given = (rank == 1, rank, probability, x, losses.astype(np.float32), person)
    return Signals(np.arange(n), y, roles, inside, margin[None], *given)


def scores(name, signals):
    """Of an attack on all models of a study by coins, (R, n)."""
    entry = ATTACKS[name]
    module, settings = import_module(entry.module), {**entry.settings, **SMALL.get(name, {})}
    if name == "highest_posterior":  # its threshold is from records of the attacker's own, beside those asked about
        roles = np.concatenate([signals.role[:-10], np.repeat("shadow_pool", 10)])
        signals = Signals(**{**signals.arrays(), "role": roles})
    if entry.needs == "reference":
        return leave_one_out(module, signals, signals, settings, 0).score
    fitted = module.fit(said("continuous", 2, seed=5, role="shadow_pool"), settings, 0) if entry.learns else None
    return module.score(signals, fitted, settings, 0).score


def turned(signals, r):
    """The same with all coins of target r on their other side."""
    inside = signals.trained_on.copy()
    inside[r, :POOL] = ~inside[r, :POOL]
    return Signals(**{**signals.arrays(), "trained_on": inside})


def own_coins_tell(name, kind, models=MODELS):
    """The targets whose scores change in any bit when their own coins are turned."""
    signals = said(kind, models)
    before = scores(name, signals)
    after = [scores(name, turned(signals, r)) for r in range(models)]
    if ATTACKS[name].needs == "reference" and kind == "continuous":  # the coins are used: for the others' scores
        assert all(not np.array_equal(np.delete(found, r, 0), np.delete(before, r, 0)) for r, found in enumerate(after))
    return [r for r, found in enumerate(after) if found[r].tobytes() != before[r].tobytes()]


@pytest.mark.parametrize("kind", ANSWERS)
@pytest.mark.parametrize("name", [name for name in MEMBERSHIP if ATTACKS[name].reads != "models"])
def test_turning_a_targets_own_coins_changes_no_bit_of_its_scores(name, kind):
    assert own_coins_tell(name, kind) == []


@pytest.mark.parametrize("name", [name for name in MEMBERSHIP if ATTACKS[name].needs == "reference"])
def test_nor_with_so_few_repeats_that_some_records_have_no_reference(name):
    assert own_coins_tell(name, "continuous", 3) == []


@pytest.mark.parametrize("name", [name for name in MEMBERSHIP if ATTACKS[name].reads == "models"])
def test_nor_those_of_attacks_that_ask_the_models_themselves(name, known):
    rng = np.random.default_rng(0)
    x, weights = rng.normal(size=(POOL + OTHERS, 4)).astype(np.float32), rng.normal(size=(MODELS, 4, 3))
    y = (x @ weights.mean(axis=0)).argmax(axis=1)
    roles = {"pool": np.arange(POOL), "target_nonmembers": np.arange(POOL, len(x) - 1)}
    inside, data = rng.random((MODELS, POOL)) < 0.5, Dataset(x, y, roles, np.array([], np.int64))
    settings = {**ATTACKS[name].settings, **SMALL[name]}

    def found(held):
        sets = np.stack([np.where(row, np.arange(POOL), len(x) - 1) for row in held])  # padded with a record of no role
        models = known(lambda k, rows: rows @ weights[k], MODELS, sets)
        frame = import_module(ATTACKS[name].module).score(models, data, None, settings, 0)
        assert np.array_equal(frame["member"].to_numpy().reshape(MODELS, -1), held)
        return frame["score"].to_numpy().reshape(MODELS, -1)

    before = found(inside)
    for r in range(MODELS):
        held = inside.copy()
        held[r] = ~held[r]
        assert before[r].tobytes() == found(held)[r].tobytes()


def test_nor_those_of_a_users_own_attack():
    with unchanged():
        plugins.load([REPO / "docs" / "examples" / "plugins"])
        own = [name for name, entry in ATTACKS.items() if entry.module in FILES and entry.family == "membership"]
        assert own
        for name in own:
            assert own_coins_tell(name, "continuous") == []


@pytest.mark.parametrize("kind", ANSWERS)
def test_nor_the_learned_odds_of_whole_persons(kind):
    """Two records each, whose coins are one."""
    signals = said(kind)
    inside = signals.trained_on.copy()
    inside[:, 1::2] = inside[:, ::2]
    signals = Signals(**{**signals.arrays(), "trained_on": inside})
    settings = ATTACKS["lira_online"].settings

    def found(own):
        score = leave_one_out(lira, own, own, settings, 0).score
        return odds(learned_odds(lira, own, own, settings, 0, by_coins=True), score, np.arange(POOL) // 2)

    before = found(signals)
    for r in range(MODELS):
        assert before[r].tobytes() == found(turned(signals, r))[r].tobytes()


# ---------------------------------------------------------------------- moments of the others
@pytest.mark.parametrize("kind", ANSWERS)
def test_moments_of_the_others_are_those_that_numpy_finds_without_the_model(kind):
    signals = said(kind, 7)
    margin, inside = signals.margin[0], signals.trained_on
    found = moments(margin, inside, left_out=True)
    for k, i in np.ndindex(*margin.shape):
        others = np.arange(len(margin)) != k
        values = margin[others, i][inside[others, i]]
        assert found.number[k, i] == len(values)
        if len(values):
            assert found.mean[k, i] == pytest.approx(values.mean(), rel=1e-12, abs=1e-12)
            assert found.squares[k, i] == pytest.approx(((values - values.mean()) ** 2).sum(), rel=1e-9, abs=1e-12)


def test_equal_values_have_their_own_mean_and_no_spread_at_all():
    inside = said("constant", 9).trained_on
    found = moments(np.full(inside.shape, np.log(1 / 9)), inside, left_out=True)
    assert set(found.mean[found.number > 0]) == {np.log(1 / 9)}
    assert not found.squares.any()


def test_a_models_own_value_is_not_among_those_of_the_others():
    signals = said("continuous")
    values = signals.margin[0].copy()
    before = mean_where(values, signals.trained_on, left_out=True)
    values[2] += 100
    assert before[2].tobytes() == mean_where(values, signals.trained_on, left_out=True)[2].tobytes()


# ---------------------------------------------------------------------- no leak, no finding
def leaks(name, signals):
    """Whether the interval of the AUC, or of the advantage at chosen thresholds, lies above chance; and the AUC."""
    rows = measure_membership(frame(name, signals), name)
    found = {row["metric"]: row for row in rows if row["repeat"] == "all"}
    area = found["membership_auc"]
    return area["low"] > 0.5 or found["reached_advantage"]["low"] > 0, area["value"]


def frame(name, signals):
    said = {"score": scores(name, signals), "flagged": np.zeros(signals.asked.trained_on.shape, bool)}
    return pd.DataFrame(score_columns(signals.asked, said))


@pytest.mark.parametrize("models", [4, 8])
@pytest.mark.parametrize("kind", ["constant", "two values", "rounded"])
@pytest.mark.parametrize("name", ["lira", "lira_online", "lira_shrunk"])
def test_answers_that_are_equal_or_rounded_show_no_leak_where_there_is_none(name, kind, models):
    """Of 20 draws two 95 % intervals each, so one-sided 5 % in all; 7 or more would be chance once in 1/30,000."""
    found = [leaks(name, said(kind, models, seed))[0] for seed in range(20)]
    assert sum(found) < 7


@pytest.mark.parametrize("name", ["lira", "lira_online", "lira_shrunk"])
def test_a_leak_is_found_in_all_draws_from_continuous_and_from_rounded_answers(name):
    """A gain of .6, at noise of .5, of 8 models and 200 records: the area lies some ten standard errors above ½."""
    for kind in ("rounded", "continuous"):
        assert all(leaks(name, said(kind, 8, seed, gain=0.6))[0] for seed in range(5)), kind


def test_a_classifier_that_learns_nothing_shows_no_leak():
    """scikit-learn's dummy, trained, asked and attacked as in a study by coins; it finds all classes equally likely.

    Each area under the ROC is within 5 standard errors of ½, of 8 models and 300 records.
    """
    digits, rng = load_digits(), np.random.default_rng(0)
    x, y = digits.data[:400].astype(np.float32), digits.target[:400]
    data = Dataset(x, y, {"pool": np.arange(300), "target_nonmembers": np.arange(300, 400)}, np.array([], np.int64))
    subsets = [np.flatnonzero(row) for row in rng.random((8, 300)) < 0.5]
    given = {"architecture": {"name": "sklearn.dummy:DummyClassifier", "strategy": "uniform"}}
    found = answers(given, data, subsets, list(range(8)))
    signals = signals_of(found, data, np.arange(400), np.repeat(["pool", "target_nonmembers"], [300, 100]), 1)
    for name in MEMBERSHIP:
        if ATTACKS[name].reads == "signals":
            shown, area = leaks(name, signals)
            assert not shown, name
            assert abs(area - 0.5) < 5 * 0.29 * (1 / 1200 + 1 / 1200) ** 0.5, name
