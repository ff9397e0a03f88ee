"""Yeom et al. (2018), adversary 4: the value whose loss suits a training record, weighted by its frequency.

`yeom_attribute` is the same for two values and without their frequencies, as a paper's code has it.
"""

import numpy as np
import pandas as pd

from dp_leakage.attacks.attributes.guessing import Asked, guessed, probabilities
from dp_leakage.attacks.queries import trained_on
from dp_leakage.data.dataset import Dataset
from dp_leakage.models.ensemble import Models

ATTACK = {
    "family": "attribute",
    "label": "Yeom, all values",
    "roles": ["reference_pool"],
    "draws_as": "attributes",
    "settings": {
        "features": {"$ref": "#/$defs/features"},
        "categories": {"$ref": "#/$defs/categories"},
        "intervals": {"$ref": "#/$defs/intervals"},
        "learner": {"$ref": "#/$defs/learner"},
    },
}

LEAST = 1e-12  # probability, and mean squared loss, that less counts as


def score(target: Models, data: Dataset, fitted: dict | None, settings: dict, seed: int) -> pd.DataFrame:
    """As `guessing.guessed`. A loss is distributed as N(0, σ²), where σ² is the model's mean squared training loss,
    which the attacker is assumed to know.
    """
    trained = trained_on(target, data.trainable)
    squares = _loss(probabilities(target, data.x[data.trainable], data.n_classes), data.y[data.trainable]) ** 2
    spread = np.maximum(np.where(trained, squares, 0.0).sum(axis=1) / trained.sum(axis=1), LEAST)

    def judge(asked: Asked) -> np.ndarray:
        loss = _loss(asked.answers(asked.record), data.y[asked.record])
        return np.log(asked.prior) - loss.swapaxes(1, 2) ** 2 / (2 * spread[:, None, None])

    return guessed(target, data, settings, seed, judge)


def _loss(probability: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Return the cross-entropy, in nats, of probabilities (…, n, C) and labels (n,): (…, n)."""
    own = np.take_along_axis(probability, np.broadcast_to(y, probability.shape[:-1])[..., None], -1)[..., 0]
    return -np.log(np.maximum(own, LEAST))
