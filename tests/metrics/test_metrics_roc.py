"""ROC metrics against scikit-learn, direct counting, and simulated coverage."""

import numpy as np
import pytest
from scipy.special import ndtr
from scipy.stats import binom
from sklearn.metrics import balanced_accuracy_score, roc_auc_score, roc_curve

from dp_leakage.metrics import roc
from dp_leakage.metrics.intervals import Z, difference, wilson

RNG = np.random.default_rng(7)
SMOOTH = RNG.normal(0.7, 1, (3, 150)), RNG.normal(0, 1, (3, 130))
TIED = np.round(SMOOTH[0]), np.round(SMOOTH[1])


def curve(members, nonmembers):
    truth = np.repeat([1, 0], [len(members), len(nonmembers)])
    return roc_curve(truth, np.concatenate([members, nonmembers]), drop_intermediate=False)


@pytest.mark.parametrize("scores", [SMOOTH, TIED], ids=["smooth", "tied"])
def test_auc_equals_scikit_learns(scores):
    for m, n in zip(*scores, strict=True):
        oracle = roc_auc_score(np.repeat([1, 0], [len(m), len(n)]), np.concatenate([m, n]))
        assert roc.auc(m[None], n[None]).value == pytest.approx(oracle)
        assert roc.area(m[None], n[None]).value == pytest.approx(oracle)


@pytest.mark.parametrize("scores", [SMOOTH, TIED], ids=["smooth", "tied"])
def test_auc_interval_is_that_of_delongs_variance_computed_pair_by_pair(scores):
    m, n = scores[0][0], scores[1][0]
    wins = (m[:, None] > n) + 0.5 * (m[:, None] == n)
    variance = wins.mean(axis=1).var(ddof=1) / len(m) + wins.mean(axis=0).var(ddof=1) / len(n)
    estimate = roc.auc(m[None], n[None])
    spread = wins.mean() * (1 - wins.mean())
    misplaced = min(len(m), len(n)) * spread
    counted = (misplaced * variance + 0.5 * spread / min(len(m), len(n))) / (misplaced + 0.5)
    assert estimate == pytest.approx(wilson(wins.mean(), spread / counted))
    assert estimate.high - estimate.low == pytest.approx(2 * Z * np.sqrt(variance), rel=0.05)


@pytest.mark.parametrize("scores", [SMOOTH, TIED], ids=["smooth", "tied"])
@pytest.mark.parametrize("fpr", [0.01, 0.02, 0.05, 0.1])
def test_members_exposed_counts_members_at_the_last_roc_point_below_the_limit(scores, fpr):
    flagged = []
    for m, n in zip(*scores, strict=True):
        rates, _, thresholds = curve(m, n)
        flagged.append(m >= thresholds[rates < fpr][-1])
    assert roc.members_exposed(*scores, fpr, "mean").value == pytest.approx(np.sum(flagged) / len(flagged))
    assert roc.members_exposed(*scores, fpr, "all_runs").value == np.sum(np.all(flagged, axis=0))


def test_limits_that_are_not_binary_fractions_are_exact():
    m, n = np.arange(100.0)[None] + 0.5, np.arange(100.0)[None]
    for percent in range(1, 100):
        assert roc.members_exposed(m, n, percent / 100, "mean").value == percent


@pytest.mark.parametrize(("n", "fpr"), [(10, 0.001), (130, 0.01), (10_000, 0.001), (10_000, 0.3), (50, 0.999)])
def test_the_range_of_passing_nonmembers_holds_95_percent_of_binomial_draws(n, fpr):
    fewest, most = roc.rank_range(fpr, n)
    assert (fewest, most) == (binom.ppf(0.025, n, fpr), binom.ppf(0.975, n, fpr))


def test_rate_difference_of_flags_is_tpr_less_fpr_with_newcombes_interval():
    m, n = SMOOTH[0] > 0.3, SMOOTH[1] > 0.3
    expected = difference(wilson(m[0].mean(), 150), wilson(n[0].mean(), 130))
    assert roc.rate_difference(m[:1], n[:1]) == pytest.approx(expected)
    assert roc.rate_difference(m, n).value == pytest.approx(m.mean() - n.mean())


def test_balanced_accuracy_equals_scikit_learns():
    m, n = SMOOTH[0][:1] > 0.3, SMOOTH[1][:1] > 0.3
    oracle = balanced_accuracy_score(np.repeat([1, 0], [150, 130]), np.concatenate([m[0], n[0]]))
    assert roc.balanced_accuracy(m, n).value == pytest.approx(oracle)


