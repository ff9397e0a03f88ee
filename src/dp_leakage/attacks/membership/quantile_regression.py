"""Quantile regression (Bertran et al. 2023): is the margin above what records like this one reach without training?"""

import numpy as np
import pandas as pd

from dp_leakage.attacks.membership.references import population
from dp_leakage.attacks.membership.trees import parameters
from dp_leakage.attacks.signals import margins, membership_frame, target_records
from dp_leakage.data.dataset import Dataset
from dp_leakage.models.ensemble import Ensemble


def score(
    target: Ensemble, data: Dataset, fitted: dict[str, np.ndarray] | None, settings: dict, seed: int
) -> pd.DataFrame:
    """Scores every target record with its margin above the predicted 1 − α quantile; see `membership_frame`.

    For each target model, LightGBM learns on records that it was not trained on the 1 − α quantile of the
    margin given features and class. A record is flagged where its margin is above: a test of level α for each
    kind of record, with no other model trained.

    Args:
        target: the R models under attack.
        data: features, labels and roles; the regression learns on the role ``reference_pool``.
        fitted: unused, what is learnt belongs to one target.
        settings: ``alpha`` in (0, 1); ``rounds``, ``leaves`` and ``learning_rate`` of the boosted trees.
        seed: draws nothing unless LightGBM needs it.

    Raises:
        UserError: ``reference_pool`` is empty.
    """
    record, _ = target_records(data)
    others = population(data, "quantile_regression")
    features, outside = _features(data, record), _features(data, others)
    expected = [
        _predicted(outside, margin, features, settings, seed)
        for margin in margins(target, data.x[others], data.y[others])
    ]
    excess = margins(target, data.x[record], data.y[record]) - np.stack(expected)
    return membership_frame(data, excess, excess > 0)


def _features(data: Dataset, rows: np.ndarray) -> np.ndarray:
    """Float32 (n, d + 1): the record, flattened, and its class."""
    return np.column_stack([data.x[rows].reshape(len(rows), -1), data.y[rows].astype(np.float32)])


def _predicted(outside: np.ndarray, margin: np.ndarray, features: np.ndarray, settings: dict, seed: int) -> np.ndarray:
    import lightgbm

    how = parameters(settings, seed, objective="quantile", alpha=1 - settings["alpha"])
    known = lightgbm.Dataset(outside, margin, categorical_feature=[outside.shape[1] - 1])
    return lightgbm.train(how, known, settings["rounds"]).predict(features)
