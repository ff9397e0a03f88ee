"""Likelihood ratio attack (LiRA, Carlini et al. 2022): do models with or without the record give such a margin?"""

from typing import NamedTuple

import numpy as np
from scipy.special import digamma, gammaln, ndtri, polygamma, stdtr

from dp_leakage.attacks.membership.references import mean_where, require
from dp_leakage.attacks.signals import Scores, Signals

# ``alpha`` is the level of the attack's own test: near the best advantage for weak and strong leaks.
ATTACK = {
    "family": "membership",
    "needs": "reference",
    "of_person": "sum",
    "settings": {
        "online": {"$ref": "#/$defs/online"},
        "variance": {
            "enum": ["fixed", "per_record", "shrunk"],
            "default": "fixed",
            "description": "The variance of a record's margins: one for all records, each record's own, or its own "
            "drawn to that of all.",
        },
        "queries": {"$ref": "#/$defs/queries"},
        "alpha": {"$ref": "#/$defs/alpha"},
    },
    "variants": {
        "lira": {"label": "LiRA"},
        "lira_online": {"label": "LiRA online", "settings": {"online": True}},
        # For few references, or records whose margins vary unlike.
        "lira_shrunk": {"label": "LiRA shrunk", "settings": {"online": True, "variance": "shrunk"}},
        # An attacker who does not know the defense: the references are undefended models.
        "lira_unaware": {"label": "LiRA unaware", "settings": {"online": True}, "aware": False},
    },
}

LEAVES_OUT = True
LEAST_DEVIATION = 1e-6  # deviation of equal margins, so that the score stays finite
LEAST_SHARE = 1e-7  # of the pooled variance that a record's own counts as in the prior


class Margins(NamedTuple):
    """How each record's margin is distributed, float64 (n,) each; (R, n) if one model is left out.

    Attributes:
        mean, deviation: of a normal distribution, or the place and scale of Student's t.
        freedom: degrees of freedom of Student's t, infinite where they are normal; None if all are.
    """

    mean: np.ndarray
    deviation: np.ndarray
    freedom: np.ndarray | None = None


def score(target: Signals, reference: Signals, settings: dict, seed: int) -> Scores:
    """Scores every record asked about by how its margin compares with the reference models'.

    Online, the score is the log-likelihood ratio ln N(φ; in) − ln N(φ; out), and records are flagged above 0. Offline,
    it is the margin's distance (φ − mean)/deviation from the models without the record. The paper's 1 − P(a larger
    margin) is an increasing function of it. Records are flagged above the 1 − ``alpha`` quantile of the normal
    distribution.

    Args:
        target: of the R models under attack.
        reference: of the reference models, the same records.
        settings: ``online``, whether to also use models trained with the record; ``variance``: ``fixed``, one for all
            records (better with few references, as the paper finds), ``per_record``, or ``shrunk``: each record's own,
            drawn to that of all as far as their spread is chance (`_shrunk`); ``queries``, how many margins to average;
            ``alpha``.
        seed: unused, nothing is drawn.

    Raises:
        UserError: no reference model was trained without (online: with) any record.
    """
    asked = reference.asked
    margin, others, inside = (
        target.asked.mean_margin(settings["queries"]),
        asked.mean_margin(settings["queries"]),
        asked.trained_on,
    )
    require(~inside, "lira", "without")
    out = margins(others, ~inside, settings["variance"], reference.left_out)
    distance = (margin - out.mean) / out.deviation
    if not settings["online"]:
        normal = distance if out.freedom is None else _normal_distance(distance, out.freedom)
        return Scores(normal, normal > ndtri(1 - settings["alpha"]))
    require(inside, "lira", "with")
    within = margins(others, inside, settings["variance"], reference.left_out)
    inner = (margin - within.mean) / within.deviation
    ratio = _tail(distance, out.freedom) - _tail(inner, within.freedom) + np.log(out.deviation / within.deviation)
    return Scores(ratio, ratio > 0)


def _tail(distance: np.ndarray, freedom: np.ndarray | None) -> np.ndarray:
    """−ln of the density at a distance in deviations, less ½ ln 2π."""
    normal = 0.5 * distance**2
    if freedom is None:
        return normal
    nu = np.where(np.isinf(freedom), 1.0, freedom)
    student = (nu + 1) / 2 * np.log1p(distance**2 / nu) + gammaln(nu / 2) - gammaln((nu + 1) / 2) + np.log(nu / 2) / 2
    return np.where(np.isinf(freedom), normal, student)


