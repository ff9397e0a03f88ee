"""Who gives themselves away: the statistic against two-sample tests, chance where nothing leaks, and planted leaks."""

import numpy as np
import pytest
from scipy import stats

from dp_leakage.metrics.exposure import REPEATS, evidence, exposed


def world(rng, repeats=12, n=400, leaking=20, gain=4.0):
    """The first records leak; half of the variance of a score is the record's own."""
    member = rng.random((repeats, n)) < 0.5
    score = np.sqrt(0.5) * (rng.normal(size=n) + rng.normal(size=(repeats, n)))
    return score + gain * (member & (np.arange(n) < leaking)), member


def test_the_evidence_without_a_common_deviation_is_students_t_of_two_samples():
    score, member = world(np.random.default_rng(0), repeats=24)
    score -= score.mean(axis=0)
    found = evidence(score, member, 1e-12)
    for record in range(40):
        own, inside = score[:, record], member[:, record]
        assert found[record] == pytest.approx(stats.ttest_ind(own[inside], own[~inside]).statistic, rel=1e-9)


def test_a_record_that_is_in_always_or_never_has_no_evidence():
    score, member = world(np.random.default_rng(1))
    member[:, 0], member[:, 1] = True, False
    found = exposed(score, member)
    assert np.isneginf(found.evidence[:2]).all()
    assert not {0, 1} & set(found.order)


@pytest.mark.parametrize("repeats", [8, 12])
def test_the_records_that_leak_are_listed_and_hardly_others(repeats):
    """Of 20 in 400; of the list a share of .05 may be false on average, and "at least" holds in 19 of 20 studies."""
    rng, false, found = np.random.default_rng(repeats), [], []
    for _ in range(20):
        one = exposed(*world(rng, repeats), seed=int(rng.integers(1000)))
        false.append(np.mean(one.order >= 20))
        found.append((np.sum(one.order < 20), one.at_least))
    right, least = np.transpose(found)
    assert np.mean(false) <= 0.08
    assert np.mean(right) >= 17
    assert np.mean(least <= right) >= 0.85
    assert np.mean(least) >= 14


def test_the_order_is_that_of_the_leak_and_not_of_how_often_coins_put_a_record_in():
    """All 400 leak, each by another amount. The ten that were listed before were in 1.8 repeats more than others."""
    rng, more, gain = np.random.default_rng(3), [], []
    for _ in range(20):
        gains = rng.lognormal(0.0, 1.0, 400)
        member = rng.random((12, 400)) < 0.5
        score = np.sqrt(0.5) * (rng.normal(size=400) + rng.normal(size=(12, 400))) + gains * member
        first = exposed(score, member).order[:10]
        more.append(member[:, first].sum(axis=0).mean() - 6)
        gain.append(gains[first].mean() / np.sort(gains)[-10:].mean())
    assert abs(np.mean(more)) < 0.4
    assert np.mean(gain) > 0.85


@pytest.mark.parametrize("repeats", [8, 24])
def test_nobody_is_listed_where_nothing_leaks(repeats):
    """Somebody in .05 of studies; of 60, more than 8 by chance once in 200 runs."""
    rng = np.random.default_rng(repeats)
    listed = [len(exposed(*world(rng, repeats, 300, 0)).order) > 0 for _ in range(60)]
    assert np.sum(listed) <= 8


def test_nobody_can_be_listed_with_fewer_than_eight_repeats_however_much_leaks():
    for repeats in (2, 4, 6, REPEATS - 1):
        found = exposed(*world(np.random.default_rng(4), repeats, leaking=400))
        assert (len(found.order), found.at_least) == (0, 0)
    assert len(exposed(*world(np.random.default_rng(4), REPEATS, leaking=400)).order) > 350


def test_equal_scores_list_nobody():
    assert not len(exposed(np.zeros((12, 50)), world(np.random.default_rng(5), n=50)[1]).order)
