"""Lower bounds on ε from a study's random inclusion, without further training (design ``coins``).

Each repeat is a one-run audit whose canaries are the records, or people, of the pool. All repeats together are one
mechanism with R times as many canaries, and so another such audit. The score for a guess may depend on all models but
not on inclusion. Attacks that use other repeats as references read those repeats' inclusion. If one inclusion carries
information about another, guesses are right or wrong together, which the bound does not allow: with margins that do not
depend on inclusion at all, 11 % of such audits raised a false alarm where 5 % may. So the score is a record's margin
minus its mean over all repeats, with and without the record.
"""

from typing import Any

import numpy as np

from dp_leakage.attacks.persons import person_signals
from dp_leakage.attacks.signals import Signals
from dp_leakage.audits import CONFIDENCE, Audit, Claim, approximate_dp, corrected, one_run_bound
from dp_leakage.metrics.intervals import Estimate
from dp_leakage.metrics.rows import row
from dp_leakage.metrics.runs import ALL

SHARE = 0.25  # share of the coins that are guessed, the surest ones


def measure_coins(
    said: Signals, delta: float, comparisons: int, neighbors: str, own: Claim | None = None
) -> list[dict]:
    """Return rows ``epsilon_lower_bound``: of all repeats together, and of each by itself.

    Args:
        said: the signals of the repeats of one cell.
        delta: δ of the claim, in [0, 1).
        comparisons: number of bounds that the study states together. The rows for ``all`` repeats are corrected for it,
            so that they hold together with 95 % confidence over all cells. The row of one repeat is not corrected
            (``stated=alone``).
        neighbors: ``add_remove`` or ``zero_out``, by the effect of inclusion on the batches.
        own: the claim of exactly this mechanism. From the same guesses it shows more than the bare claim of (ε, δ)-DP,
            and gets a row of its own (``claim=own``), for all repeats together.
    """
    asked = said.asked
    margin, held = asked.mean_margin(), asked.trained_on
    if asked.person is not None:  # a coin decides about all records of a person
        margin, held = person_signals(asked, margin)
    scores = margin - margin.mean(axis=0) if len(margin) > 1 else margin
    claim = approximate_dp(delta)
    together = corrected(CONFIDENCE, comparisons)
    game: dict[str, Any] = {"design": "one_run", "neighbors": neighbors}
    both = game | {"confidence": together, "runs": len(held), "stated": "together"}
    found = one_run_bound(scores.ravel(), held.ravel(), claim, together, SHARE)
    rows = [_row(ALL, found, **both)]
    if own is not None:
        found = one_run_bound(scores.ravel(), held.ravel(), own, together, SHARE)
        rows.append(_row(ALL, found, **both, claim="own"))
    for repeat, (score, coins) in enumerate(zip(scores, held, strict=True)):
        found = one_run_bound(score, coins, claim, CONFIDENCE, SHARE)
        rows.append(_row(str(repeat), found, confidence=CONFIDENCE, runs=1, stated="alone", **game))
    return rows


def _row(repeat: str, found: Audit, **said: Any) -> dict:
    bound = Estimate(found.epsilon, found.epsilon, np.inf)
    return row("epsilon_lower_bound", repeat, bound, **said, guesses=found.guesses, right=found.right)
