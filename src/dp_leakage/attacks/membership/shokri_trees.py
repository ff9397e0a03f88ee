"""Shadow models with boosted trees (directional2023, section 5.1), which learn members' probabilities by class."""

import numpy as np

from dp_leakage.attacks.membership.shadows import shadow_examples
from dp_leakage.attacks.membership.trees import parameters
from dp_leakage.attacks.signals import Scores, Signals
from dp_leakage.common.errors import UserError

ATTACK = {
    "family": "membership",
    "label": "Shokri trees",
    "needs": "shadow",
    "reads": "probabilities",
    "learns": True,
    "roles": ["shadow_pool"],
    "settings": {
        "only_correct": {
            "type": "boolean",
            "default": True,
            "description": "Learn only from records that the shadow model classifies correctly (Irolla & Châtel 2019).",
        },
        "rounds": {"$ref": "#/$defs/rounds"},
        "leaves": {"$ref": "#/$defs/leaves"},
        "learning_rate": {
            "type": "number",
            "exclusiveMinimum": 0,
            "default": 0.1,
            "description": "Learning rate of boosting.",
        },
    },
}

POOLED = "all"  # the trees for classes that the shadows cannot teach


def fit(models: Signals, settings: dict, seed: int) -> dict[str, np.ndarray]:
    """Grow one ensemble of trees per class on the shadow models' probabilities for their members and non-members.

    Args:
        models: of the shadow models, with probabilities; see `shadows.shadow_examples` for what is in and out.
        settings: ``only_correct``: learn only from records that the shadow classifies correctly (Irolla & Châtel 2019);
            ``rounds``, ``leaves`` and ``learning_rate`` of the trees.
        seed: draws the out records.

    Returns:
        LightGBM's text of each class's trees as bytes, uint8, by class number. A class without both kinds of records
        has no trees of its own and is judged by ``all``, which is grown on the records of all classes.

    Raises:
        UserError: a shadow model was trained on the whole pool, or there are not both kinds of records.
    """
    parts = list(shadow_examples(models, np.random.default_rng(seed)))
    probabilities, label, inside = (np.concatenate(column) for column in zip(*parts, strict=True))
    n_classes = probabilities.shape[1]
    if settings["only_correct"]:
        right = probabilities.argmax(axis=1) == label
        probabilities, inside, label = probabilities[right], inside[right], label[right]
    if len(np.unique(inside)) < 2:
        raise UserError("attack shokri_trees: the shadow models classify no members or no non-members correctly")
    groups = {POOLED: np.arange(len(label)), **{str(c): np.flatnonzero(label == c) for c in range(n_classes)}}
    return {
        name: _grown(probabilities[rows], inside[rows], settings, seed)
        for name, rows in groups.items()
        if len(np.unique(inside[rows])) == 2
    }


def score(target: Signals, fitted: dict[str, np.ndarray], settings: dict, seed: int) -> Scores:
    """Score every queried record with its class's log-odds of "member", flagged above 0 (P above ½).

    Args:
        target: of the R models under attack, with probabilities.
        fitted: result of `fit` for the same settings.
        settings: as in `fit`.
        seed: unused, nothing is drawn.
    """
    import lightgbm

    trees = {name: lightgbm.Booster(model_str=text.tobytes().decode()) for name, text in fitted.items()}
    asked = target.asked
    probability = asked.probability
    assert probability is not None  # the attack declares that it reads probabilities
    log_odds = np.empty(asked.trained_on.shape)
    for c in np.unique(asked.y):
        rows = np.flatnonzero(asked.y == c)
        x = probability[:, rows].reshape(-1, probability.shape[2])
        judge = trees.get(str(c), trees[POOLED])
        log_odds[:, rows] = np.asarray(judge.predict(x, raw_score=True, num_threads=1)).reshape(asked.size, -1)
    return Scores(log_odds, log_odds > 0)


def _grown(probabilities: np.ndarray, inside: np.ndarray, settings: dict, seed: int) -> np.ndarray:
    import lightgbm

    how = parameters(settings, seed, objective="binary")
    text = lightgbm.train(how, lightgbm.Dataset(probabilities, inside), settings["rounds"]).model_to_string()
    return np.frombuffer(text.encode(), dtype=np.uint8)
