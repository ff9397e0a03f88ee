"""Whether a rebuilt image tells which of n candidates the training record is, and how often any attack can tell.

The candidates are the record and n − 1 other members, which are as likely before the step is seen. So a guess without
it is right with a chance of 1/n, and what is proven limits how much more often an attacker is right (Balle, Cherubin &
Hayes 2022; Hayes, Mahloujifar & Balle 2023, Theorem 2), even one who knows all other records of the batch.
"""

from typing import get_args

import numpy as np
from scipy.spatial.distance import cdist

from dp_leakage.common.errors import UserError
from dp_leakage.data.dataset import Dataset
from dp_leakage.privacy.accounting import tradeoff
from dp_leakage.privacy.mechanism import Bound, Mechanism

DOUBLED = {"example": 1.0, "batch": 2.0}  # unit → by how many of its bounds a sum moves if a record is removed


def others_among(data: Dataset, victims: int, candidates: int) -> np.ndarray:
    """The members that stand beside each victim, (candidates − 1, …): the first that are no victims themselves.

    Raises:
        UserError: there are too few members.
    """
    members = data.roles["target_members"]
    if victims + candidates - 1 > len(members):
        raise UserError(
            f"key 'candidates' must be at most {len(members) - victims + 1}, since {victims} of {len(members)} members "
            f"are rebuilt; got {candidates}"
        )
    return data.x[members[victims : victims + candidates - 1]]


def recognized(made: np.ndarray, truth: np.ndarray, others: np.ndarray, batch: int) -> np.ndarray:
    """Whether of all candidates the victim comes nearest to what is rebuilt, float64 (n,) of 0 and 1.

    The attacker does not know which image of a batch is whose, so the nearest of them counts. Ties are wrong.

    Args:
        made, truth: (n, …), rebuilt images and victims; consecutive ones are a batch.
        others: (m, …), the other candidates of every victim.
        batch: how many.
    """
    own, other = (cdist(made.reshape(len(made), -1), images.reshape(len(images), -1)) for images in (truth, others))
    right = []
    for start in range(0, len(made), batch):
        rows = slice(start, start + batch)
        right.append(own[rows, rows].min(axis=0) < other[rows].min())
    return np.concatenate(right).astype(np.float64)


def most_recognized(mechanism: Mechanism | None, candidates: int, weights: str) -> float:
    """The largest chance of any attack that sees one step to tell the record from the candidates, in [1/n, 1].

    Args:
        mechanism: what protects the step.
        candidates: n.
        weights: ``trained`` weights have seen the record before, so that the step alone bounds nothing.

    Returns:
        Φ(Φ⁻¹(1/n) + 1/σ) for Gaussian noise on clipped records (2/σ on clipped batches); 1 where nothing is known.
    """
    if mechanism is None or mechanism.noise != "gaussian" or not mechanism.noise_multiplier:
        return 1.0
    if mechanism.unit not in DOUBLED or mechanism.bound not in get_args(Bound) or weights == "trained":
        return 1.0
    return tradeoff.gaussian(DOUBLED[mechanism.unit] / mechanism.sigma).reconstruction(1 / candidates)
