"""Likelihood ratio attack (LiRA, Carlini et al. 2022): compare a margin with the margins of models with and without the
record.
"""

from typing import NamedTuple

import numpy as np
from scipy.special import digamma, gammaln, ndtri, polygamma, stdtr

from dp_leakage.attacks.membership.references import mean_of_all, moments, require
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
# The least deviation, so that the score stays finite, and nothing is divided by less than the rounding error of margins
# in float32, in units of a model's largest margin.
LEAST_DEVIATION, RESOLUTION = 1e-6, 2.0**-20
LEAST_SHARE = 1e-7  # of the pooled variance that a record's own counts as in the prior


class Margins(NamedTuple):
    """Distribution of each record's margin, float64 (n,) each; (R, n) if one model is left out.

    Attributes:
        mean, deviation: of a normal distribution, or the place and scale of Student's t.
        freedom: degrees of freedom of Student's t, infinite where they are normal; None if all are.
    """

    mean: np.ndarray
    deviation: np.ndarray
    freedom: np.ndarray | None = None


def score(target: Signals, reference: Signals, settings: dict, seed: int) -> Scores:
    """Score every queried record by comparing its margin with the reference models' margins.

    Online, the score is the log-likelihood ratio ln N(φ; in) − ln N(φ; out), and records are flagged above 0. Offline,
    it is the margin's distance (φ − mean)/deviation from the models without the record. The paper's 1 − P(a larger
    margin) is an increasing function of it. Records are flagged above the 1 − ``alpha`` quantile of the normal
    distribution.

    Args:
        target: of the R models under attack.
        reference: of the reference models, the same records.
        settings: ``online``, whether to also use models trained with the record; ``variance``: ``fixed``, one for all
            records (better with few references, as the paper finds), ``per_record``, or ``shrunk``: each record's own,
            shrunk toward the variance of all records as far as their spread is chance (`_shrunk`); ``queries``, number
            of averaged margins; ``alpha``.
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
    least = np.maximum(LEAST_DEVIATION, RESOLUTION * np.abs(margin).max(axis=1, keepdims=True))

    def of(chosen: np.ndarray) -> Margins:
        found = margins(others, chosen, settings["variance"], reference.left_out)
        return found._replace(deviation=np.maximum(found.deviation, least))

    require(~inside, "lira", "without")
    out = of(~inside)
    distance = (margin - out.mean) / out.deviation
    if not settings["online"]:
        normal = distance if out.freedom is None else _normal_distance(distance, out.freedom)
        return Scores(normal, normal > ndtri(1 - settings["alpha"]))
    require(inside, "lira", "with")
    within = of(inside)
    inner = (margin - within.mean) / within.deviation
    ratio = _tail(distance, out.freedom) - _tail(inner, within.freedom) + np.log(out.deviation / within.deviation)
    return Scores(ratio, ratio > 0)


def _tail(distance: np.ndarray, freedom: np.ndarray | None) -> np.ndarray:
    """Return −ln of the density at a distance in deviations, minus ½ ln 2π."""
    normal = 0.5 * distance**2
    if freedom is None:
        return normal
    nu = np.where(np.isinf(freedom), 1.0, freedom)
    student = (nu + 1) / 2 * np.log1p(distance**2 / nu) + gammaln(nu / 2) - gammaln((nu + 1) / 2) + np.log(nu / 2) / 2
    return np.where(np.isinf(freedom), normal, student)


def _normal_distance(distance: np.ndarray, freedom: np.ndarray) -> np.ndarray:
    """Return the distance at which a normal distribution has the same tail as Student's t."""
    nu = np.where(np.isinf(freedom), 1.0, freedom)
    alike = np.sign(distance) * -ndtri(np.maximum(stdtr(nu, -np.abs(distance)), np.finfo(float).tiny))
    return np.where(np.isinf(freedom), distance, alike)


def margins(margin: np.ndarray, chosen: np.ndarray, variance: str, left_out: bool = False) -> Margins:
    """Fit the distribution of the chosen margins among (K, n): one variance for all, ``per_record`` or ``shrunk``.

    A record with a single chosen margin gets the variance of all records around their own means. If no record has two
    margins, the variance is that of all records around the common mean (the global variance of the paper's code). A
    record without margins gets the common mean and this variance. With ``left_out``, row k leaves out model k.
    """
    counts, mean, squares = found = moments(margin, chosen, left_out)
    of_all, freedom = mean_of_all(found), np.maximum(counts - 1, 0)
    mean = np.where(counts > 0, mean, of_all)
    free, total = freedom.sum(axis=-1, keepdims=True), counts.sum(axis=-1, keepdims=True)
    apart = (squares + counts * (mean - of_all) ** 2).sum(axis=-1, keepdims=True) / np.maximum(total - 1, 1)
    pooled = np.where(free > 0, squares.sum(axis=-1, keepdims=True) / np.maximum(free, 1), apart)
    if variance == "shrunk":
        drawn, prior = _shrunk(squares, freedom, pooled)
        drawn = drawn * (1 + 1 / np.maximum(counts, 1))  # of a further margin around a mean that so many have given
        nu = np.broadcast_to(prior + freedom, squares.shape)
    else:
        drawn, nu = np.broadcast_to(pooled, squares.shape), None
        if variance == "per_record":
            drawn = np.divide(squares, freedom, out=drawn.copy(), where=freedom > 0)
    return Margins(mean, np.sqrt(np.where(counts > 0, drawn, apart)), nu)


def _shrunk(squares: np.ndarray, freedom: np.ndarray, pooled: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Shrink variances toward a common one, (…, n), and return the prior's degrees of freedom, (…, 1) (BaVarIA-t,
    Brännvall 2026).

    The prior of a record's variance is an inverse χ² with d₀ degrees of freedom around s₀². Both come from the
    references, by the mean and the variance of ln s² over the records (Smyth 2004, "Linear models and empirical Bayes
    methods").

    Args:
        squares, freedom: of each record's margins around their mean, and their degrees of freedom, float64 (…, n).
        pooled: the variance of all, (…, 1).
    """
    rows = zip(np.atleast_2d(squares), np.atleast_2d(freedom), pooled.ravel(), strict=True)
    prior, common = (np.array(part).reshape(pooled.shape) for part in zip(*(_prior(*row) for row in rows), strict=True))
    known = np.where(np.isinf(prior), 0.0, prior)
    drawn = (known * common + squares) / np.maximum(known + freedom, 1e-300)
    return np.where(np.isinf(prior), common, drawn), prior


def _prior(squares: np.ndarray, freedom: np.ndarray, pooled: float) -> tuple[float, float]:
    """Return d₀ and s₀² of (n,) sums of squares; infinite, and the pooled variance, if chance alone explains the
    spread.
    """
    told = (freedom > 0) & (squares > 0)
    if told.sum() < 2:
        return np.inf, pooled
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
    """Return the x > 0 with ψ′(x) = value > 0, by Newton's method from below, which converges (Smyth
    2004, appendix).
    """
    x = 0.5 + 1 / value
    for _ in range(50):
        found = float(polygamma(1, x))
        step = found * (1 - found / value) / float(polygamma(2, x))
        x += step
        if abs(step) < 1e-10 * x:
            break
    return x
