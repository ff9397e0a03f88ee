import numpy as np
import pandas as pd
import pytest
from sklearn.metrics import roc_auc_score

from dp_leakage.metrics.groups import excess, measure_groups
from dp_leakage.metrics.intervals import crossed
from dp_leakage.metrics.reached import named_by_best_threshold
from dp_leakage.metrics.roc import gap

RUNS, N = 12, 400


def frame(score: np.ndarray, member: np.ndarray) -> pd.DataFrame:
    runs, n = score.shape
    columns = {"repeat": np.repeat(np.arange(runs), n), "record": np.tile(50 + np.arange(n), runs)}
    member = np.broadcast_to(member, score.shape)
    return pd.DataFrame({**columns, "member": member.ravel(), "score": score.ravel(), "flagged": False})


def world(by_coins: bool, leak: float, seed: int, group: int = 100) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Scores and members; only the records of a group, of 50 to 50 + group, leak by so much."""
    rng = np.random.default_rng(seed)
    member = rng.random((RUNS, N)) < 0.5 if by_coins else rng.permutation(N) < N // 2
    inside = np.arange(N) < group
    score = rng.normal(size=(RUNS, N)) + rng.normal(size=N) + leak * (inside & member)
    return score, member, inside


def rows(score, member, **groups) -> pd.DataFrame:
    found = pd.DataFrame(measure_groups({"yeom": frame(score, member)}, {"class": groups}))
    return found[found["repeat"] == "all"].set_index(["metric", "group"])


@pytest.mark.parametrize("by_coins", [True, False])
def test_a_group_that_leaks_is_found_and_its_numbers_are_those_of_its_records_alone(by_coins):
    score, member, inside = world(by_coins, 3.0, 0)
    shuffled = frame(score, member).sample(frac=1, random_state=0)
    groups = {"0": 50 + np.flatnonzero(inside), "1": 50 + np.flatnonzero(~inside)}
    made = measure_groups({"yeom": shuffled}, {"class": groups})
    found = pd.DataFrame(made).query("repeat == 'all'").set_index(["metric", "group"])
    one, other = "0", "1"
    members = np.broadcast_to(member, score.shape)
    named = named_by_best_threshold(score, member)
    rates = [
        [r[m & side].mean() - r[~m & side].mean() for side in (inside, ~inside)]
        for r, m in zip(named, members, strict=True)
    ]
    alone, rest = np.mean(rates, axis=0)
    assert found.loc[("group_advantage", one), "value"] == pytest.approx(alone)
    assert found.loc[("group_excess", one), "value"] == pytest.approx(alone - rest)
    assert found.loc[("group_excess", other), "value"] == pytest.approx(rest - alone)
    assert found.loc[("group_excess", one), "low"] > 0.2 > 0 > found.loc[("group_excess", other), "high"]
    area = np.mean([roc_auc_score(m[inside], s[inside]) for s, m in zip(score, members, strict=True)])
    assert found.loc[("group_auc", one), "value"] == pytest.approx(area)
    assert found.loc[("group_records", "0"), "value"] == 100


@pytest.mark.parametrize("by_coins", [True, False])
def test_the_interval_of_the_excess_holds_the_truth_where_both_leak_alike(by_coins):
    """Planted worlds with an excess of 0: of 200 intervals 10 are expected to miss it; more than 22 have a chance of
    .0002.
    """
    missed = 0
    for seed in range(200):
        score, member, inside = world(by_coins, 1.0, seed, group=N)
        found = excess((score > 0.5).astype(float), member, np.arange(N) % 4 == 0)
        assert inside.all()
        missed += not found.low <= 0 <= found.high
    assert missed <= 22


def test_the_excess_over_records_that_nobody_is_named_among_is_the_groups_own_advantage():
    score, member, inside = world(False, 2.0, 3)
    named = np.where(inside, score > 1, 0).astype(float)
    own = crossed(gap(named[:, inside & member], named[:, inside & ~member]), (-2.0, 2.0))
    found = excess(named, member, inside)
    assert found.value == pytest.approx(own.value)
    assert found.low == pytest.approx(own.low, abs=0.01)
    assert found.high == pytest.approx(own.high, abs=0.01)


def test_groups_that_are_too_small_are_left_out():
    score, member, _ = world(True, 0.0, 5)
    found = rows(score, member, few=50 + np.arange(20), all=50 + np.arange(N))
    assert {group for _, group in found.index} == {"all"}
    assert "group_excess" not in {metric for metric, _ in found.index}  # there is nobody outside
