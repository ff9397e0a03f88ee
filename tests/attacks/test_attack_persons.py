"""One score for a person from the scores of the person's records."""

import numpy as np
import pandas as pd
import pytest
from sklearn.metrics import roc_auc_score

from dp_leakage.attacks.persons import combined, learnt, person_columns
from dp_leakage.attacks.signals import Signals

R, N = 3, 40


@pytest.fixture
def asked() -> Signals:
    rng = np.random.default_rng(0)
    person = rng.integers(5, 14, N)
    coins = rng.random((R, 20)) < 0.5
    answers = rng.normal(size=(1, R, N))
    return Signals(
        record=rng.permutation(100)[:N],
        y=np.zeros(N, np.int64),
        role=np.repeat("pool", N),
        trained_on=coins[:, person],
        margin=answers,
        correct=answers[0] > 0,
        rank=np.ones((R, N), np.int32),
        person=person,
    )


@pytest.mark.parametrize("how", ["sum", "mean", "max"])
def test_scores_are_combined_as_pandas_groups_them(asked: Signals, how: str) -> None:
    score, flagged = asked.margin[0], asked.margin[0] > 0.3
    got = pd.DataFrame(person_columns(asked, {"score": score, "flagged": flagged}, how))
    rows = pd.DataFrame(
        {
            "repeat": np.repeat(np.arange(R), N),
            "record": np.tile(asked.person, R),
            "member": asked.trained_on.ravel(),
            "score": score.ravel(),
            "flagged": flagged.ravel(),
        }
    )
    groups = rows.groupby(["repeat", "record"], as_index=False)
    kept = got.pop("of_records")
    for one, apart in zip(got.itertuples(), kept, strict=True):
        own = rows[(rows["repeat"] == one.repeat) & (rows["record"] == one.record)]
        assert apart.tolist() == own["score"].tolist()
    expected = groups.agg({"member": "all", "score": how, "flagged": "mean"})
    expected["flagged"] = expected["flagged"] >= 0.5
    pd.testing.assert_frame_equal(got, expected)


def test_all_records_of_a_person_share_their_coin(asked: Signals) -> None:
    got = pd.DataFrame(person_columns(asked, {"score": asked.margin[0], "flagged": asked.correct}, "sum"))
    assert len(got) == R * len(np.unique(asked.person))
    for repeat, person, member in got[["repeat", "record", "member"]].itertuples(index=False):
        assert set(asked.trained_on[repeat, asked.person == person]) == {member}


def test_independent_evidence_adds_up() -> None:
    """A person with k records of which each says N(1, 1) or N(0, 1): the sum's AUC is that of k times as much."""
    rng = np.random.default_rng(1)
    own = np.repeat(np.arange(4000), 4)
    member = np.arange(4000) < 2000
    value = rng.normal(size=16000) + member[own]
    ratio = combined((value - 0.5)[None], own, "sum")[0]
    auc = (ratio[member][:, None] > ratio[~member][None]).mean()
    # Φ(√4/√2) = .921; its standard error here is about .004, and five of them lie within .02.
    assert abs(auc - 0.921) < 0.02


def areas(score: np.ndarray, member: np.ndarray) -> float:
    return float(np.mean([roc_auc_score(inside, run) for inside, run in zip(member, score, strict=True)]))


def planted(leak: float, seed: int = 2) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Scores of 12 models, 300 persons: one record of each member gives it away, among one to eight others."""
    rng = np.random.default_rng(seed)
    own = np.repeat(np.arange(300), rng.integers(2, 10, 300))
    member = rng.random((12, 300)) < 0.5
    first = np.flatnonzero(np.diff(own, prepend=-1))
    values = rng.normal(size=(12, len(own)))
    values[:, first] += leak * member
    return values, own, member


@pytest.mark.parametrize("best", ["max", "sum"])
def test_what_is_learnt_finds_the_way_that_suits(best: str) -> None:
    """One record gives a member away, or each a little. Standard errors of an area are below .01."""
    values, own, member = planted(3.0 if best == "max" else 0.0)
    values = values if best == "max" else values + 0.5 * member[:, own] - 0.25
    found = {how: areas(combined(values, own, how), member) for how in ("sum", "mean", "max")}
    assert max(found, key=found.__getitem__) == best
    assert areas(learnt(values, own, member), member) > found[best] - 0.005


def test_where_nothing_leaks_nothing_is_learnt() -> None:
    """Of 50 worlds of 12 models the mean area has a standard error of about .0015."""
    found = [areas(learnt(*(case := planted(0.0, seed))), case[2]) for seed in range(50)]
    assert abs(np.mean(found) - 0.5) < 0.006


def test_a_models_own_members_are_never_learnt_from() -> None:
    values, own, member = planted(3.0)
    turned = member.copy()
    turned[4] = ~turned[4]
    np.testing.assert_array_equal(learnt(values, own, member)[4], learnt(values, own, turned)[4])
