"""Loss traces (Pollock et al. 2025, arXiv 2411.05743): the course of a record's loss during training.

In early epochs a model predicts a record from what it learned on others; later it also memorizes members. So early
epochs show how hard a record is, and replace reference models. The attacker sees the model at every evaluated epoch, as
the party that trains it does. The paper's statistic, the interquartile range of a record's losses (LT-IQR), ranks
*training* records by how well stronger attacks identify them. As a membership test it is far weaker than the last loss
alone, and below chance where non-members' losses change more than members' (docs/results/attacks.md).
"""

import numpy as np

from dp_leakage.attacks.membership.references import population
from dp_leakage.attacks.signals import Scores, Signals
from dp_leakage.common.errors import UserError

# ``alpha`` is the level of the attack's own test: near the best advantage for weak and strong leaks.
ATTACK = {
    "family": "membership",
    "label": "loss trace",
    "reads": "losses",
    "roles": ["reference_pool"],
    "settings": {
        "statistic": {
            "enum": ["rise", "mean", "iqr"],
            "default": "rise",
            "description": "Of a record's losses over the evaluated epochs: how far the margin rose from the first "
            "quarter of them to the last; less their mean; or their interquartile range (LT-IQR), which ranks members "
            "by risk.",
        },
        "alpha": {"$ref": "#/$defs/alpha"},
    },
    "access": "sees each record's loss at every evaluated epoch, so it has the model at all of these epochs, not the "
    "finished one alone",
}

LEAST = 2  # evaluated epochs
TINY = 1e-8  # loss that less counts as; float32 has no margin beyond


def score(target: Signals, reference: None, settings: dict, seed: int) -> Scores:
    """Score every queried record with one statistic of its losses over the evaluated epochs.

    The threshold needs no member: a share ``alpha`` of the records that no model trained on passes it.

    Args:
        target: of the R models under attack, with losses; the population is the role ``reference_pool``.
        reference: unused, the attack needs no other model.
        settings: ``statistic``: ``rise``, from the mean margin of the first quarter of the epochs (one at least) to the
            last one; ``mean``, where a lower value means more likely a member; ``iqr``, between ``np.quantile``'s
            quartiles; ``alpha``, in (0, 1).
        seed: unused, nothing is drawn.

    Raises:
        UserError: the population is empty, or losses are of one epoch alone.
    """
    score, outside = (
        _of_trace(said, settings["statistic"]) for said in (target.asked, population(target, "loss_trace"))
    )
    return Scores(score, score > np.quantile(outside, 1 - settings["alpha"], axis=1, keepdims=True))


def _of_trace(said: Signals, statistic: str) -> np.ndarray:
    """Return one statistic of each record's losses over the epochs, float64 (R, n)."""
    assert said.losses is not None  # the attack declares that it reads losses
    if len(said.losses) < LEAST:
        raise UserError(f"attack loss_trace: losses of {len(said.losses)} epoch are stored; expected {LEAST} or more")
    losses = said.losses.astype(np.float64)
    if statistic == "rise":
        losses = np.maximum(losses, TINY)
        margin = -(losses + np.log(-np.expm1(-losses)))  # −log(e^ℓ − 1), without its overflow
        return np.asarray(margin[-1] - margin[: max(1, len(margin) // 4)].mean(axis=0))
    if statistic == "mean":
        return np.asarray(-losses.mean(axis=0))
    lower, upper = np.quantile(losses, [0.25, 0.75], axis=0)
    return np.asarray(upper - lower)
