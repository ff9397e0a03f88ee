"""Learned attack: compare outputs of references with and without a record, with weights learned on the references.

Other attacks compare a target's outputs with the references' by one formula from theory. Here gradient-boosted trees
learn the comparison from several statistics. The attacker knows the members of each reference model. So every reference
in turn plays the target and is compared with the others.
"""

import numpy as np
from scipy.special import ndtri
from scipy.stats import rankdata

from dp_leakage.attacks import ATTACKS
from dp_leakage.attacks.membership import rmia
from dp_leakage.attacks.membership.references import population
from dp_leakage.attacks.signals import Scores, Signals
from dp_leakage.common.errors import UserError

ATTACK = {
    "family": "membership",
    "label": "learned combination",
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
            "description": "Maximum number of reference models that play the target.",
        },
        "rounds": {"$ref": "#/$defs/rounds", "default": 30},
        "leaves": {"type": "integer", "minimum": 2, "default": 8, "description": "Leaves of each tree."},
    },
}

RATE, FEWEST = 0.15, 50  # of the boosting: how far each tree moves the odds, and records in a leaf
LEAST = 2  # reference models without which a reference is compared with those that trained on a record and did not
TINY = 1e-12  # probability that less counts as
MEMBER = 0.3  # offline, a model that trained on a record is taken to give it .3 P + .7, as in RMIA
ALIKE = 0.7  # how margins of two models with the record correlate, as normal scores: .66 on digits, .77 on CIFAR-100
LEAST_SPREAD = 1e-6  # deviation that equal margins count as having


def score(target: Signals, reference: Signals, settings: dict, seed: int) -> Scores:
    """Score every queried record with the log odds of membership, flagged above 0.

    A reference is compared neither with itself nor with models trained on the same records or on exactly the
    complement: with complementary halves, one model reveals the membership in the other. With too few references for
    that, `_of_few` describes the training of the trees.

    Args:
        target: of the R models under attack, with probabilities.
        reference: of the reference models, the same records and the records of the population.
        settings: ``models``, the largest number of references that play the target, ``rounds`` of boosting and
            ``leaves`` of each tree.
        seed: unused, nothing is drawn.

    Raises:
        UserError: there is one reference model, or two or three and no record that none of them trained on.
    """
    asked = reference.asked
    coins, known, said = asked.trained_on, statistics(asked), statistics(target.asked)
    examples, member = [], []
    for k in range(min(settings["models"], reference.size)):
        apart = (coins != coins[k]).any(axis=1) & (coins == coins[k]).any(axis=1)
        if apart.sum() >= LEAST:
            examples.append(features(known[:, k : k + 1], known[:, apart], coins[apart]))
            member.append(coins[k])
    if not examples:
        return _of_few(target, reference, settings)
    odds = _learned_odds(examples, member, features(said, known, coins), settings)
    return Scores(odds, odds > 0)


def _of_few(target: Signals, reference: Signals, settings: dict) -> Scores:
    """Score with few references: a weighted mean of two normal scores of ranks, flagged above 0.

    The first score is the log odds from references without the record only. For training, a reference's own records are
    compared by other references that did not train on them, with records that no reference trained on, so the
    comparison does not reveal the others' members. The second is RMIA's online ratio, which also uses references with
    the record, at a temperature that scales the margins of models without the record to a deviation of 1. `_share`
    weights the second.
    """
    asked, others = reference.asked, population(reference, "combined")
    new = others.records(np.flatnonzero(~others.trained_on.any(axis=0)))
    if reference.size < LEAST or not len(new.record):
        raise UserError(
            "attack combined needs 4 reference models, or 2 and records that none of them trained on; "
            f"got {reference.size} models and {len(new.record)} such records"
        )
    known, unseen, coins = statistics(asked), statistics(new), asked.trained_on
    nowhere = np.zeros(new.trained_on.shape, bool)
    examples, member = [], []
    for k in range(min(settings["models"], reference.size)):
        own, rest = slice(k, k + 1), np.arange(reference.size) != k
        inside = features(known[:, own], known[:, rest], coins[rest], online=False)[:, coins[k]]
        outside = features(unseen[:, own], unseen[:, rest], nowhere[rest], online=False)
        examples.append(np.concatenate([inside, outside], axis=1))
        member.append(np.arange(examples[-1].shape[1]) < inside.shape[1])
    few = settings | {"leaves": min(settings["leaves"], 4)}
    odds = _learned_odds(examples, member, features(statistics(target.asked), known, coins, online=False), few)
    scale = max(float(asked.margin[0][~coins].std()), LEAST_SPREAD)
    of_rmia = {**ATTACKS["rmia_online"].settings, "a": MEMBER, "temperature": scale}
    ratio = rmia.score(target, reference, of_rmia, 0).score
    share = _share(known, coins)
    mean = (1 - share) * _normal(odds) + share * _normal(ratio)
    return Scores(mean, mean > 0)


