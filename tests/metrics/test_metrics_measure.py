"""From score frames to rows."""

import subprocess
import sys
import time

import numpy as np
import pandas as pd
import pytest
from scipy.stats import norm
from sklearn.metrics import roc_auc_score

from dp_leakage.metrics import measure_attribute, measure_membership, measure_strongest, measure_training
from dp_leakage.metrics.attribute import value_advantage
from dp_leakage.metrics.intervals import difference, wilson
from dp_leakage.metrics.majority import constant_answers, guessing
from dp_leakage.metrics.rows import MEASURED, NUMBERS, qualifiers, tidy, words_of
from dp_leakage.metrics.thresholds import SHARES


def membership(repeats=3, n=400, shift=0.5, seed=0):
    rng = np.random.default_rng(seed)
    record = rng.permutation(10 * n)[:n]
    member = rng.random(n) < 0.5
    score = rng.normal(size=(repeats, n)) + shift * member
    return pd.DataFrame(
        {
            "repeat": np.repeat(np.arange(repeats), n),
            "record": np.tile(record, repeats),
            "member": np.tile(member, repeats),
            "score": score.ravel(),
            "flagged": score.ravel() > 0.2,
        }
    )


def attribute(repeats=3, n=300, features=4, skill=0.3, seed=0):
    rng = np.random.default_rng(seed)
    shape = (repeats, n, features)
    truth = np.broadcast_to(rng.random((n, features)) < 0.4, shape)
    member = rng.random(n) < 0.5
    guess = np.where(rng.random(shape) < skill * (1 + member[:, None]), truth, rng.random(shape) < 0.5)
    return pd.DataFrame(
        {
            "repeat": np.repeat(np.arange(repeats), n * features),
            "record": np.tile(np.repeat(np.arange(n), features), repeats),
            "member": np.tile(np.repeat(member, features), repeats),
            "feature": np.tile(np.arange(features) * 7, repeats * n),
            "truth": truth.ravel(),
            "guess": guess.ravel(),
        }
    )


def table(rows):
    """Values by metric, qualifiers in words, and repeat."""
    frame = tidy(rows)
    assert list(frame.columns) == [*MEASURED, *qualifiers(frame)]
    said = [words_of(row) for row in frame.to_dict("records")]
    return frame.assign(said=said).set_index(["metric", "said", "repeat"])[NUMBERS]


def test_membership_rows_are_those_of_the_contract():
    rows = table(measure_membership(membership(), "yeom"))
    per_repeat = [
        ("reached_advantage", "attack=yeom"),
        ("reached_tpr", "attack=yeom, fpr=0.01"),
        ("reached_tpr", "attack=yeom, fpr=0.001"),
        ("membership_advantage", "attack=yeom"),
        ("balanced_accuracy", "attack=yeom"),
        ("membership_auc", "attack=yeom"),
        *(("members_exposed", f"attack=yeom, fpr={f}, counting=mean") for f in (0.01, 0.02, 0.05)),
    ]
    expected = {(*key, repeat) for key in per_repeat for repeat in ("0", "1", "2", "all")}
    expected |= {("nonmembers_worth", f"attack=yeom, fpr={f:g}", "all") for f in (0.01, 0.001)}
    expected |= {("members_exposed", f"attack=yeom, fpr={f}, counting=all_runs", "all") for f in (0.01, 0.02, 0.05)}
    thresholds = [key for key in rows.index if key[0] == "threshold_advantage"]
    assert len(thresholds) == len(SHARES)
    assert set(rows.index) - {*thresholds} == expected
    # Some 200 non-members a run cannot measure 0.1 %, and single runs not 1 % either, nor whom it exposes.
    assert rows["value"].isna().sum() == 4 + 3 + 3
    rows = rows.dropna()
    assert (rows["low"] <= rows["value"]).all()
    assert (rows["value"] <= rows["high"]).all()


