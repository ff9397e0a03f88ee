"""Use: the share of records whose class is among the model's first three answers."""

import numpy as np

UTILITY = {"label": "top-3 accuracy"}


def measure(labels, probabilities):
    """The share of the records with one of the three most probable classes."""
    first = np.argsort(-probabilities, axis=1)[:, :3]
    return float((first == labels[:, None]).any(axis=1).mean())
