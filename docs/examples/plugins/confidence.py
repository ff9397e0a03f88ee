"""Attack: the more certain the model is of any class, the more likely it has seen the record."""

from dp_leakage.attacks.signals import Scores

ATTACK = {"family": "membership", "reads": "probabilities", "settings": {"threshold": 0.9}}


def score(target, reference, settings, seed):
    """Flags a record where the largest probability exceeds the threshold."""
    certainty = target.asked.probability.max(axis=2)
    return Scores(certainty, certainty > settings["threshold"])