def test_membership_rows_agree_with_direct_counting():
    frame = membership()
    rows = table(measure_membership(frame, "a"))
    for repeat, run in frame.groupby("repeat"):
        rates = run.groupby("member")["flagged"].mean()
        value = rows.loc[("membership_advantage", "attack=a", str(repeat)), "value"]
        assert value == pytest.approx(rates[True] - rates[False])


@pytest.mark.parametrize(
    "measure", [measure_membership, lambda frame, a, *given: measure_strongest({a: frame}, *given)]
)
def test_without_single_repeats_the_rows_over_all_of_them_are_the_same(measure):
    both, only = (pd.DataFrame(measure(membership(), "a", repeats)) for repeats in (True, False))
    assert set(only["repeat"]) == {"all"} < set(both["repeat"])
    pd.testing.assert_frame_equal(both[both["repeat"] == "all"].reset_index(drop=True), only)


@pytest.mark.parametrize(("measure", "frame"), [(measure_membership, membership()), (measure_attribute, attribute())])
def test_order_of_rows_changes_nothing(measure, frame):
    shuffled, straight = (table(measure(f, "a")) for f in (frame.sample(frac=1, random_state=1), frame))
    pd.testing.assert_frame_equal(shuffled, straight)


@pytest.mark.parametrize(
    ("spoil", "message"),
    [
        (lambda f: f.assign(score=np.where(f.index == 5, np.nan, f["score"])), "NaN"),
        (lambda f: f.drop(index=5), "same records"),
        (lambda f: f.assign(record=f["record"] + (f.index == 5)), "same records"),
        (lambda f: f[f["member"]], "non-members"),
        (lambda f: f.iloc[:0], "same records"),
    ],
)
def test_a_damaged_score_frame_is_refused(spoil, message):
    with pytest.raises(ValueError, match=message):
        measure_membership(spoil(membership()), "a")


def test_attribute_rows_agree_with_direct_counting():
    frame = attribute()
    rows = table(measure_attribute(frame, "a"))
    gaps, released = [], []
    for _, run in frame.groupby("repeat"):
        right = (run["truth"] == run["guess"]).groupby(run["member"]).mean()
        gaps.append(right[True] - right[False])
        rates = run.groupby(["feature", "truth"])["guess"].mean().unstack()
        released.append((rates[True] - rates[False]).mean())
    for definition, values in (("gap", gaps), ("released", released)):
        key = "attribute_advantage", f"attack=a, definition={definition}"
        assert rows.loc[(*key, "all"), "value"] == pytest.approx(np.mean(values))
        assert rows.loc[(*key, "1"), "value"] == pytest.approx(values[1])


@pytest.mark.parametrize("records", [1, 2, 3, 5])
@pytest.mark.parametrize("tpr", [0.5, 0.8])
def test_value_advantage_of_rare_values_covers_the_truth(records, tpr):
    """Five features with so many true values of 100; 600 draws, 0.92 is undercut once in 1,500 runs at 0.95."""
    rng, draws, hits = np.random.default_rng(records), 600, 0
    for _ in range(draws):
        truth = (rng.random((1, 100, 5)).argsort(axis=1) < records).astype(bool)
        guess = rng.random(truth.shape) < np.where(truth, tpr, 0.1)
        estimate = value_advantage(truth, guess)
        hits += estimate.low <= tpr - 0.1 <= estimate.high
    assert hits / draws >= 0.92


def test_value_advantage_of_one_feature_is_tpr_less_fpr_with_newcombes_interval():
    """Of one record fewer in each rate, since the variance p(1 − p)/(n − 1) is the unbiased one."""
    rng = np.random.default_rng(0)
    truth = rng.random((1, 300, 1)) < 0.4
    guess = np.where(rng.random(truth.shape) < 0.3, truth, rng.random(truth.shape) < 0.5)
    hit, false = (wilson(guess[among].mean(), among.sum() - 1) for among in (truth, ~truth))
    assert tuple(value_advantage(truth, guess)) == pytest.approx(tuple(difference(hit, false)))