def _normal_distance(distance: np.ndarray, freedom: np.ndarray) -> np.ndarray:
    """The distance at which a normal distribution has the same tail as Student's t."""
    nu = np.where(np.isinf(freedom), 1.0, freedom)
    alike = np.sign(distance) * -ndtri(np.maximum(stdtr(nu, -np.abs(distance)), np.finfo(float).tiny))
    return np.where(np.isinf(freedom), distance, alike)


def margins(margin: np.ndarray, chosen: np.ndarray, variance: str, left_out: bool = False) -> Margins:
    """How the chosen margins among (K, n) are distributed: unbiased variances for all, ``per_record`` or ``shrunk``.

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
    if variance == "shrunk":
        return _shrunk(mean, squares, freedom, counts)
    over_all = squares.sum(axis=-1, keepdims=True) / np.maximum(freedom.sum(axis=-1, keepdims=True), 1)
    pooled = np.broadcast_to(over_all, squares.shape)
    own = np.divide(squares, freedom, out=pooled.copy(), where=freedom > 0)
    deviation = np.sqrt(own if variance == "per_record" else pooled)
    return Margins(mean, np.maximum(deviation, LEAST_DEVIATION))


def _shrunk(mean: np.ndarray, squares: np.ndarray, freedom: np.ndarray, counts: np.ndarray) -> Margins:
    """Student's t of a further margin, with variances drawn to a common one (BaVarIA-t, Brännvall 2026).

    The prior of a record's variance is an inverse χ² with d₀ degrees of freedom around s₀². Both come from the
    references, by the mean and the variance of ln s² over the records (Smyth 2004, "Linear models and empirical Bayes
    methods"). The further margin varies around a mean that so many ``counts`` have given.

    Args:
        mean, squares: of each record's margins, float64 (…, n), the latter summed around the mean.
        freedom, counts: degrees of freedom of the squares, and how many margins, (…, n).
    """
    rows = zip(np.atleast_2d(squares), np.broadcast_to(freedom, np.atleast_2d(squares).shape), strict=True)
    prior, common = (np.array(part) for part in zip(*(_prior(*row) for row in rows), strict=True))
    prior, common = (part.reshape(*squares.shape[:-1], 1) for part in (prior, common))
    known = np.where(np.isinf(prior), 0.0, prior)
    drawn = np.where(np.isinf(prior), common, (known * common + squares) / np.maximum(known + freedom, 1e-300))
    scale = np.sqrt(drawn * (1 + 1 / np.maximum(counts, 1)))
    return Margins(mean, np.maximum(scale, LEAST_DEVIATION), np.broadcast_to(prior + freedom, squares.shape))


def _prior(squares: np.ndarray, freedom: np.ndarray) -> tuple[float, float]:
    """d₀ and s₀² of (n,) sums of squares. Infinite, and the pooled variance, where chance alone explains the spread."""
    told = (freedom > 0) & (squares > 0)
    if told.sum() < 2:
        return np.inf, LEAST_DEVIATION**2
    half, mean = freedom[told] / 2, squares[told] / freedom[told]
    pooled = float(squares[told].sum() / freedom[told].sum())
    # Two margins can be equal by chance to their last digits, and the logarithm would make these digits count.
    logs = np.log(np.maximum(mean, LEAST_SHARE * pooled)) - digamma(half) + np.log(half)
    beyond = float(np.var(logs, ddof=1) - polygamma(1, half).mean())
    if beyond <= 0:
        return np.inf, pooled
    prior = 2 * _trigamma_inverse(beyond)
    return prior, float(np.exp(logs.mean() + digamma(prior / 2) - np.log(prior / 2)))


def _trigamma_inverse(value: float) -> float:
    """The x > 0 with ψ′(x) = value > 0, by Newton's method from below, which converges (Smyth 2004, appendix)."""
    x = 0.5 + 1 / value
    for _ in range(50):
        found = float(polygamma(1, x))
        step = found * (1 - found / value) / float(polygamma(2, x))
        x += step
        if abs(step) < 1e-10 * x:
            break
    return x
