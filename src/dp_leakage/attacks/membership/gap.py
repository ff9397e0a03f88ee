"""The gap attack (Yeom et al. 2018): whoever is classified correctly is a member. One label is all that it reads."""

import numpy as np

from dp_leakage.attacks.signals import Scores, Signals

ATTACK = {
    "family": "membership",
    "label": "gap attack",
}


def score(target: Signals, reference: None, settings: dict, seed: int) -> Scores:
    """Scores every record asked about 1 if the model predicts its class, else 0. It costs one query a record.

    Args:
        target: of the R models under attack.
        reference, settings, seed: unused.
    """
    correct = target.asked.correct
    return Scores(correct.astype(np.float64), correct)
