"""The same training as a Python function, as `dp-leakage audit` calls it."""

import numpy as np

from docs.examples.audit_training import numpy_dpsgd


def train(x, y, seed):
    """A function: records (m, features) → logits (m, classes)."""
    weights = numpy_dpsgd.train(x.astype(float), y, seed)
    return lambda records: numpy_dpsgd.logits(weights, np.asarray(records, dtype=float))
