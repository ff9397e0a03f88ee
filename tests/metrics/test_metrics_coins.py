import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from sklearn.metrics import roc_auc_score, roc_curve

from dp_leakage.metrics.coins import aligned, auc, named_at_fpr, paired_difference, rate_difference, share_above
from dp_leakage.metrics.intervals import Influences, Z, crossed
from dp_leakage.metrics.measure import measure_membership

sys.path.append(str(Path(__file__).parents[2] / "benchmarks"))
from interval_coverage import STUDIES, covered, flagged
from interval_coverage import drawn as study


def test_the_values_are_the_means_of_what_scikit_learn_finds_in_each_run():
    scores, member = study(5, 120, "normal", np.random.default_rng(0))
    scores = np.round(scores, 1)  # ties
    flags = scores > 0.7
    own = [roc_auc_score(m, s) for s, m in zip(scores, member, strict=True)]
    assert auc(scores, member).value == pytest.approx(np.mean(own), abs=1e-12)
    rates = [f[m].mean() - f[~m].mean() for f, m in zip(flags, member, strict=True)]
    assert rate_difference(flags.astype(float), member).value == pytest.approx(np.mean(rates), abs=1e-12)


def test_records_are_named_at_one_threshold_that_at_most_the_allowed_share_of_others_passes():
    scores, member = study(8, 300, "normal", np.random.default_rng(1))
    fpr, tpr, _ = roc_curve(member.ravel(), aligned(scores).ravel(), drop_intermediate=False)
    for rate in (0.01, 0.05, 0.2):
        named = named_at_fpr(scores, member, rate)
        assert named[member].mean() == pytest.approx(tpr[fpr <= rate].max(), abs=1e-12)
        assert named[~member].mean() <= rate


def test_the_influences_on_the_share_above_a_threshold_have_the_spread_of_the_rate():
    """Over 200 studies of 500 records and 16 runs; the simulation's own error is 5 %."""
    rng, values, errors = np.random.default_rng(2), [], []
    for _ in range(200):
        found = share_above(*study(16, 500, "normal", rng), 0.05)
        values.append(found.value)
        errors.append(crossed(found).high - found.value)
    assert np.median(errors) / Z == pytest.approx(np.std(values), rel=0.2)


@pytest.mark.parametrize("measure", [auc, flagged])
def test_the_influences_say_what_leaving_a_record_out_does(measure):
    scores, member = study(3, 400, "normal", np.random.default_rng(2))
    found = measure(scores, member)
    (block,) = found.blocks
    assert block.mean() == pytest.approx(0, abs=1e-12)
    for record in range(5):
        kept = np.arange(400) != record
        moved = found.value - measure(scores[:, kept], member[:, kept]).value
        assert moved == pytest.approx(block[:, record].mean() / 399, abs=5e-5)


@pytest.mark.parametrize("kind", ["none", "normal", "heavy", "few"])
def test_intervals_over_runs_and_records_hold_the_truth_as_often_as_they_say(kind):
    """Of 300 studies 95 % ± 1.3 %: outside of 90 to 99 % by chance once in 5,000 tests of an interval of 95 %."""
    assert all(0.90 <= share <= 0.99 for share in covered(8, 200, kind, 300).values())


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["none", "normal", "heavy", "few"])
@pytest.mark.parametrize(("repeats", "records"), STUDIES)
def test_coverage_is_within_94_and_97_percent_but_for_the_simulations_own_chance(repeats, records, kind):
    studies = STUDIES[repeats, records]
    chance = 3 * np.sqrt(0.95 * 0.05 / studies)  # false alarm 3e-3 for each
    for name, found in covered(repeats, records, kind, studies).items():
        assert 0.94 - chance <= found <= 0.97 + chance, (name, found)


def test_two_cells_on_the_same_coins_are_compared_more_sharply_than_apart_and_the_interval_holds():
    rng, held, widths = np.random.default_rng(7), 0, []
    for _ in range(200):
        member = rng.random((8, 300)) < 0.5
        gain, own = 0.5 + 0.3 * rng.normal(size=300), rng.normal(size=300)
        shared = own + member * gain + rng.normal(size=(8, 300))
        a, b = (auc(shared + 0.3 * rng.normal(size=(8, 300)), member) for _ in range(2))
        found = paired_difference(a, b)
        held += found.low <= 0 <= found.high
        alone = [crossed(one) for one in (a, b)]
        widths.append((found.high - found.low) / np.hypot(*(one.high - one.low for one in alone)))
    assert 0.90 <= held / 200 <= 0.99
    assert np.median(widths) < 0.5


