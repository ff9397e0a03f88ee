"""Loss threshold (Yeom et al. 2018, adversary 1): a member's loss is at most the mean training loss."""

import numpy as np

from dp_leakage.attacks.signals import Scores, Signals, losses

ATTACK = {
    "family": "membership",
    "label": "Yeom membership",
    "settings": {
        "probability_floor": {
            "type": "number",
            "minimum": 0,
            "exclusiveMaximum": 1,
            "default": 0.0,
            "description": "A record's loss is −ln max(p_y, floor). The threshold, the mean training loss, has no "
            "floor.",
        },
    },
}


def score(target: Signals, reference: None, settings: dict, seed: int) -> Scores:
    """Score every queried record with its negative loss.

    Args:
        target: of the R models under attack.
        reference: unused, the attack learns nothing.
        settings: ``probability_floor`` in [0, 1): a record's loss is −ln max(p_y, floor). The released code of
            jayaraman2019 uses 1e-3; 0 gives the exact loss. The threshold, the mean training loss, has no floor.
        seed: unused, nothing is drawn.
    """
    asked = target.asked
    loss = losses(asked.mean_margin())
    member = asked.trained_on
    threshold = np.where(member, loss, 0.0).sum(axis=1, keepdims=True) / member.sum(axis=1, keepdims=True)
    floor = settings["probability_floor"]
    judged = np.minimum(loss, -np.log(floor)) if floor > 0 else loss
    return Scores(-judged, judged <= threshold)
