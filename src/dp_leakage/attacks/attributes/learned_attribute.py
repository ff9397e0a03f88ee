"""Learned attack: a classifier of the model's outputs for every candidate value and the known features of a record.

It is fitted on the attacker's own records, as imputation is; the model's answers are the only difference.
"""

import numpy as np
import pandas as pd

from dp_leakage.attacks.attributes.guessing import Asked, guessed
from dp_leakage.attacks.attributes.guessing import fitted as learned
from dp_leakage.data.dataset import Dataset
from dp_leakage.models.ensemble import Models

ATTACK = {
    "family": "attribute",
    "label": "learned attribute",
    "roles": ["reference_pool"],
    "draws_as": "attributes",
    "settings": {
        "features": {"$ref": "#/$defs/features"},
        "categories": {"$ref": "#/$defs/categories"},
        "intervals": {"$ref": "#/$defs/intervals"},
        "learner": {"$ref": "#/$defs/learner"},
    },
}

LEAST = 1e-6  # probability that less counts as: its logarithm is what is learned from


def score(target: Models, data: Dataset, fitted: dict | None, settings: dict, seed: int) -> pd.DataFrame:
    """As `guessing.guessed`, with a classifier for every model."""

    def judge(asked: Asked) -> np.ndarray:
        own, other = (_features(asked, rows) for rows in (asked.own, asked.record))
        code, size = asked.code(asked.own), len(asked.tried)
        return np.stack([learned(asked.learner, a, code, size)(b) for a, b in zip(own, other, strict=True)])

    return guessed(target, data, settings, seed, judge)


def _features(asked: Asked, rows: np.ndarray) -> np.ndarray:
    """Return (R, rows, features): the known values, and the log probability of the true class with each candidate."""
    answers, y = asked.answers(rows), asked.data.y[rows]
    own = np.take_along_axis(answers, np.broadcast_to(y, answers.shape[:3])[..., None], 3)[..., 0]
    said = np.log(np.maximum(own, LEAST)).swapaxes(1, 2)
    known = asked.known(rows)
    return np.concatenate([np.broadcast_to(known, (len(said), *known.shape)), said], axis=2)
