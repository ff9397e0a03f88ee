"""Robust membership inference (RMIA, Zarifzadeh, Liu & Shokri 2024): does the record stand out against others?"""

import numpy as np
import pandas as pd

from dp_leakage.attacks.membership.references import mean_where, population, require, trained_on
from dp_leakage.attacks.queries import queried_margins
from dp_leakage.attacks.signals import losses, membership_frame, target_records
from dp_leakage.data.dataset import Dataset
from dp_leakage.metrics.roc import auc
from dp_leakage.models.ensemble import Ensemble

TRIED = np.linspace(0, 1, 11)  # values of a that "auto" tries
ALONE = 0.3  # a where a single reference model leaves none to attack


def fit(models: Ensemble, data: Dataset, settings: dict, seed: int) -> dict[str, np.ndarray]:
    """The probabilities of the true class that one expects before seeing the target: Pr(x) and Pr(z).

    Pr = (P_in + P_out)/2, means over the reference models trained with and without a record. Offline, and for
    records that no reference model saw, P_in is taken as a·P_out + 1 − a (the paper's equation 11).

    Args:
        models: the reference models.
        data: features, labels and roles; the records z are those of ``reference_pool``.
        settings: ``online``; ``a`` in [0, 1] or ``auto``: of 0, 0.1, … 1 the one with the best AUC when the
            first reference model is attacked with the help of the others; ``gamma``, ``alpha``, see `score`;
            ``queries``, see `queried_margins`.
        seed: unused, nothing is drawn.

    Returns:
        expected (n,), in the order of `target_records`; population_expected (Z,), population int64 (Z,), row
        numbers, those trained on by all reference models left out; a (1,).

    Raises:
        UserError: ``reference_pool`` is empty, or every reference model was trained on every target record.
    """
    record, _ = target_records(data)
    rows = np.concatenate([record, population(data, "rmia")])
    probability = np.exp(-losses(queried_margins(models, data.x[rows], data.y[rows], settings["queries"])))
    inside = trained_on(models, rows)
    require(~inside[:, : len(record)], "rmia", "without")
    a = _best_a(probability, inside) if settings["a"] == "auto" else float(settings["a"])
    expected = _expected(probability, inside, a, settings["online"])
    usable = np.flatnonzero(~inside[:, len(record) :].all(axis=0)) + len(record)
    return {
        "expected": expected[: len(record)],
        "population_expected": expected[usable],
        "population": rows[usable],
        "a": np.array([a]),
    }


def score(
    target: Ensemble, data: Dataset, fitted: dict[str, np.ndarray] | None, settings: dict, seed: int
) -> pd.DataFrame:
    """Scores every target record x with the share of records z of which LR(x, z) ≥ γ; see `membership_frame`.

    LR(x, z) = [Pr(x | target)/Pr(x)] / [Pr(z | target)/Pr(z)] (equation 3). As it is a ratio of a term of x
    and a term of z, all N·Z comparisons are one search among the sorted terms of z. Flagged from 1 −
    ``alpha`` on.
    """
    record, _ = target_records(data)
    of_x = _log_ratio(target, data, record, fitted["expected"], settings["queries"])
    of_z = _log_ratio(target, data, fitted["population"], fitted["population_expected"], settings["queries"])
    share = dominated(of_x, of_z, settings["gamma"])
    return membership_frame(data, share, share >= 1 - settings["alpha"])


def dominated(of_x: np.ndarray, of_z: np.ndarray, gamma: float) -> np.ndarray:
    """For each x, the share of z with exp(x − z) ≥ γ: logarithms (R, n) and (R, Z), result (R, n)."""
    reach = of_x - np.log(gamma)
    counts = [np.searchsorted(np.sort(z), x, side="right") for x, z in zip(reach, of_z, strict=True)]
    return np.stack(counts) / of_z.shape[1]


def _log_ratio(target: Ensemble, data: Dataset, rows: np.ndarray, expected: np.ndarray, queries: int) -> np.ndarray:
    return -losses(queried_margins(target, data.x[rows], data.y[rows], queries)) - np.log(expected)


def _expected(probability: np.ndarray, inside: np.ndarray, a: float, online: bool) -> np.ndarray:
    """Pr of records (n,), from probabilities (K, n) and who was trained on what, bool (K, n)."""
    without = mean_where(probability, ~inside)
    assumed = a * without + 1 - a
    if not online:
        return (assumed + without) / 2
    return (np.where(inside.any(axis=0), mean_where(probability, inside), assumed) + without) / 2


def _best_a(probability: np.ndarray, inside: np.ndarray) -> float:
    """The a with which the first of K ≥ 2 reference models gives away most; the smallest of equally good ones."""
    if len(probability) < 2:
        return ALONE
    usable = ~inside[1:].all(axis=0)
    member = inside[0, usable]
    if member.all() or not member.any():
        return ALONE
    helpers, known = probability[1:, usable], inside[1:, usable]
    ratios = [probability[0, usable] / _expected(helpers, known, a, online=False) for a in TRIED]
    return float(TRIED[np.argmax([auc(r[None, member], r[None, ~member]).value for r in ratios])])
