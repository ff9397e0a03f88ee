"""CSMIA (Mehnaz et al. 2022): the value with which the model predicts the true class most confidently.

If the model predicts the true class with no value, the guess is the value with which it is least confident.
"""

import numpy as np
import pandas as pd

from dp_leakage.attacks.attributes.guessing import Asked, guessed
from dp_leakage.data.dataset import Dataset
from dp_leakage.models.ensemble import Models

ATTACK = {
    "family": "attribute",
    "label": "CSMIA",
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
    """Score as `guessing.guessed`, from the predicted class and its confidence only."""

    def judge(asked: Asked) -> np.ndarray:
        answers = asked.answers(asked.record)
        right = answers.argmax(axis=3) == data.y[asked.record]
        sure = answers.max(axis=3)
        return np.where(right, sure, -sure).swapaxes(1, 2)

    return guessed(target, data, settings, seed, judge)