def test_value_advantage_covers_the_truth_where_features_share_their_records():
    """Correlated within a record; 600 draws, 0.92 is undercut once in 1,500 runs at 0.95."""
    rng = np.random.default_rng(8)
    draws, hits, n, features = 600, 0, 200, 4
    for _ in range(draws):
        truth = (rng.normal(size=(n, 1)) + rng.normal(size=(n, features)) > 0)[None]
        known = (rng.normal(size=(n, 1)) + rng.normal(size=(n, features)) > 1)[None]
        guess = np.where(known, truth, (rng.normal(size=(n, 1)) + rng.normal(size=(n, features)) > 0)[None])
        estimate = value_advantage(truth, guess)
        hits += estimate.low <= 0.23975 <= estimate.high  # P(N(0, 2) > 1)
    assert hits / draws >= 0.92


def test_a_feature_with_one_value_adds_nothing_to_the_advantage():
    truth = np.zeros((1, 100, 2), dtype=bool)
    truth[:, :50, 0] = True
    guess = truth.copy()
    assert value_advantage(truth, guess).value == pytest.approx(0.5)
    assert value_advantage(truth[..., 1:], guess[..., 1:]) == (0.0, 0.0, 0.0)


def history(*accuracies):
    rows = [
        {"repeat": r, "epoch": e, "train_accuracy": 0.9, "test_accuracy": a if e == 20 else 0.0}
        for r, a in enumerate(accuracies)
        for e in (20, 10)
    ]
    return pd.DataFrame(rows)


def test_training_rows_are_the_last_epochs_with_wilson_intervals():
    rows = table(measure_training(history(0.4, 0.5), n_train=1000, n_test=500))
    assert tuple(rows.loc[("test_accuracy", "", "1")]) == pytest.approx(wilson(0.5, 500))
    assert rows.loc[("test_accuracy", "", "all"), "value"] == pytest.approx(0.45)
    assert tuple(rows.loc[("train_accuracy", "", "all")]) == pytest.approx(wilson(0.9, 1000))
    assert "accuracy_loss" not in rows.index.get_level_values("metric")


def test_accuracy_loss_is_relative_to_the_mean_baseline_accuracy():
    rows = table(measure_training(history(0.4, 0.3), history(0.5, 0.7), n_train=1000, n_test=500))
    assert rows.loc[("accuracy_loss", "", "0"), "value"] == pytest.approx(1 - 0.4 / 0.6)
    assert rows.loc[("accuracy_loss", "", "all"), "value"] == pytest.approx(1 - 0.35 / 0.6)


def test_what_guessing_reaches_stands_beside_the_accuracy_and_its_loss():
    rows = table(measure_training(history(0.4, 0.3), history(0.5, 0.7), n_train=1000, n_test=500, guessing=0.3))
    assert rows.loc[("guessing_accuracy", "", "all"), "value"] == 0.3
    assert rows.loc[("guessing_loss", "", "all"), "value"] == pytest.approx(1 - 0.3 / 0.6)


def test_guessing_names_the_most_frequent_class_or_any_by_chance():
    trained, tested = np.array([0] * 98 + [1] * 2), np.array([0] * 49 + [1])
    assert guessing(trained, tested) == 0.98
    assert constant_answers(trained, tested).sum() == 49
    assert guessing(np.array([0, 0, 1]), np.array([1, 1, 1, 0])) == 0.5
    assert constant_answers(np.array([0, 0, 1]), np.array([1, 1, 1, 0])) is None


def test_a_baseline_loses_exactly_nothing_against_itself():
    own = history(0.5, 0.7)
    rows = table(measure_training(own, own, n_train=1000, n_test=500))
    assert tuple(rows.loc[("accuracy_loss", "", "all")]) == (0.0, 0.0, 0.0)
    assert rows.loc[("accuracy_loss", "", "0"), "value"] == pytest.approx(1 - 0.5 / 0.6)


