"""Attack: the more certain the model is of any class, the more likely it has seen the record."""

import numpy as np

from dp_leakage.attacks.signals import logits, membership_frame, target_records

ATTACK = {"family": "membership", "settings": {"threshold": 0.9}}


def score(target, data, fitted, settings, seed):
    """Flags a record where the largest probability exceeds the threshold."""
    record, _ = target_records(data)
    certainty = np.empty((target.size, len(record)))
    for rows, z in logits(target, data.x[record], data.n_classes):
        certainty[:, rows] = z.softmax(dim=2).amax(dim=2).numpy()
    return membership_frame(data, certainty, certainty > settings["threshold"])
