"""Recognition of a training record among n candidates by its reconstruction, and the limit for any attack.

The candidates are the record and n − 1 other members, equally likely a priori. The others are drawn for each record,
and the result is the probability over all draws: with the same few others for all records, and noisy images far from
these, most guesses would be right by chance. Without the step a guess is right with probability 1/n. A proof limits how
much more often an attacker is right (Balle, Cherubin & Hayes 2022; Hayes, Mahloujifar & Balle 2023, Theorem 2), even
one who knows all other records of the batch.
"""

from typing import get_args

import numpy as np
from scipy.spatial.distance import cdist

from dp_leakage.common.errors import UserError
from dp_leakage.data.dataset import Dataset
from dp_leakage.privacy.accounting import tradeoff
from dp_leakage.privacy.mechanism import Bound, Mechanism

OTHERS = 1_000  # more would take time and hardly change the chance
DOUBLED = {"example": 1.0, "batch": 2.0}  # unit → by how many of its bounds a sum moves if a record is removed


def others_among(data: Dataset, victims: int, candidates: int) -> np.ndarray:
    """Return the members from which the other candidates are drawn, (m, …): the first ones that are not victims, up to
    `OTHERS`.

    Raises:
        UserError: there are too few members.
    """
    members = data.roles["target_members"]
    if victims + candidates - 1 > len(members):
        raise UserError(
            f"key 'candidates' must be at most {len(members) - victims + 1}, since {victims} of {len(members)} members "
            f"are reconstructed; got {candidates}"
        )
    return data.x[members[victims : victims + max(OTHERS, candidates - 1)]]


def recognized(made: np.ndarray, truth: np.ndarray, others: np.ndarray, batch: int, candidates: int) -> np.ndarray:
    """Return the probability that the victim is the nearest candidate to the reconstruction, float64 (n,) in [0, 1].

    The attacker does not know which image of a batch is whose, so the nearest of them counts. Ties are wrong.

    Args:
        made, truth: (n, …), reconstructed images and victims; consecutive ones are a batch.
        others: (m, …), from which candidates − 1 are drawn without replacement.
        batch: batch size.
        candidates: at least 2, at most m + 1.
    """
    own, other = (cdist(made.reshape(len(made), -1), images.reshape(len(images), -1)) for images in (truth, others))
    farther = []
    for start in range(0, len(made), batch):
        rows = slice(start, start + batch)
        farther.append((other[rows].min(axis=0) > own[rows, rows].min(axis=0)[:, None]).sum(axis=1))
    drawn = np.arange(candidates - 1)
    return ((np.concatenate(farther)[:, None] - drawn).clip(0) / (len(others) - drawn)).prod(axis=1)


def most_recognized(mechanism: Mechanism | None, candidates: int, weights: str) -> float:
    """Return the largest probability that any attack on one step identifies the record among the candidates, in [1/n,
    1].

    Args:
        mechanism: protection of the step.
        candidates: n.
        weights: ``trained`` weights have been fitted to the record before, so the step alone bounds nothing.

    Returns:
        Φ(Φ⁻¹(1/n) + 1/σ) for Gaussian noise on clipped records (2/σ on clipped batches); 1 without a known bound.
    """
    if mechanism is None or mechanism.noise != "gaussian" or not mechanism.noise_multiplier:
        return 1.0
    if mechanism.unit not in DOUBLED or mechanism.bound not in get_args(Bound) or weights == "trained":
        return 1.0
    return tradeoff.gaussian(DOUBLED[mechanism.unit] / mechanism.sigma).reconstruction(1 / candidates)