def test_accuracy_loss_covers_the_truth():
    """Accuracies of 5 and 5 trainings on the same records; 0.93 is undercut once in 500 runs at 0.95."""
    rng = np.random.default_rng(5)
    draws, hits = 1000, 0
    for _ in range(draws):
        private = np.full(5, rng.binomial(1000, 0.12) / 1000) + rng.normal(0, 0.005, 5)
        base = np.full(5, rng.binomial(1000, 0.17) / 1000) + rng.normal(0, 0.005, 5)
        rows = measure_training(history(*private), history(*base), n_train=1000, n_test=1000)
        row = next(r for r in rows if r["metric"] == "accuracy_loss" and r["repeat"] == "all")
        hits += row["low"] <= 1 - 0.12 / 0.17 <= row["high"]
    assert hits / draws >= 0.93


def test_a_cell_of_paper_size_is_measured_in_a_moment():
    """Five repeats of 20,000 records, three attacks: some 0.2 s; the limit leaves room for a busy machine."""
    frame = membership(repeats=5, n=20_000)
    guesses = attribute(repeats=5, n=20_000, features=5)
    started = time.process_time()
    measure_membership(frame, "a")
    measure_membership(frame, "b")
    measure_attribute(guesses, "c")
    assert time.process_time() - started < 2.0


def test_metrics_import_nothing_slow():
    code = "import sys, dp_leakage.metrics; print({'torch', 'sklearn', 'scipy.stats'} & set(sys.modules))"
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert result.stdout.strip() == "set()"


def of_persons(leak: str, seed: int) -> pd.DataFrame:
    """Score files of 8 runs by coins: a person's score is the sum of the records' scores."""
    rng, rows = np.random.default_rng(seed), []
    owner = np.repeat(np.arange(200), rng.integers(1, 6, 200))
    for repeat in range(8):
        member = rng.random(200) < 0.5
        score = rng.normal(size=len(owner)) + (0.8 * member[owner] if leak else 0)
        apart = [score[owner == one] for one in range(200)]
        own = {"score": [each.sum() for each in apart], "of_records": apart}
        rows.append(pd.DataFrame({"repeat": repeat, "record": range(200), "member": member, "flagged": False} | own))
    return pd.concat(rows)


def test_single_records_of_persons_are_measured_beside_the_persons():
    frame = of_persons("all", 0).sample(frac=1, random_state=0)
    rows = pd.DataFrame(measure_membership(frame, "x"))
    found = {row.metric: row for row in rows[rows["repeat"] == "all"].itertuples() if row.fpr != 0.001}
    apart = frame.explode("of_records").assign(score=lambda rows: rows["of_records"].astype(float))
    areas = [roc_auc_score(run["member"], run["score"]) for _, run in apart.groupby("repeat")]
    assert found["record_auc"].value == pytest.approx(np.mean(areas), abs=1e-12)
    assert found["record_auc"].low < norm.cdf(0.8 / np.sqrt(2)) < found["record_auc"].high
    assert found["record_advantage"].low < 2 * norm.cdf(0.4) - 1 < found["record_advantage"].high
    assert found["record_tpr"].low < norm.sf(norm.isf(0.01) - 0.8) < found["record_tpr"].high
    assert found["record_auc"].high < found["membership_auc"].low  # all records of a person tell more than one
    alone = pd.DataFrame(measure_membership(frame.drop(columns="of_records"), "x"))
    pd.testing.assert_frame_equal(rows[~rows["metric"].str.startswith("record_")].reset_index(drop=True), alone)


def test_where_nothing_leaks_no_record_is_told_from_others():
    rows = pd.DataFrame(measure_membership(of_persons("", 1), "x")).set_index("metric")
    assert rows.loc["record_auc", "low"] <= 0.5 <= rows.loc["record_auc", "high"]
    assert rows.loc["record_advantage", "low"] <= 0 <= rows.loc["record_advantage", "high"]
