"""A combination of attacks that is learnt on reference models."""

import numpy as np
import pytest
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.metrics import roc_auc_score

from dp_leakage.attacks import ATTACKS
from dp_leakage.attacks.membership import attack_r, combined, lira, posterior, rmia
from dp_leakage.common.errors import UserError
from dp_leakage.data.splits import dealt

SETTINGS = ATTACKS["combined"].settings | {"rounds": 30}
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


def test_the_scores_are_those_of_trees_fitted_on_attacked_references(world):
    target, learnt = world
    found = combined.score(target, learnt, SETTINGS, 0)

    def by_hand(own, others):
        parts = []
        modules = {"lira_shrunk": lira, "rmia_online": rmia, "posterior": posterior, "attack_r": attack_r}
        for name, module in modules.items():
            one = module.score(own, others, dict(ATTACKS[name].settings), 0).score
            parts += [one, np.array([[np.sum(row < value) / len(row) for value in row] for row in one])]
        margin = own.asked.margin[0]
        inside, said = others.asked.trained_on, others.asked.margin[0]
        usual = np.array([said[~inside[:, i], i].mean() for i in range(margin.shape[1])])
        parts += [margin, np.tile(usual, (len(margin), 1)), margin - usual]
        return np.stack(parts, axis=2).reshape(margin.size, -1)

    coins = learnt.asked.trained_on
    examples = []
    for k in range(8):
        others = [j for j in range(8) if j != k and not (coins[j] == ~coins[k]).all()]
        assert len(others) == 6
        examples.append(by_hand(learnt.models(np.array([k])), learnt.models(np.array(others))))
    trees = HistGradientBoostingClassifier(
        max_iter=30, max_leaf_nodes=8, learning_rate=0.05, min_samples_leaf=50, early_stopping=False, random_state=0
    ).fit(np.concatenate(examples), coins.ravel())
    expected = trees.predict_proba(by_hand(target, learnt))[:, 1].reshape(found.score.shape)
    np.testing.assert_allclose(1 / (1 + np.exp(-found.score)), expected, atol=1e-9)
    np.testing.assert_array_equal(found.flagged, expected > 0.5)


def test_it_finds_about_as_much_as_the_best_of_the_attacks_that_it_combines(world):
    target, learnt = world
    member = target.asked.trained_on

    def area(score):
        return np.mean([roc_auc_score(m, s) for m, s in zip(member, score, strict=True)])

    alone = [
        area(module.score(target, learnt, dict(ATTACKS[name].settings), 0).score)
        for name, module in combined.COMPONENTS.items()
    ]
    assert area(combined.score(target, learnt, SETTINGS, 0).score) > max(alone) - 0.02


def test_references_whose_coins_are_noise_teach_nothing(world):
    """Coins that no answer depends on: what is learnt tells members no better than a guess does."""
    target, learnt = world
    shuffled = np.random.default_rng(0).permutation(len(target.asked.record))
    member = target.asked.trained_on[:, shuffled]
    area = np.mean(
        [roc_auc_score(m, s) for m, s in zip(member, combined.score(target, learnt, SETTINGS, 0).score, strict=True)]
    )
    assert abs(area - 0.5) < 0.06  # four targets of 400 records: a standard error of .015


def test_a_pair_of_complementary_references_cannot_teach(world):
    target, learnt = world
    coins = learnt.asked.trained_on
    pair = [0, next(j for j in range(8) if (coins[j] == ~coins[0]).all())]
    with pytest.raises(UserError, match="valid are 4 reference models or more"):
        combined.score(target, learnt.models(np.array(pair)), SETTINGS, 0)
