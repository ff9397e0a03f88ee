"""Likelihood ratio attack (LiRA, Carlini et al. 2022): do models with or without the record give such a margin?"""

from typing import NamedTuple

import numpy as np
from scipy.special import ndtri

from dp_leakage.attacks.membership.references import mean_where, require
from dp_leakage.attacks.signals import Scores, Signals
from dp_leakage.common.errors import UserError, nearest

# ``alpha`` is the level of the attack's own test: near the best advantage for weak and strong leaks.
ATTACK = {
    "family": "membership",
    "needs": "reference",
    "settings": {"online": False, "variance": "fixed", "queries": 1, "alpha": 0.25},
    "kinds": {
        "online": "flag",
        "variance": ["choice", "fixed", "per_record"],
        "queries": ["whole", "from", 1, "to", 18],
        "alpha": ["number", "above", 0, "below", 1],
    },
    "variants": {
        "lira": {},
        "lira_online": {"settings": {"online": True}},
        # An attacker who does not know the defense: the references are undefended models.
        "lira_unaware": {"settings": {"online": True}, "aware": False},
    },
}

VARIANCES = ("fixed", "per_record")
LEAVES_OUT = True
LEAST_DEVIATION = 1e-6  # deviation of equal margins, so that the score stays finite


class Gaussians(NamedTuple):
    """Mean and standard deviation of each record's margin, float64 (n,) each; (R, n) if one model is left out."""

    mean: np.ndarray
    deviation: np.ndarray


def score(target: Signals, learnt: Signals, settings: dict, seed: int) -> Scores:
    """Scores every record asked about by how its margin compares with the reference models'.

    Online, the score is the log-likelihood ratio ln N(φ; in) − ln N(φ; out), and records are flagged above 0. Offline,
    it is the margin's distance (φ − mean)/deviation from the models without the record. The paper's 1 − P(a larger
    margin) is an increasing function of it. Records are flagged above the 1 − ``alpha`` quantile of the normal
    distribution.

    Args:
        target: of the R models under attack.
        learnt: of the reference models, the same records.
        settings: ``online``, whether to also use models trained with the record; ``variance``: ``fixed``, one for all
            records (better with few references, as the paper finds), or ``per_record``; ``queries``, how many margins
            to average; ``alpha``.
        seed: unused, nothing is drawn.

    Raises:
        UserError: an unknown ``variance``, or no reference model was trained without (online: with) any record.
    """
    if settings["variance"] not in VARIANCES:
        name = settings["variance"]
        raise UserError(f"attack lira: key 'variance' is '{name}'; {nearest(name, VARIANCES)}")
    asked = learnt.asked
    margin, others, inside = (
        target.asked.mean_margin(settings["queries"]),
        asked.mean_margin(settings["queries"]),
        asked.trained_on,
    )
    require(~inside, "lira", "without")
    out = gaussians(others, ~inside, settings["variance"], learnt.left_out)
    distance = (margin - out.mean) / out.deviation
    if not settings["online"]:
        return Scores(distance, distance > ndtri(1 - settings["alpha"]))
    require(inside, "lira", "with")
    within = gaussians(others, inside, settings["variance"], learnt.left_out)
    inner = (margin - within.mean) / within.deviation
    ratio = 0.5 * (distance**2 - inner**2) + np.log(out.deviation / within.deviation)
    return Scores(ratio, ratio > 0)


def gaussians(margin: np.ndarray, chosen: np.ndarray, variance: str, left_out: bool = False) -> Gaussians:
    """Mean and deviation of the chosen margins among (K, n), with unbiased variances for all records or ``per_record``.

    A record without a chosen margin gets the mean of all records, and one with fewer than two gets their variance. With
    ``left_out``, row k leaves out model k: its part is subtracted from the sums, around the mean of all, so that no
    digits are lost.
    """
    mean, counts = mean_where(margin, chosen, left_out), chosen.sum(axis=0)
    middle = mean_where(margin, chosen) if left_out else mean
    apart = np.where(chosen, margin - middle, 0.0) ** 2
    squares = apart.sum(axis=0)
    if left_out:
        counts = counts - chosen
        squares = np.maximum(squares - apart - counts * (mean - middle) ** 2, 0.0)
    squares = np.where(counts > 0, squares, 0.0)
    freedom = np.maximum(counts - 1, 0)
    over_all = squares.sum(axis=-1, keepdims=True) / np.maximum(freedom.sum(axis=-1, keepdims=True), 1)
    pooled = np.broadcast_to(over_all, squares.shape)
    own = np.divide(squares, freedom, out=pooled.copy(), where=freedom > 0)
    deviation = np.sqrt(own if variance == "per_record" else pooled)
    return Gaussians(mean, np.maximum(deviation, LEAST_DEVIATION))
