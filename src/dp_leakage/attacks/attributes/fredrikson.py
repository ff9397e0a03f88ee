"""Fredrikson et al. (2014): the value that makes the prediction likeliest, weighted by the value's frequency.

The attacker knows the model's confusion matrix and sees predicted classes only.
"""

import numpy as np
import pandas as pd

from dp_leakage.attacks.attributes.guessing import Asked, guessed, probabilities
from dp_leakage.data.dataset import Dataset
from dp_leakage.models.ensemble import Models

ATTACK = {
    "family": "attribute",
    "label": "Fredrikson",
    "roles": ["reference_pool"],
    "draws_as": "attributes",
    "settings": {
        "features": {"$ref": "#/$defs/features"},
        "categories": {"$ref": "#/$defs/categories"},
        "intervals": {"$ref": "#/$defs/intervals"},
        "learner": {"$ref": "#/$defs/learner"},
    },
}


def score(target: Models, data: Dataset, fitted: dict | None, settings: dict, seed: int) -> pd.DataFrame:
    """As `guessing.guessed`, with the confusion matrix of the attacker's own records."""

    def judge(asked: Asked) -> np.ndarray:
        said = probabilities(target, data.x[asked.own], data.n_classes).argmax(axis=2)
        predicted = asked.answers(asked.record).argmax(axis=3)
        likely = [
            confusion(data.y[asked.own], model, data.n_classes)[data.y[asked.record], tried]
            for model, tried in zip(said, predicted, strict=True)
        ]
        return np.log(np.stack(likely).swapaxes(1, 2)) + np.log(asked.prior)

    return guessed(target, data, settings, seed, judge)


def confusion(y: np.ndarray, predicted: np.ndarray, n_classes: int) -> np.ndarray:
    """Return P(predicted | class), float64 (C, C), a row for each true class, by the rule of succession."""
    count = np.ones((n_classes, n_classes))
    np.add.at(count, (y, predicted), 1)
    return count / count.sum(axis=1, keepdims=True)
