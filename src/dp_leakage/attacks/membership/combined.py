"""A learnt combination: what several attacks say of a record, weighed by what they said of the attacker's own models.

Each attack reads answers in one way that some theory suggests. How they depend on each other, and where each is right,
no theory says. But the attacker knows who is in each reference model. So every reference is taken for a target in turn,
attacked with the others, and gradient-boosted trees learn from that how the attacks' scores go with membership.
"""

from types import ModuleType

import numpy as np

from dp_leakage.attacks import ATTACKS
from dp_leakage.attacks.membership import attack_r, lira, posterior, rmia
from dp_leakage.attacks.membership.references import mean_where
from dp_leakage.attacks.signals import Scores, Signals
from dp_leakage.common.errors import UserError

ATTACK = {
    "family": "membership",
    "needs": "reference",
    "reads": "probabilities",
    "roles": ["reference_pool"],
    "of_person": "sum",
    "settings": {
        "online": {
            "enum": [True],
            "default": True,
            "description": "It always uses reference models that trained on the record in question.",
        },
        "models": {
            "type": "integer",
            "minimum": 1,
            "default": 16,
            "description": "How many reference models, at most, are taken for targets.",
        },
        "rounds": {"$ref": "#/$defs/rounds"},
        "leaves": {"type": "integer", "minimum": 2, "default": 8, "description": "Leaves of each tree."},
    },
}

COMPONENTS: dict[str, ModuleType] = {
    "lira_shrunk": lira, "rmia_online": rmia, "posterior": posterior, "attack_r": attack_r,
}  # fmt: skip
RATE, FEWEST = 0.05, 50  # of the boosting: how far each tree moves the odds, and records in a leaf
LEAST = 2  # reference models without which a reference is attacked


def score(target: Signals, learnt: Signals, settings: dict, seed: int) -> Scores:
    """Scores every record asked about with the log odds of membership, flagged above 0.

    A reference is attacked without itself and without models that were trained on the same records, or on exactly the
    others: if references are complementary halves, one would tell the coins of the other.

    Args:
        target: of the R models under attack, with probabilities.
        learnt: of the reference models, the same records and those of the population.
        settings: ``models`` that are taken for targets at most, ``rounds`` of boosting and ``leaves`` of each tree.
        seed: unused, nothing is drawn.

    Raises:
        UserError: no reference can be attacked by `LEAST` others.
    """
    from sklearn.ensemble import HistGradientBoostingClassifier

    coins = learnt.asked.trained_on
    examples, member = [], []
    for k in range(min(settings["models"], learnt.size)):
        apart = (coins != coins[k]).any(axis=1) & (coins == coins[k]).any(axis=1)
        if apart.sum() >= LEAST:
            own = learnt.models(np.array([k]))
            examples.append(features(own, learnt.models(apart)))
            member.append(coins[k])
    if not examples:
        raise UserError(
            f"attack combined: each reference model is attacked with others, but none has {LEAST} others that were "
            "trained on further records; valid are 4 reference models or more"
        )
    trees = HistGradientBoostingClassifier(
        max_iter=settings["rounds"], max_leaf_nodes=settings["leaves"], learning_rate=RATE, min_samples_leaf=FEWEST,
        early_stopping=False, random_state=0,
    )  # fmt: skip
    trees.fit(np.concatenate(examples), np.concatenate(member))
    said = features(target, learnt)
    odds = trees.decision_function(said).reshape(target.size, -1)
    return Scores(odds, odds > 0)


def features(target: Signals, learnt: Signals) -> np.ndarray:
    """What is known of each record of R models from K others, float64 (R · n, F).

    The score of each of `COMPONENTS` and the share of the model's records below it; the margin, its mean over the
    others that were trained without the record, and the difference.
    """
    found = []
    for name, module in COMPONENTS.items():
        own = module.score(target, learnt, dict(ATTACKS[name].settings), 0).score
        found += [own, own.argsort(axis=1, kind="stable").argsort(axis=1, kind="stable") / own.shape[1]]
    margin, others = target.asked.margin[0], learnt.asked
    usual = np.broadcast_to(mean_where(others.margin[0], ~others.trained_on), margin.shape)
    return np.stack([*found, margin, usual, margin - usual], axis=2).reshape(margin.size, -1)
