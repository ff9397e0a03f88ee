"""What the attacks read off trained models, and the frame that membership attacks write."""

from collections.abc import Iterator

import numpy as np
import pandas as pd
import torch
from torch import Tensor

from dp_leakage.data.dataset import Dataset
from dp_leakage.models.ensemble import Ensemble

LOGITS_AT_ONCE = 1 << 24  # numbers: bounds the memory of all models' logits on one part of the records (64 MB)


def target_records(data: Dataset) -> tuple[np.ndarray, np.ndarray]:
    """The records that membership is asked of, and the answers.

    Returns:
        Row numbers of ``data.x``, int64 (n,), the target's members before its non-members; member, bool (n,).
    """
    members, nonmembers = data.roles["target_members"], data.roles["target_nonmembers"]
    return np.concatenate([members, nonmembers]), np.repeat([True, False], [len(members), len(nonmembers)])


def logits(
    models: Ensemble, x: np.ndarray, n_classes: int, chosen: list[int] | None = None
) -> Iterator[tuple[slice, Tensor]]:
    """Logits (K, rows, C) of all or the chosen models, part by part of x (n, …), each with its slice of n."""
    rows = max(1, LOGITS_AT_ONCE // (models.size * n_classes))
    for start in range(0, len(x), rows):
        part = slice(start, min(start + rows, len(x)))
        yield part, models.logits(torch.from_numpy(x[part]), chosen).cpu()


def margins(models: Ensemble, x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Logit of the true class's probability, ln p_y/(1 − p_y), float64 (K, n), of records x (n, …), y (n,).

    Computed as z_y − ln Σ_{c≠y} exp z_c, which keeps its digits where p_y rounds to 1. Loss and probability
    are functions of it, and LiRA's confidence is it.
    """
    y = np.asarray(y, dtype=np.int64)
    result = np.empty((models.size, len(x)))
    for part, z in logits(models, x, int(y.max(initial=0)) + 1):
        index = torch.from_numpy(y[part]).expand(len(z), -1).unsqueeze(2)
        true = z.gather(2, index).squeeze(2)
        result[:, part] = (true - z.scatter_(2, index, -torch.inf).logsumexp(2)).numpy()
    return result


def losses(margin: np.ndarray) -> np.ndarray:
    """Cross-entropy −ln p_y in nats, ≥ 0, of records with these margins; same shape."""
    return np.logaddexp(0.0, -margin)


def membership_frame(data: Dataset, score: np.ndarray, flagged: np.ndarray) -> pd.DataFrame:
    """The score file of a membership attack.

    Args:
        data: says which records are scored, and which of them are members (`target_records`).
        score: (R, n), the higher, the more likely a member; n records in the order of `target_records`.
        flagged: bool (R, n), the attack's own decision.

    Returns:
        repeat int64, record int64, member bool, score float64, flagged bool.
    """
    record, member = target_records(data)
    repeats = len(score)
    return pd.DataFrame(
        {
            "repeat": np.repeat(np.arange(repeats), len(record)),
            "record": np.tile(record.astype(np.int64), repeats),
            "member": np.tile(member, repeats),
            "score": np.asarray(score, dtype=np.float64).ravel(),
            "flagged": np.asarray(flagged, dtype=bool).ravel(),
        }
    )
