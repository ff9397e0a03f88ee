"""From the scores of an audit's canaries to lower bounds on ε."""

import numpy as np
import pandas as pd

from dp_leakage.audits import (
    CONFIDENCE,
    Audit,
    approximate_dp,
    corrected,
    gaussian_dp,
    many_runs_bound,
    one_run_bound,
)


def measure_audit(
    frame: pd.DataFrame, delta: float, share: float, comparisons: int, unsampled_gaussian: bool
) -> list[dict]:
    """Rows ``epsilon_lower_bound`` of one cell: all of them, in all cells, hold together with 95 % confidence.

    Args:
        frame: repeat, canary (kind), place, held (bool, the coin), score (higher: rather held): of every model, the
            same places of every kind.
        delta: δ of the claim, in [0, 1).
        share: of the canaries that are guessed about where (ε, δ) alone is claimed, in (0, 1], fixed beforehand.
        comparisons: bounds that are stated together.
        unsampled_gaussian: the claim is of that kind, so that ``many_runs`` may use the tighter bound for it.

    Returns:
        For each kind of canary ``design=one_run``, from all coins of all models together: they are as many coins of
        one mechanism, the trainings side by side; and ``design=many_runs``, across the models, from the first place
        alone.
    """
    confidence = corrected(CONFIDENCE, comparisons)
    anything = approximate_dp(delta)
    across, guessed = (gaussian_dp(delta), 1.0) if unsampled_gaussian else (anything, share)
    rows = []
    for kind, part in frame.groupby("canary", sort=True):
        found = one_run_bound(*_columns(part), anything, confidence, share)
        rows.append(_row(kind, "one_run", found, confidence))
        first = part[part["place"] == part["place"].min()]
        if len(first) >= 2:
            found = many_runs_bound(*_columns(first), across, confidence, guessed)
            rows.append(_row(kind, "many_runs", found, confidence))
    return rows


def _columns(frame: pd.DataFrame) -> tuple[np.ndarray, np.ndarray]:
    return frame["score"].to_numpy(), frame["held"].to_numpy(dtype=bool)


def _row(kind: object, design: str, found: Audit, confidence: float) -> dict:
    setting = (
        f"canary={kind};confidence={confidence:.6g};design={design};guesses={found.guesses};"
        f"neighbours=replace_one;right={found.right}"
    )
    value = found.epsilon
    return {
        "metric": "epsilon_lower_bound",
        "repeat": "all",
        "value": value,
        "low": value,
        "high": np.inf,
        "setting": setting,
    }
