"""An attack that is learned on reference models."""

from dataclasses import replace

import numpy as np
import pytest
from scipy.special import expit
from scipy.stats import entropy, norm, pearsonr, rankdata
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.metrics import roc_auc_score

from dp_leakage.attacks import ATTACKS
from dp_leakage.attacks.membership import combined, lira, posterior, rmia
from dp_leakage.common.errors import UserError
from dp_leakage.data.splits import dealt

SETTINGS = dict(ATTACKS["combined"].settings)
MODELS, POOL = 12, 400


@pytest.fixture
def world(numbered, known, signals, sharp_inside):
    """Four targets and eight references in complementary halves, all on records of one pool, by planted outputs."""
    data = numbered(pool=POOL, target_nonmembers=200)
    rng = np.random.default_rng(1)
    pool = data.roles["pool"]
    rows = [pool[rng.random(POOL) < 0.5] for _ in range(4)] + [pool[half] for half in dealt(POOL, POOL // 2, 8, 2)]
    rows = [chosen[:150] if place < 4 else chosen for place, chosen in enumerate(rows)]

    def of(places):
        some = [rows[place] for place in places]
        size = len(some[0])
        models = known(sharp_inside(data, some, seed=places[0]), len(some), np.stack([one[:size] for one in some]))
        return signals(models, data)

    return of(range(4)), of(range(4, 12))


def by_hand(own, others, coins, online=True):
    """What is compared of one model's records (statistics, n), record by record, with others (statistics, K, n)."""
    rows = []
    for i in range(own.shape[1]):
        out = others[:, ~coins[:, i], i].mean(axis=1) if not coins[:, i].all() else np.full(4, np.nan)
        mine, row = own[:, i], [*own[:3, i], *(own[:, i] - out)]
        if online:
            within = others[:, coins[:, i], i].mean(axis=1)
            row += [*(mine - within), (mine[0] - out[0]) ** 2 - (mine[0] - within[0]) ** 2]
        expected = (out[1] + (within[1] if online else 0.3 * out[1] + 0.7)) / 2
        rows.append([*row, np.log(mine[1] / expected), out[0]])
    return np.array(rows)


def numbers(said):
    """Statistics of R models and n records, (4, R, n)."""
    found = np.empty((4, *said.trained_on.shape))
    for r, i in np.ndindex(said.trained_on.shape):
        p = said.probability[r, i].astype(float)
        other = np.delete(p, said.y[i])
        found[:, r, i] = said.margin[0, r, i], p[said.y[i]], np.log(other.max() / other.sum()), entropy(other)
    return found


def normal(score):
    """Ranks along the last axis as quantiles of the normal distribution."""
    return norm.ppf((rankdata(score, axis=1) - 0.5) / score.shape[1])


def fitted(examples, member, leaves, rounds=30):
    return HistGradientBoostingClassifier(
        max_iter=rounds, max_leaf_nodes=leaves, learning_rate=0.15, min_samples_leaf=50, early_stopping=False,
        random_state=0,
    ).fit(np.concatenate(examples), np.concatenate(member))  # fmt: skip


def test_the_scores_are_those_of_trees_fitted_on_references_taken_for_targets(world):
    target, reference = world
    found = combined.score(target, reference, SETTINGS, 0)
    said, known, coins = numbers(target.asked), numbers(reference.asked), reference.asked.trained_on
    examples = []
    for k in range(8):
        others = [j for j in range(8) if j != k and not (coins[j] == ~coins[k]).all()]
        assert len(others) == 6
        examples.append(by_hand(known[:, k], known[:, others], coins[others]))
    trees = fitted(examples, coins, 8)
    expected = np.stack([trees.predict_proba(by_hand(said[:, r], known, coins))[:, 1] for r in range(4)])
    np.testing.assert_allclose(1 / (1 + np.exp(-found.score)), expected, atol=1e-4)  # float32 beside a loop's sums
    assert (found.flagged == (expected > 0.5)).mean() > 0.999


def test_with_two_references_trees_know_models_without_a_record_and_rmia_both(world):
    target, reference = world
    coins = reference.asked.trained_on
    two = reference.models(np.array([0, next(j for j in range(8) if (coins[j] == ~coins[0]).all())]))
    found = combined.score(target, two, SETTINGS, 0)
    said, known, coins = numbers(target.asked), numbers(two.asked), two.asked.trained_on
    new = numbers(two.of("target_nonmembers"))
    examples, member = [], []
    for k, other in ((0, 1), (1, 0)):
        inside = by_hand(known[:, k], known[:, [other]], coins[[other]], online=False)[coins[k]]
        outside = by_hand(new[:, k], new[:, [other]], np.zeros((1, new.shape[2]), bool), online=False)
        examples.append(np.concatenate([inside, outside]))
        member.append(np.arange(len(examples[-1])) < len(inside))
    trees = fitted(examples, member, 4)
    odds = np.stack([trees.decision_function(by_hand(said[:, r], known, coins, online=False)) for r in range(4)])
    without, within = (np.where(chosen, known[0], 0.0).sum(axis=0) for chosen in (~coins, coins))
    probability = expit(np.stack([*said[0], without, within]) / without.std())  # each is in one and not in the other
    ratio = np.log(2 * probability[:4] / (probability[4] + probability[5]))
    told = pearsonr(*normal(np.stack([without, within]))).statistic
    share = min(max(1 - np.log(1 - told**2) / np.log(1 - 0.7**2), 0.5), 1)
    np.testing.assert_allclose(found.score, (1 - share) * normal(odds) + share * normal(ratio), atol=0.02)
    assert 0.4 < found.flagged.mean() < 0.6


@pytest.mark.parametrize(
    ("alike", "share"),
    [
        (0.0, 1.0),  # a model without the record tells nothing of what one with it says
        (0.4, 0.741),  # 1 − ln .84 / ln .51
        (0.9, 0.5),  # both tell the same
    ],
)
def test_references_with_a_record_count_as_they_tell_what_those_without_it_do_not(alike, share):
    rng = np.random.default_rng(3)
    margin = rng.multivariate_normal([0.0, 2.0], [[1.0, alike], [alike, 1.0]], 100_000).T
    assert combined._share(np.stack([np.exp(margin)] * 4), np.array([[False], [True]]).repeat(100_000, 1)) == (
        pytest.approx(share, abs=0.01)  # only ranks count, so any rising function of margins gives the same
    )


def test_references_that_say_the_same_of_all_records_count_half():
    assert combined._share(np.ones((4, 2, 10)), np.array([[False], [True]]).repeat(10, 1)) == 0.5


def test_it_finds_about_as_much_as_the_best_of_the_attacks_that_it_combines(world):
    target, reference = world
    member = target.asked.trained_on

    def area(score):
        return np.mean([roc_auc_score(m, s) for m, s in zip(member, score, strict=True)])

    modules = {"lira_shrunk": lira, "rmia_online": rmia, "posterior": posterior}
    alone = [
        area(module.score(target, reference, dict(ATTACKS[name].settings), 0).score) for name, module in modules.items()
    ]
    assert area(combined.score(target, reference, SETTINGS, 0).score) > max(alone) - 0.02


@pytest.mark.parametrize("references", [2, 3, 8])
def test_coins_that_no_answer_depends_on_are_not_found(references, world):
    target, reference = world
    shuffled = np.random.default_rng(0).permutation(len(target.asked.record))
    member = target.asked.trained_on[:, shuffled]
    score = combined.score(target, reference.models(np.arange(references)), SETTINGS, 0).score
    area = np.mean([roc_auc_score(m, s) for m, s in zip(member, score, strict=True)])
    assert abs(area - 0.5) < 0.06  # four targets of 400 records: a standard error of .015


def test_a_reference_alone_and_two_that_saw_all_new_records_are_refused(world):
    target, reference = world
    with pytest.raises(UserError, match="got 1 models and 200 such records"):
        combined.score(target, reference.models(np.array([0])), SETTINGS, 0)
    saw = reference.trained_on | (reference.role == "target_nonmembers")
    with pytest.raises(UserError, match="got 2 models and 0 such records"):
        combined.score(target, replace(reference, trained_on=saw).models(np.array([0, 1])), SETTINGS, 0)
