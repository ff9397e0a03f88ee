"""Loss threshold (Yeom et al. 2018, adversary 1): a member's loss is at most the mean training loss."""

import numpy as np
import pandas as pd

from dp_leakage.attacks.signals import losses, margins, membership_frame, target_records
from dp_leakage.data.dataset import Dataset
from dp_leakage.models.ensemble import Ensemble


def score(
    target: Ensemble, data: Dataset, fitted: dict[str, np.ndarray] | None, settings: dict, seed: int
) -> pd.DataFrame:
    """Scores every target record of every repeat with its negative loss; see `membership_frame`.

    Args:
        target: the R models under attack.
        data: features, labels and roles.
        fitted: unused, the attack learns nothing.
        settings: ``probability_floor`` in [0, 1): a record's loss is −ln max(p_y, floor). The released code
            of jayaraman2019 has 1e-3; 0 is the exact loss. The threshold, the mean training loss, has no
            floor.
        seed: unused, nothing is drawn.
    """
    record, member = target_records(data)
    loss = losses(margins(target, data.x[record], data.y[record]))
    threshold = loss[:, member].mean(axis=1, keepdims=True)
    floor = settings["probability_floor"]
    judged = np.minimum(loss, -np.log(floor)) if floor > 0 else loss
    return membership_frame(data, -judged, judged <= threshold)
