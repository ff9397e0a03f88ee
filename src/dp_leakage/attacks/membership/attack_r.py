"""Attack R (Ye et al. 2022): is the loss below the α-quantile of this record's losses without it in training?"""

import numpy as np

from dp_leakage.attacks.membership.attack_p import alpha_of
from dp_leakage.attacks.membership.references import mean_where, require
from dp_leakage.attacks.signals import Scores, Signals, losses

# ``alpha`` is the level of the attack's own test: near the best advantage for weak and strong leaks.
ATTACK = {
    "family": "membership",
    "label": "attack R",
    "needs": "reference",
    "settings": {"queries": {"$ref": "#/$defs/queries"}, "alpha": {"$ref": "#/$defs/alpha"}},
}


def score(target: Signals, reference: Signals, settings: dict, seed: int) -> Scores:
    """Score every queried record with −α, the least level at which it is called a member; see `alpha_of`.

    For every α, "score ≥ −α" is the rule "member if the loss is at most c_α(x), the α-quantile of the reference
    losses". Records are flagged up to ``alpha``. Fitting a Gaussian to the reference margins instead ("logit
    rescaling") is the attack `lira`, offline with ``variance: per_record``.

    Args:
        target: of the R models under attack.
        reference: of the reference models, the same records.
        settings: ``queries``, number of averaged margins; ``alpha``.
        seed: unused, nothing is drawn.

    Raises:
        UserError: every reference model was trained on every record.
    """
    loss = losses(target.asked.mean_margin(settings["queries"]))
    others = reference_losses(reference.asked, settings["queries"])
    below = np.stack([(others < row).sum(axis=0) for row in loss])
    alpha = np.stack([alpha_of(row, others, count) for row, count in zip(loss, below, strict=True)])
    return Scores(-alpha, alpha <= settings["alpha"])


def reference_losses(asked: Signals, queries: int) -> np.ndarray:
    """Return the losses of each record under the reference models trained without it, float64 (K, n).

    Ascending along the first axis, with NaN at the end for models that were trained with the record. (If all were, the
    other records' mean loss takes its place.)
    """
    require(~asked.trained_on, "attack_r", "without")
    loss = losses(asked.mean_margin(queries))
    others = np.sort(np.where(asked.trained_on, np.nan, loss), axis=0)
    others[0] = np.where(asked.trained_on.all(axis=0), mean_where(loss, ~asked.trained_on), others[0])
    return others
