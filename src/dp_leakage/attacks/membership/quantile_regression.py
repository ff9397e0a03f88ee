"""Quantile regression (Bertran et al. 2023): compare the margin with margins of similar non-members."""

import numpy as np

from dp_leakage.attacks.membership.references import population
from dp_leakage.attacks.membership.trees import parameters
from dp_leakage.attacks.signals import Scores, Signals

# ``alpha`` is the level of the attack's own test: near the best advantage for weak and strong leaks.
ATTACK = {
    "family": "membership",
    "reads": "features",
    "roles": ["reference_pool"],
    "settings": {
        "rounds": {"$ref": "#/$defs/rounds"},
        "leaves": {"$ref": "#/$defs/leaves", "default": 15},
        "learning_rate": {
            "type": "number",
            "exclusiveMinimum": 0,
            "default": 0.1,
            "description": "Learning rate of boosting.",
        },
        "alpha": {"$ref": "#/$defs/alpha"},
    },
}

LEAST_IN_BIN = 10  # records; finer steps of a feature find no more members, and take 1.7 times as long on few records


def score(target: Signals, reference: None, settings: dict, seed: int) -> Scores:
    """Score every queried record with its margin above the predicted 1 − α quantile.

    For each target model, LightGBM learns the 1 − α quantile of the margin, given features and class, on records that
    the model was not trained on. A record is flagged if its margin is above the quantile. This is a test of level α for
    each kind of record, without training any other model.

    Args:
        target: of the R models under attack, with features; the regression learns on the role ``reference_pool``.
        reference: unused, since the regression belongs to one target.
        settings: ``alpha`` in (0, 1); ``rounds``, ``leaves`` and ``learning_rate`` of the boosted trees.
        seed: draws nothing unless LightGBM needs it.

    Raises:
        UserError: ``reference_pool`` is empty.
    """
    asked, others = target.asked, population(target, "quantile_regression")
    features, outside = _features(asked), _features(others)
    expected = [_predicted(outside, margin, features, settings, seed) for margin in others.mean_margin()]
    excess = asked.mean_margin() - np.stack(expected)
    return Scores(excess, excess > 0)


def _features(signals: Signals) -> np.ndarray:
    """Return float32 (n, d + 1): the flattened record and its class."""
    assert signals.x is not None  # the attack declares that it reads features
    return np.column_stack([signals.x.reshape(len(signals.y), -1), signals.y.astype(np.float32)])


def _predicted(outside: np.ndarray, margin: np.ndarray, features: np.ndarray, settings: dict, seed: int) -> np.ndarray:
    import lightgbm

    how = parameters(settings, seed, objective="quantile", alpha=1 - settings["alpha"], min_data_in_bin=LEAST_IN_BIN)
    known = lightgbm.Dataset(outside, margin, categorical_feature=[outside.shape[1] - 1])
    return np.asarray(lightgbm.train(how, known, settings["rounds"]).predict(features))
