"""The place of the true class among a model's answers: no attack, but asked of the models as the attacks ask."""

import numpy as np
import pandas as pd
import torch

from dp_leakage.attacks.signals import logits, target_records
from dp_leakage.data.dataset import Dataset
from dp_leakage.models.ensemble import Ensemble


def score(
    target: Ensemble, data: Dataset, fitted: dict[str, np.ndarray] | None, settings: dict, seed: int
) -> pd.DataFrame:
    """The rank of every target record's class, from 1: how many classes have a logit at least as large.

    Args:
        target: the R models.
        data: features, labels and roles.
        fitted, settings, seed: unused.

    Returns:
        repeat, record, member, rank.
    """
    record, member = target_records(data)
    rank = np.empty((target.size, len(record)), dtype=np.int64)
    for part, outputs in logits(target, data.x[record], data.n_classes):
        own = torch.from_numpy(data.y[record[part]]).expand(target.size, -1)[..., None]
        rank[:, part] = (outputs >= outputs.gather(2, own)).sum(2).numpy()
    return pd.DataFrame(
        {
            "repeat": np.repeat(np.arange(target.size), len(record)),
            "record": np.tile(record, target.size),
            "member": np.tile(member, target.size),
            "rank": rank.ravel(),
        }
    )
