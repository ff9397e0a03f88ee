"""Proven limits of a training, next to measured values: rows of the proven ROC, and notes on them."""

from collections.abc import Callable

import numpy as np
import pandas as pd

from dp_leakage.metrics.rows import CELL, NUMBERS, qualifiers
from dp_leakage.privacy.rates import between
from dp_leakage.table.frames import is_private
from dp_leakage.table.words import name

Limits = Callable[[tuple[str, ...], np.ndarray], np.ndarray]
PROVEN = ("advantage_proven", "tpr_proven", "mu", "mu_bound", "mu_regret")


def divided(frame: pd.DataFrame) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Return a figure's frame in two: what was measured (or scores), and what is proven."""
    if "metric" not in frame:
        return frame, frame.iloc[:0].assign(metric="", value=np.nan, fpr=np.nan, neighbors="")
    limit = frame["metric"].isin(PROVEN)
    measured, proven = frame[~limit], frame[limit]
    if measured["metric"].isna().all():  # scores, whose ``attack`` is their own
        measured = measured.drop(columns=["metric", *NUMBERS, *(set(qualifiers(frame)) - {"attack"})])
    return measured, proven.drop_duplicates([*CELL, "metric", *qualifiers(frame)])


def proven_tprs(proven: pd.DataFrame) -> Limits:
    """Return a function of a cell and of rates (n,) in [0, 1]: the largest TPR that any attack on the cell can have
    at each.

    It is 1 without a proof.
    """
    rows = proven[proven["metric"] == "tpr_proven"].sort_values("fpr")
    curves = {cell: (part["fpr"].to_numpy(), part["value"].to_numpy()) for cell, part in rows.groupby(CELL)}

    def tpr(cell: tuple[str, ...], fpr: np.ndarray) -> np.ndarray:
        return between(np.asarray(fpr, dtype=float), *curves[cell]) if cell in curves else np.ones(len(fpr))

    return tpr


def with_proven(rows: pd.DataFrame, proven: pd.DataFrame, fpr: float | None) -> pd.DataFrame:
    """Add columns ``advantage_proven``, ``tpr_proven`` and ``mu``, which no attack on the cell exceeds.

    Args:
        rows: with the columns of the cell.
        proven: as `divided` gives them.
        fpr: of ``tpr_proven``; None: 0.1 %.

    Returns:
        1 where a private cell proves nothing for these neighbors (of μ: infinite), NaN where a cell is not private.
    """
    rate = 1e-3 if fpr is None else fpr
    of = {metric: proven[proven["metric"] == metric].set_index(CELL)["value"] for metric in ("advantage_proven", "mu")}
    keys = pd.MultiIndex.from_frame(rows[CELL]) if len(rows) else []
    private = is_private(rows).to_numpy()

    def column(metric: str, nothing: float) -> np.ndarray:
        found = np.array([of[metric].get(key, nothing) for key in keys], dtype=float)
        return np.where(private, found, np.nan)

    limit = proven_tprs(proven)
    tpr = np.array([limit(key, np.array([rate]))[0] for key in keys], dtype=float)
    return rows.assign(
        advantage_proven=column("advantage_proven", 1.0),
        tpr_proven=np.where(private, tpr, np.nan),
        mu=column("mu", np.inf),
    )


def proven_notes(proven: pd.DataFrame, what: str) -> list[str]:
    """Return the footnote on the neighbors for which ``what`` (which lines) is proven; none where nothing is."""
    relations = sorted(set(proven["neighbors"]))
    return [f"{what}: proven for {' or '.join(map(name, relations))} neighbors."] if relations else []
