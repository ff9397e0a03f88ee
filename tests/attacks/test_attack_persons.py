"""One score for a person from the scores of the person's records."""

import numpy as np
import pandas as pd
import pytest

from dp_leakage.attacks.persons import combined, person_columns
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
