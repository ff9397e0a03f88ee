"""Attack R (Ye et al. 2022): is the loss below the α-quantile of this record's losses without it in training?"""

import numpy as np
import pandas as pd

from dp_leakage.attacks.membership.attack_p import alpha_of
from dp_leakage.attacks.membership.references import mean_where, require, trained_on
from dp_leakage.attacks.queries import queried_margins
from dp_leakage.attacks.signals import losses, membership_frame, target_records
from dp_leakage.data.dataset import Dataset
from dp_leakage.models.ensemble import Ensemble


def fit(models: Ensemble, data: Dataset, settings: dict, seed: int) -> dict[str, np.ndarray]:
    """The losses of every target record under the reference models that were trained without it.

    Args:
        models: the reference models.
        data: features, labels and roles.
        settings: ``queries``, see `queried_margins`; ``alpha``, see `score`.
        seed: unused, nothing is drawn.

    Returns:
        losses: float64 (K, n), ascending along the first axis, NaN last for the models that were trained with
            the record (if all were, the other records' mean loss stands in); n in the order of `target_records`.

    Raises:
        UserError: every reference model was trained on every target record.
    """
    record, _ = target_records(data)
    inside = trained_on(models, record)
    require(~inside, "attack_r", "without")
    loss = losses(queried_margins(models, data.x[record], data.y[record], settings["queries"]))
    others = np.sort(np.where(inside, np.nan, loss), axis=0)
    others[0] = np.where(inside.all(axis=0), mean_where(loss, ~inside), others[0])
    return {"losses": others}


def score(
    target: Ensemble, data: Dataset, fitted: dict[str, np.ndarray] | None, settings: dict, seed: int
) -> pd.DataFrame:
    """Scores every target record with −α, α the least level at which the attack calls it a member; see `alpha_of`.

    The rule "member if the loss is at most c_α(x), the α-quantile of the reference losses" is so drawn for
    all α at once: it is "score ≥ −α". Flagged up to ``alpha``. Fitting a Gaussian to the reference margins
    instead ("logit rescaling") is the attack `lira`, offline with ``variance: per_record``.
    """
    record, _ = target_records(data)
    loss = losses(queried_margins(target, data.x[record], data.y[record], settings["queries"]))
    others = fitted["losses"]
    below = np.stack([(others < row).sum(axis=0) for row in loss])
    alpha = np.stack([alpha_of(row, others, count) for row, count in zip(loss, below, strict=True)])
    return membership_frame(data, -alpha, alpha <= settings["alpha"])
