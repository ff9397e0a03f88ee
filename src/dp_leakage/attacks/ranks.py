"""The rank of the true class among a model's answers. This is no attack, but it reads the models as attacks do."""

from typing import NamedTuple

import numpy as np

from dp_leakage.attacks.signals import Signals

ATTACK = {"family": "utility"}


class Ranks(NamedTuple):
    """How many classes are at least as likely as the record's own, from 1: int64 (R, n)."""

    rank: np.ndarray


def score(target: Signals, reference: None, settings: dict, seed: int) -> Ranks:
    """The rank of the class of every record asked about; the other arguments are unused."""
    return Ranks(target.asked.rank.astype(np.int64))
