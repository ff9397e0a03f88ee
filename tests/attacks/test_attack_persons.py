"""One score for a person from the scores of the person's records."""

import numpy as np
import pandas as pd
import pytest
from scipy.stats import multivariate_normal, norm
from sklearn.metrics import roc_auc_score

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


@pytest.mark.parametrize("size", [1, 4, 16])
def test_sets_drawn_at_random_are_told_by_the_ratio_of_all_their_records(size: int) -> None:
    """A member's margin is higher by μ. The ratio is the joint one, and the AUC Φ(μ √(k / 2)), ± 4 standard errors."""
    rng, mu, sets = np.random.default_rng(size), 0.3, 500
    n = sets * size
    member = rng.random((R, sets)) < 0.5
    whose = rng.permutation(n) // size
    margin = rng.normal(size=(1, R, n)) + mu * member[:, whose]
    said = Signals(
        record=np.arange(n), y=np.zeros(n, np.int64), role=np.repeat("pool", n), trained_on=member[:, whose],
        margin=margin, correct=margin[0] > 0, rank=np.ones((R, n), np.int32), person=whose,
    )  # fmt: skip
    ratio = norm.logpdf(margin[0], mu) - norm.logpdf(margin[0])
    got = pd.DataFrame(person_columns(said, {"score": ratio, "flagged": ratio > 0}, "sum"))
    first = got.iloc[0]
    own = margin[0, 0, whose == first["record"]]
    joint = multivariate_normal.logpdf(own, np.full(size, mu)) - multivariate_normal.logpdf(own, np.zeros(size))
    assert first["score"] == pytest.approx(joint)
    expected, pairs = norm.cdf(mu * np.sqrt(size / 2)), R * sets / 4
    error = np.sqrt(expected * (1 - expected) / pairs)
    assert roc_auc_score(got["member"], got["score"]) == pytest.approx(expected, abs=4 * error)


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
