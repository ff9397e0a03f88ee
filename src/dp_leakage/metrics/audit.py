"""From the scores of an audit's canaries to lower bounds on ε."""

import numpy as np
import pandas as pd

from dp_leakage.audit import CONFIDENCE, Audit, corrected, gaussian_bound, one_run_bound, rates_bound, trials_bound


def measure_audit(
    frame: pd.DataFrame, delta: float, share: float, comparisons: int, unsampled_gaussian: bool, seed: int
) -> list[dict]:
    """Rows ``epsilon_lower_bound`` of one cell: all of them, in all cells, hold together with 95 % confidence.

    Args:
        frame: repeat, canary (kind), place, held (bool, the coin), score (higher: rather held): of every model, the
            same places of every kind.
        delta: δ of the claim, in [0, 1).
        share: of the canaries that ``one_run`` guesses about, in (0, 1], fixed beforehand.
        comparisons: bounds that are stated together.
        unsampled_gaussian: the claim is of that kind, so that ``trials`` may use the tighter bound for it.
        seed: halves the models of ``trials``.

    Returns:
        For each kind of canary ``design=one_run``, from all coins of all models together: they are as many coins of
        one mechanism, the trainings side by side; and ``design=trials``, across the models, from the first place alone.
    """
    confidence = corrected(CONFIDENCE, comparisons)
    bound = gaussian_bound if unsampled_gaussian else rates_bound
    rows = []
    for kind, part in frame.groupby("canary", sort=True):
        score, held = part["score"].to_numpy(), part["held"].to_numpy(dtype=bool)
        guesses = 2 * max(int(share * len(part) / 2), 1)
        rows.append(_row(kind, "one_run", one_run_bound(score, held, delta, guesses, confidence), confidence))
        first = part[part["place"] == part["place"].min()]
        score, held = first["score"].to_numpy(), first["held"].to_numpy(dtype=bool)
        if min(held.sum(), (~held).sum()) >= 2:
            found = trials_bound(score[held], score[~held], delta, seed, confidence, bound)
            rows.append(_row(kind, "trials", found, confidence))
    return rows


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