def test_the_auc_of_models_trained_on_none_of_the_records_is_a_half_within_its_interval():
    """Coins that nothing depends on: in 95 of 100 studies; 85 or fewer of 100 by chance once in 3,000."""
    rng = np.random.default_rng(11)
    held = 0
    for _ in range(100):
        found = crossed(auc(rng.normal(size=(16, 400)) + rng.normal(size=400), rng.random((16, 400)) < 0.5), (0.0, 1.0))
        held += found.low <= 0.5 <= found.high
    assert held >= 86


def frame_of(score, member, flagged):
    repeats, n = score.shape
    columns = {"repeat": np.repeat(np.arange(repeats), n), "record": np.tile(np.arange(n), repeats)}
    return pd.DataFrame(columns | {"member": member.ravel(), "score": score.ravel(), "flagged": flagged.ravel()})


def measured(repeats=6, n=200, kind="few"):
    score, member = study(repeats, n, kind, np.random.default_rng(8))
    rows = pd.DataFrame(measure_membership(frame_of(score, member, score > 0.7).sample(frac=1, random_state=1), "a"))
    return score, member, rows


def test_every_metric_of_fixed_members_is_there_by_coins_too():
    _, _, rows = measured()
    score, _ = study(6, 200, "few", np.random.default_rng(8))
    fixed = np.broadcast_to(np.arange(200) < 100, score.shape)
    other = pd.DataFrame(measure_membership(frame_of(score, fixed, score > 0.7), "a"))
    keys = ["metric", "repeat", "attack", "fpr", "counting"]
    assert set(map(tuple, rows[keys].astype(str).to_numpy())) == set(map(tuple, other[keys].astype(str).to_numpy()))
    known = rows.dropna(subset=["value", "low", "high"])
    assert (known["low"] <= known["value"] + 1e-9).all()
    assert (known["value"] <= known["high"] + 1e-9).all()


def test_a_repeats_rows_are_those_of_its_own_members():
    score, member, rows = measured(16)
    own = rows[(rows["repeat"] == "2") & (rows["metric"] == "membership_auc")].iloc[0]
    assert own["value"] == pytest.approx(roc_auc_score(member[2], score[2]), abs=1e-12)
    together = rows[(rows["repeat"] == "all") & (rows["metric"] == "membership_auc")].iloc[0]
    assert together["high"] - together["low"] < 0.6 * (own["high"] - own["low"])


def test_records_that_are_named_whenever_they_are_in_are_counted():
    score, member, rows = measured(16, kind="none")
    score[:, :7] += 30 * member[:, :7]
    rows = pd.DataFrame(measure_membership(frame_of(score, member, score > 0.7), "a"))
    rows = rows[(rows["fpr"] == 0.01) & (rows["repeat"] == "all")]
    always = rows[rows["counting"] == "all_runs"].iloc[0]
    assert always["value"] == pytest.approx(member[:, :7].sum() / 16, abs=0.5)  # of a run on average, like the mean
    mean = rows[rows["counting"] == "mean"].iloc[0]
    named = named_at_fpr(score, member, 0.01) & member
    assert mean["value"] == pytest.approx(named.sum() / len(score), abs=0.5)  # between this rank and the next
    assert always["value"] <= mean["value"]
    assert mean["low"] < mean["value"] < mean["high"]


def test_owners_have_the_influences_that_leaving_each_of_them_out_shows():
    """The delete-one jackknife over persons, from scikit-learn's areas, has the variance of the summed influences."""
    rng = np.random.default_rng(3)
    owner = np.repeat(np.arange(150), rng.integers(1, 9, 150))
    member = (rng.random(150) < 0.5)[owner]
    score = (rng.normal(size=150)[owner] + rng.normal(size=len(owner)) + member)[None]
    found = auc(score, member[None]).of(owner)
    left_out = [roc_auc_score(member[owner != one], score[0, owner != one]) for one in range(150)]
    jackknife = 149 / 150 * np.sum((np.array(left_out) - np.mean(left_out)) ** 2)
    assert found.value == auc(score, member[None]).value
    assert found.blocks[0].mean() == pytest.approx(0, abs=1e-12)
    assert np.var(found.blocks[0]) / 150 == pytest.approx(jackknife, rel=0.05)
    assert np.var(auc(score, member[None]).blocks[0]) / len(owner) < jackknife / 2


def test_an_owner_of_one_record_each_changes_nothing():
    rng = np.random.default_rng(4)
    both = Influences(0.3, (rng.normal(size=(3, 20)),))
    np.testing.assert_array_equal(both.of(np.arange(20)).blocks, both.blocks)