def _share(known: np.ndarray, coins: np.ndarray) -> float:
    """Return the weight of references with the record, from ½ to 1, by their information beyond references without it.

    Margins of two models with a record correlate by about `ALIKE`. Their correlation with margins of models without it
    is measurable. In a normal model, the weight is the share of −½ ln(1 − ρ²) that only the former contribute. This is
    the information about the margin that a further model with the record would have.

    Args:
        known: `statistics` of the references, (4, K, n).
        coins: membership in their training sets, bool (K, n).
    """
    pairs = np.stack([_mean(known, chosen)[0] for chosen in (~coins, coins)])
    told = _normal(pairs[:, ~np.isnan(pairs).any(axis=0)])
    spread = np.prod((told**2).sum(axis=1))
    shared = min(np.prod(told, axis=0).sum() ** 2 / spread, ALIKE**2) if spread > 0 else ALIKE**2
    return float(max(0.5, 1 - np.log1p(-shared) / np.log1p(-(ALIKE**2))))


def _learned_odds(
    examples: list[np.ndarray], member: list[np.ndarray], asked: np.ndarray, settings: dict
) -> np.ndarray:
    """Return log odds (R, n) of features (R, n, F), by trees fitted on examples (1, m, F) with membership (m,)."""
    from sklearn.ensemble import HistGradientBoostingClassifier

    trees = HistGradientBoostingClassifier(
        max_iter=settings["rounds"], max_leaf_nodes=settings["leaves"], learning_rate=RATE, min_samples_leaf=FEWEST,
        early_stopping=False, random_state=0,
    )  # fmt: skip
    trees.fit(np.concatenate(examples, axis=1)[0], np.concatenate(member))
    return np.asarray(trees.decision_function(asked.reshape(-1, asked.shape[2])).reshape(asked.shape[:2]))


def _normal(score: np.ndarray) -> np.ndarray:
    """Score (R, n) by their ranks within each model, as quantiles of the normal distribution."""
    return np.asarray(ndtri((rankdata(score, axis=1) - 0.5) / score.shape[1]))


def statistics(said: Signals) -> np.ndarray:
    """Return statistics of R models' outputs on n records, float64 (4, R, n).

    They are the margin; the probability of the record's class; and, of the other classes' shares of the remaining
    probability, the logarithm of the largest and the entropy in nats.
    """
    assert said.probability is not None  # the attack declares that it reads probabilities
    probability = np.maximum(said.probability.astype(np.float64), TINY)
    true = np.arange(probability.shape[2]) == said.y[:, None]
    own = np.take_along_axis(probability, said.y[None, :, None], axis=2)[..., 0]
    shares = np.where(true, 0.0, probability)
    shares /= shares.sum(axis=2, keepdims=True)
    entropy = -(shares * np.log(np.maximum(shares, TINY))).sum(axis=2)
    return np.stack([said.margin[0], own, np.log(shares.max(axis=2)), entropy])


def features(own: np.ndarray, others: np.ndarray, inside: np.ndarray, online: bool = True) -> np.ndarray:
    """Compare R models with K others on n records: float64 (R, n, F); NaN where no other model is comparable.

    For every statistic: its excess over the mean of models trained without the record and, online, over the mean of
    models trained with it. Also RMIA's ratio and, online, the difference of the squared distances from both means, as
    in LiRA.

    Args:
        own, others: `statistics` of both, (4, R, n) and (4, K, n).
        inside: membership in the others' training sets, bool (K, n).
        online: whether to use models trained with the record.
    """
    without = _mean(others, ~inside)
    found = [*own[:3], *(own - without[:, None])]
    usual = without[1]
    within = MEMBER * usual + 1 - MEMBER
    if online:
        means = _mean(others, inside)
        within = means[1]
        apart = own - means[:, None]
        found += [*apart, (own[0] - without[0]) ** 2 - apart[0] ** 2]
    found.append(np.log(own[1]) - np.log((usual + within) / 2))
    found.append(np.broadcast_to(without[0], own[0].shape))
    return np.stack(found, axis=2)


def _mean(values: np.ndarray, chosen: np.ndarray) -> np.ndarray:
    """Return means (4, n) of values (4, K, n) over the selected ones of K models; NaN where no model is selected."""
    counts = chosen.sum(axis=0)
    return np.where(counts > 0, np.where(chosen, values, 0.0).sum(axis=1) / np.maximum(counts, 1), np.nan)
