"""Likelihood ratio attack (LiRA, Carlini et al. 2022): do models with or without the record give such a margin?"""

import numpy as np
import pandas as pd
from scipy.special import ndtri

from dp_leakage.attacks.membership.references import mean_where, require, trained_on
from dp_leakage.attacks.queries import queried_margins
from dp_leakage.attacks.signals import membership_frame, target_records
from dp_leakage.data.dataset import Dataset
from dp_leakage.errors import UserError, nearest
from dp_leakage.models.ensemble import Ensemble

VARIANCES = ("fixed", "per_record")
LEAST_DEVIATION = 1e-6  # of equal margins, so that the score stays finite


def fit(models: Ensemble, data: Dataset, settings: dict, seed: int) -> dict[str, np.ndarray]:
    """Gaussians of every target record's margin among reference models trained without it and, online, with it.

    Args:
        models: the reference models; their ``train_indices`` say who was trained with what.
        data: features, labels and roles.
        settings: ``online``, whether to use models trained with the record too; ``variance``: ``fixed``, one for all
            records (better with few references, as the paper finds), or ``per_record``; ``queries``, see
            `queried_margins`; ``alpha``, see `score`. A record without such a model gets the mean, and one with fewer
            than two the variance, of all records.
        seed: unused, nothing is drawn.

    Returns:
        out_mean, out_deviation and, online, in_mean, in_deviation: float64 (n,), in the order of
        `target_records`.

    Raises:
        UserError: an unknown ``variance``, or no reference model was trained without (online: with) any record.
    """
    if settings["variance"] not in VARIANCES:
        name = settings["variance"]
        raise UserError(f"attack lira: key 'variance' is '{name}'; {nearest(name, VARIANCES)}")
    record, _ = target_records(data)
    margin = queried_margins(models, data.x[record], data.y[record], settings["queries"])
    inside = trained_on(models, record)
    require(~inside, "lira", "without")
    fitted = _gaussians("out", margin, ~inside, settings["variance"])
    if settings["online"]:
        require(inside, "lira", "with")
        fitted |= _gaussians("in", margin, inside, settings["variance"])
    return fitted


def score(
    target: Ensemble, data: Dataset, fitted: dict[str, np.ndarray] | None, settings: dict, seed: int
) -> pd.DataFrame:
    """Scores every target record by how its margin compares with the reference models'; see `membership_frame`.

    Online the score is the log-likelihood ratio ln N(φ; in) − ln N(φ; out), flagged above 0. Offline it is
    the margin's distance (φ − mean)/deviation from the models without the record, of which the paper's 1 −
    P(a larger margin) is an increasing function, flagged above the 1 − ``alpha`` quantile of the normal
    distribution.
    """
    record, _ = target_records(data)
    margin = queried_margins(target, data.x[record], data.y[record], settings["queries"])
    distance = (margin - fitted["out_mean"]) / fitted["out_deviation"]
    if not settings["online"]:
        return membership_frame(data, distance, distance > ndtri(1 - settings["alpha"]))
    inner = (margin - fitted["in_mean"]) / fitted["in_deviation"]
    ratio = 0.5 * (distance**2 - inner**2) + np.log(fitted["out_deviation"] / fitted["in_deviation"])
    return membership_frame(data, ratio, ratio > 0)


def _gaussians(name: str, margin: np.ndarray, chosen: np.ndarray, variance: str) -> dict[str, np.ndarray]:
    """Mean and standard deviation, (n,), of the chosen margins among (K, n); unbiased variances."""
    mean = mean_where(margin, chosen)
    squares = np.where(chosen, (margin - mean) ** 2, 0.0).sum(axis=0)
    freedom = np.maximum(chosen.sum(axis=0) - 1, 0)
    pooled = np.full(len(mean), squares.sum() / max(freedom.sum(), 1))
    own = np.divide(squares, freedom, out=pooled.copy(), where=freedom > 0)
    deviation = np.sqrt(own if variance == "per_record" else pooled)
    return {f"{name}_mean": mean, f"{name}_deviation": np.maximum(deviation, LEAST_DEVIATION)}
