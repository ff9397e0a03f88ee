"""Lower bounds on ε from the scores of an audit's canaries."""

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import pandas as pd

from dp_leakage.audits import CONFIDENCE, Audit, Claim, approximate_dp, corrected, presence_bound
from dp_leakage.audits.designs import bound, reach
from dp_leakage.data.audit_design import AuditDesign
from dp_leakage.metrics.intervals import Estimate
from dp_leakage.metrics.rows import row
from dp_leakage.metrics.runs import ALL


def measure_audit(
    frame: pd.DataFrame,
    designs: Mapping[str, AuditDesign],
    claim_of: Callable[[AuditDesign], Claim],
    comparisons: int,
    seed: int,
) -> list[dict]:
    """Return rows ``epsilon_lower_bound`` of one cell: one for each design, for the neighbors of its game.

    If records are exchanged (replace_one), there is a second row, ``neighbors=presence``: the bound from the same
    guesses on an ε that is known only for add/remove or zero-out neighbors. In such a comparison it replaces the first
    row, so it does not count as a further bound.

    Args:
        frame: design, repeat, place, held (bool, inclusion), score (higher means more likely included), with the same
            places for every model of a design.
        designs: by name. Many runs or trials use the first place of each model. One
            run uses all random choices of all models together, as choices of one mechanism that runs the trainings side
            by side.
        claim_of: the claim that a design tests.
        comparisons: number of bounds that hold together with 95 % confidence.
        seed: splits the models of ``trials``.

    Returns:
        The rows. Their qualifiers describe the design, the bound on its own (``alone``), and the largest bound that the
        design could have shown (``reach``).
    """
    confidence = corrected(CONFIDENCE, comparisons)
    rows = []
    for name, design in designs.items():
        part = frame[frame["design"] == name]
        if design.design != "one_run":
            part = part[part["place"] == 0]
        rows += _of_design(name, design, part, claim_of(design), confidence, seed)
    return rows


def _of_design(
    name: str, design: AuditDesign, part: pd.DataFrame, claim: Claim, confidence: float, seed: int
) -> list[dict]:
    """Return the rows of one design from its random inclusions."""
    score, held = part["score"].to_numpy(), part["held"].to_numpy(dtype=bool)

    def of(tested: Claim, level: float) -> Audit:
        return bound(design.design, score, held, tested, level, design.share, seed)

    found = of(claim, confidence)
    facts = {
        "alone": of(claim, CONFIDENCE).epsilon,
        "audit": name,
        "bug": design.bug or "none",
        "canary": design.canary,
        "claim": design.claim,
        "confidence": confidence,
        "design": design.design,
        "guesses": found.guesses,
        "models": design.models,
        "neighbors": design.neighbors,
        "coins": len(part),
        "reach": reach(design.design, len(part), claim, confidence, design.share),
        "right": found.right,
        "seen": design.score,
        "start": design.start,
    }
    rows = [_row(found.epsilon, facts)]
    if design.neighbors == "replace_one":
        least = presence_bound(lambda delta: of(approximate_dp(delta), confidence).epsilon, claim.delta)
        rows.append(_row(least, facts | {"neighbors": "presence"}))
    return rows


def _row(value: float, facts: Mapping[str, Any]) -> dict:
    return row("epsilon_lower_bound", ALL, Estimate(value, value, np.inf), **facts)
