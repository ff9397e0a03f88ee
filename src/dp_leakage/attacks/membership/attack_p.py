"""Attack P (Ye et al. 2022): is the loss below the α-quantile of the target model's losses on the population?"""

import numpy as np

from dp_leakage.attacks.membership.references import population
from dp_leakage.attacks.signals import Scores, Signals, losses

# ``alpha`` is the level of the attack's own test: near the best advantage for weak and strong leaks.
ATTACK = {
    "family": "membership",
    "label": "attack P",
    "roles": ["reference_pool"],
    "settings": {"alpha": {"$ref": "#/$defs/alpha"}},
}

LARGEST_LOSS = 1000.0  # the last value of the quantile function, which starts at 0, as in Privacy Meter's code


def score(target: Signals, reference: None, settings: dict, seed: int) -> Scores:
    """Score every queried record with −α, the least level at which it is called a member; see `alpha_of`.

    Args:
        target: of the R models under attack; the population is the role ``reference_pool``.
        reference: unused, the attack needs no other model.
        settings: ``alpha``: records are flagged up to that level.
        seed: unused, nothing is drawn.

    Raises:
        UserError: ``reference_pool`` is empty.
    """
    loss = losses(target.asked.mean_margin())
    outside = np.sort(losses(population(target, "attack_p").mean_margin()), axis=1)
    alpha = np.stack([alpha_of(row, o[:, None], np.searchsorted(o, row)) for row, o in zip(loss, outside, strict=True)])
    return Scores(-alpha, alpha <= settings["alpha"])


def alpha_of(loss: np.ndarray, others: np.ndarray, below: np.ndarray) -> np.ndarray:
    """Return the least α in [0, 1] at which a loss is at most the α-quantile of other losses.

    The quantiles are ``np.quantile``'s, linear between the sorted losses with 0 added below them and `LARGEST_LOSS`
    above, so that α = 0 flags nothing and α = 1 everything.

    Args:
        loss: (n,), ≥ 0.
        others: (k, n), or (k, 1) for all alike; ascending, NaN last where a record has fewer than k.
        below: int64 (n,), how many of others are smaller than the loss.
    """
    available = np.isfinite(others).sum(axis=0)
    column = np.broadcast_to(np.arange(others.shape[1]), loss.shape)
    lower = np.where(below > 0, others[np.maximum(below - 1, 0), column], 0.0)
    upper = np.where(below < available, others[np.minimum(below, len(others) - 1), column], LARGEST_LOSS)
    within = np.divide(loss - lower, upper - lower, out=np.zeros_like(loss), where=upper > lower)
    return np.minimum((below + within) / (available + 1), 1.0)