METRICS = {
    "auc": roc.auc,
    "exposed": lambda m, n: roc.members_exposed(m, n, 0.05, "mean"),
    "exposed_in_all": lambda m, n: roc.members_exposed(m, n, 0.05, "all_runs"),
}


@pytest.mark.parametrize("name", METRICS)
@pytest.mark.parametrize("scores", [SMOOTH, TIED], ids=["smooth", "tied"])
def test_order_of_records_and_rescaling_of_scores_change_nothing(name, scores):
    m, n = scores
    shuffled = m[:, RNG.permutation(m.shape[1])], n[:, RNG.permutation(n.shape[1])]
    assert METRICS[name](*shuffled) == pytest.approx(METRICS[name](m, n))
    assert METRICS[name](np.exp(3 * m), np.exp(3 * n)) == pytest.approx(METRICS[name](m, n))


@pytest.mark.parametrize("name", METRICS)
def test_order_of_repeats_changes_nothing(name):
    assert METRICS[name](SMOOTH[0][::-1], SMOOTH[1][::-1]) == pytest.approx(METRICS[name](*SMOOTH))


def test_constant_scores_tell_nothing():
    m, n = np.zeros((2, 40)), np.zeros((2, 50))
    assert roc.auc(m, n) == pytest.approx(wilson(0.5, 40))
    assert roc.members_exposed(m, n, 0.1, "all_runs").value == 0


def test_perfect_separation_is_not_claimed_to_be_certain():
    m, n = np.ones((1, 40)) + SMOOTH[0][:1, :40].clip(0), -np.ones((1, 50))
    assert roc.auc(m, n) == pytest.approx(wilson(1.0, 40))


def test_one_member_against_one_nonmember_gives_wide_intervals():
    estimate = roc.auc(np.ones((1, 1)), np.zeros((1, 1)))
    assert estimate.value == 1
    assert 0 <= estimate.low <= 0.25


def test_infinite_scores_are_ordinary_scores():
    m, n = np.array([[np.inf, 1.0, -np.inf]]), np.array([[0.0, -np.inf, np.inf]])
    assert roc.auc(m, n).value == pytest.approx((2.5 + 2 + 0.5) / 9)


def covered(estimate, truth):
    return estimate.low <= truth <= estimate.high


@pytest.mark.parametrize("shift", [0.0, 0.5, 2.0])
def test_intervals_of_one_run_cover_the_truth(shift):
    """Normal scores at 1,000 draws; 0.925 is undercut once in 3,000 runs where coverage is 0.95."""
    rng = np.random.default_rng(int(10 * shift))
    draws, m, n = 1000, 150, 200
    truth = {
        "auc": ndtr(shift / np.sqrt(2)),
        "advantage": ndtr(shift - 0.2) - ndtr(-0.2),
    }
    hits = dict.fromkeys(truth, 0)
    for _ in range(draws):
        members, nonmembers = rng.normal(shift, 1, (1, m)), rng.normal(0, 1, (1, n))
        hits["auc"] += covered(roc.auc(members, nonmembers), truth["auc"])
        hits["advantage"] += covered(roc.rate_difference(members > 0.2, nonmembers > 0.2), truth["advantage"])
    assert min(hits.values()) / draws >= 0.925


def test_intervals_over_repeats_cover_the_truth_over_records_and_trainings():
    """Records and trainings of different strength; 400 draws, 0.915 is undercut once in 1,000 runs."""
    rng = np.random.default_rng(3)
    draws, repeats, m, n = 400, 5, 200, 200
    record_sd, repeat_sd, noise_sd, mean = 0.8, 0.1, 0.6, 0.5
    spread = np.sqrt(record_sd**2 + noise_sd**2)
    # E over trainings of Φ((mean + repeat) / √(2·spread²)) and of the rate above 0
    truth_auc = ndtr(mean / np.sqrt(2 * spread**2 + repeat_sd**2))
    truth_advantage = ndtr(mean / np.sqrt(spread**2 + repeat_sd**2)) - 0.5
    hits = np.zeros(2)
    for _ in range(draws):
        strength = mean + repeat_sd * rng.normal(size=(repeats, 1))
        members = strength + record_sd * rng.normal(size=m) + noise_sd * rng.normal(size=(repeats, m))
        nonmembers = record_sd * rng.normal(size=n) + noise_sd * rng.normal(size=(repeats, n))
        hits += (
            covered(roc.auc(members, nonmembers), truth_auc),
            covered(roc.rate_difference(members > 0, nonmembers > 0), truth_advantage),
        )
    assert (hits / draws >= 0.915).all()
