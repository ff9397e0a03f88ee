"""Highest posterior (Salem et al. 2019, adversary 3): a model is most confident on its training records.

It needs neither labels nor models of the attacker's own.
"""

import numpy as np

from dp_leakage.attacks.signals import Scores, Signals
from dp_leakage.common.errors import UserError

ATTACK = {
    "family": "membership",
    "label": "highest posterior",
    "reads": "probabilities",
    "roles": ["shadow_pool"],
    "settings": {"alpha": {"$ref": "#/$defs/alpha", "default": 0.1}},
}


def score(target: Signals, reference: None, settings: dict, seed: int) -> Scores:
    """Score every queried record with the logarithm of its largest probability, whichever class has it.

    Args:
        target: of the R models under attack, with probabilities; the role ``shadow_pool`` holds records of the attacker
            that no model trained on, in place of the paper's random points.
        reference: unused, the attack needs no other model.
        settings: ``alpha``: a record is flagged if its score is in the top share ``alpha`` of the attacker's records;
            the paper uses the top tenth.
        seed: unused, nothing is drawn.

    Raises:
        UserError: ``shadow_pool`` is empty.
    """
    highest = _highest(target.asked)
    own = target.of("shadow_pool")
    if not len(own.record):
        raise UserError("attack highest_posterior: role 'shadow_pool' has no records; expected one or more")
    threshold = np.quantile(_highest(own), 1 - settings["alpha"], axis=1, keepdims=True)
    return Scores(highest, highest > threshold)


def _highest(said: Signals) -> np.ndarray:
    """Return the logarithm of each record's largest probability, float64 (R, n)."""
    assert said.probability is not None  # the attack declares that it reads probabilities
    return np.log(said.probability.max(axis=2).astype(np.float64))
