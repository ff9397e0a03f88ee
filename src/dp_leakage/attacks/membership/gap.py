"""Gap attack (Yeom et al. 2018): every correctly classified record is called a member. It needs only the predicted
label.
"""

import numpy as np

from dp_leakage.attacks.signals import Scores, Signals

ATTACK = {
    "family": "membership",
    "label": "gap attack",
}


def score(target: Signals, reference: None, settings: dict, seed: int) -> Scores:
    """Score every queried record 1 if the model predicts its class, otherwise 0. It costs one query per record.

    Args:
        target: of the R models under attack.
        reference, settings, seed: unused.
    """
    correct = target.asked.correct
    return Scores(correct.astype(np.float64), correct)
