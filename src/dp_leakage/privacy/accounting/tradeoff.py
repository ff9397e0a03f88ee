"""Trade-off curves: false positive rate → largest true positive rate of any attack.

An attacker who must distinguish two neighboring trainings has a false positive rate α and a false negative rate β.
Dong, Roth & Su (2022) call α ↦ least β the trade-off function f. Here tpr = 1 − f(fpr) is used, the curve above every
ROC. All curves are symmetric (they hold whichever of the two trainings has the member), concave, on or above the
diagonal, and never below the truth: rounding goes up.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import inf

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import ndtr, ndtri

from dp_leakage.privacy.rates import precision

BISECTIONS = 45  # leave 3e-14 of an interval of length one
ROUNDING = 1e-15  # of logarithms of size one
SMALLEST = 1e-9  # rate from which on one Gaussian must bound a curve; numerical curves end in a floor far below
RATES = 2000
LEAST_RATE = 1e-60  # that decides about an ε


@dataclass(frozen=True)
class TradeOff:
    """Limit proven for every attack that distinguishes a training from a neighboring one.

    Attributes:
        of: fpr, float64 (n,) in [0, 1] → the largest tpr, float64 (n,).
        source: where the curve comes from: ``gaussian`` (exact), ``pure``, ``loss_distribution``, ``renyi`` or
            ``epsilon_delta``.
    """

    of: Callable[[np.ndarray], np.ndarray]
    source: str

    def tpr(self, fpr: ArrayLike) -> np.ndarray:
        """Return the largest true positive rate at false positive rates in [0, 1], any shape; float64 of that shape."""
        fpr = np.asarray(fpr, dtype=float)
        return np.clip(self.of(fpr.ravel()).reshape(fpr.shape), fpr, 1.0)

    def beta(self, alpha: ArrayLike) -> np.ndarray:
        """Return f(α): the least type II error at type I error α, as Dong, Roth & Su (2022) write it."""
        return 1.0 - self.tpr(alpha)

    def reconstruction(self, guess: float) -> float:
        """Return the largest probability, in [guess, 1], of reconstructing a record, even for an attacker who knows all
        others.

        Guessing without the model, with a success probability of at most ``guess``, attacks a training without the
        unit. So the success with the model is a true positive rate at the false positive rate ``guess`` (Balle,
        Cherubin & Hayes 2022; Hayes, Mahloujifar & Balle 2023, arXiv 2302.07225, Theorem 2). If ``guess`` varies with
        the unit, use its mean, since the curve is concave.

        Args:
            guess: in [0, 1], the success probability of the best guess from prior knowledge (κ). A guess succeeds if it
                lies within a distance chosen by the attacker, so all types of reconstruction are covered.
        """
        return float(self.tpr(guess))

    @property
    def advantage(self) -> float:
        """The largest tpr − fpr: 1 − 2a with f(a) = a, since f is symmetric. The search approaches a from below."""
        low, high = 0.0, 0.5
        for _ in range(BISECTIONS):
            middle = (low + high) / 2
            low, high = (low, middle) if self.tpr(middle) >= 1 - middle else (middle, high)
        return 1.0 - 2.0 * low

    @property
    def mu(self) -> float:
        """Return μ of the Gaussian trade-off with this advantage; the training's own μ if ``source`` is gaussian.

        At other rates the curve may lie above that Gaussian; `mu_bound` bounds it everywhere.
        """
        return float(2 * ndtri((1 + self.advantage) / 2))

    @property
    def mu_bound(self) -> float:
        """Return the smallest μ, rounded up by at most 0.1 %, whose Gaussian trade-off bounds the whole curve.

        One number that is true at every rate (Gomez et al. 2025, arXiv 2503.10945). Rates below `SMALLEST` do not
        count. Infinite if a rate of 0 already identifies more than `SMALLEST` of the members, as (ε, δ)-DP with δ > 0
        allows: no Gaussian does.
        """
        if self.source == "gaussian":
            return self.mu
        furthest = (1 - self.advantage) / 2  # where tpr = 1 − fpr
        if float(self.tpr(0.0)) > SMALLEST or furthest <= SMALLEST:
            return inf
        # The curve is symmetric, so its part up to there is enough. Between two rates it is at most what it is at the
        # larger one.
        fpr = np.geomspace(SMALLEST, furthest, RATES)
        between = ndtri(self.tpr(fpr[1:])) - ndtri(fpr[:-1])
        return float(max(0.0, between.max()))

    @property
    def regret(self) -> float:
        """Return how loose `mu_bound` is, in [0, 0.5]: the largest difference of Bayes errors over all priors.

        An attacker who knows the share of members among the candidates errs with at least the Bayes error. The Gaussian
        of `mu_bound` understates this error by at most the regret (the Δ-divergence of Kaissis et al. 2024). If it is
        small, e.g. below 0.01, μ describes nearly the whole curve.
        """
        if self.source == "gaussian" or not np.isfinite(self.mu_bound):
            return 0.0 if self.source == "gaussian" else float("nan")
        fpr = np.concatenate([np.geomspace(SMALLEST, 0.5, RATES), 1 - np.geomspace(0.5, SMALLEST, RATES)[1:]])
        prior = np.linspace(0.005, 0.995, 199)[:, None]  # share of non-members
        own, bound = (
            (prior * fpr + (1 - prior) * (1 - curve)).min(axis=1)
            for curve in (self.tpr(fpr), gaussian(self.mu_bound).tpr(fpr))
        )
        trivial = np.minimum(prior, 1 - prior)[:, 0]  # accusing nobody, or everybody
        return float(max(0.0, (np.minimum(own, trivial) - np.minimum(bound, trivial)).max()))

    def epsilon(self, delta: float) -> float:
        """Return the smallest ε ≥ 0 for which every attack's tpr is at most e^ε·fpr + δ, or infinity.

        Computed on a grid of rates: between two of them the curve is at most its value at the larger one. So ε is at
        most 0.05 too large, and never too small.
        """
        fpr = np.geomspace(LEAST_RATE, 1.0, round(-20 * np.log(LEAST_RATE)))
        over = self.tpr(fpr) - delta
        if over[0] > 0:
            return inf
        return float(max(0.0, np.log(np.maximum(over[1:], LEAST_RATE) / fpr[:-1]).max()))

    def precision(self, prior: float, fpr: float) -> float:
        """Return the largest share of members among the accused (``privacy.rates.precision``) of attacks with
        this fpr.
        """
        return precision(prior, float(self.tpr(fpr)), fpr)


# ---------------------------------------------------------------------- what is known → a curve
def gaussian(mu: float) -> TradeOff:
    """Return tpr = Φ(Φ⁻¹(fpr) + μ): exact for Gaussian noise without sampling (Dong, Roth & Su 2022, definition 6).

    Args:
        mu: distance of the neighboring trainings' outputs in standard deviations, ≥ 0; k of them compose to √(Σ μ²).
    """
    return TradeOff(lambda fpr: ndtr(ndtri(fpr) + mu), "gaussian")


def epsilon_delta(epsilon: float, delta: float) -> TradeOff:
    """Return tpr = min(e^ε fpr + δ, 1 − e^−ε (1 − δ − fpr), 1): (ε, δ)-DP (Dong, Roth & Su 2022, proposition 2.5).

    Args:
        epsilon: ≥ 0, may be infinite.
        delta: in [0, 1]; 0 for pure DP, for which the curve is exact.
    """
    return TradeOff(profile([epsilon], [delta]).of, "epsilon_delta" if delta else "pure")


def profile(epsilons: ArrayLike, deltas: ArrayLike) -> TradeOff:
    """Return the lowest curve of many (ε, δ): a privacy profile gives lines of slopes e^ε and e^−ε above the curve.

    Args:
        epsilons: float64 (n,), each ≥ 0.
        deltas: float64 (n,), δ(ε) in both directions, at most 1.
    """
    epsilon, delta = (np.atleast_1d(np.asarray(values, dtype=float)) for values in (epsilons, deltas))
    kept = (epsilon < 700) & (delta < 1)  # others are vacuous, or matter only at a rate of e^−700
    slope, delta = np.exp(epsilon[kept]), delta[kept]

    def tpr(fpr: np.ndarray) -> np.ndarray:
        below = np.min(delta + slope * fpr[:, None], axis=1, initial=1.0)
        above = np.min(1 - (1 - delta - fpr[:, None]) / slope, axis=1, initial=1.0)
        return np.minimum(below, above)

    return TradeOff(tpr, "loss_distribution")


def renyi(orders: np.ndarray, divergence: np.ndarray) -> TradeOff:
    """Return the curve from Rényi divergences: an attack's decision is also an output, so its two rates cannot diverge
    more.

    tpr^α fpr^(1−α) + (1−tpr)^α (1−fpr)^(1−α) ≤ e^{(α−1) D}, and the same with the rates exchanged, for each order α:
    the tightest that one order implies (Balle, Barthe, Gaboardi, Hsu & Sato 2020). Solved for the largest tpr by
    bisection, from above.

    Args:
        orders: float64 (n,), each > 1.
        divergence: float64 (n,), in both directions; may be inf.
    """
    known = np.isfinite(divergence) & (orders > 1)
    orders, divergence = orders[known, None], divergence[known, None]

    def tpr(fpr: np.ndarray) -> np.ndarray:
        inside = (fpr > 0) & (fpr < 1) & (len(orders) > 0)
        largest = np.where(
            fpr > 0, 1.0, 0.0 if len(orders) else 1.0
        )  # the distributions are absolutely continuous, so tpr is 0 at fpr = 0
        if inside.any():
            largest[inside] = _largest(fpr[inside], orders, divergence)
        return largest

    return TradeOff(tpr, "renyi")


def _largest(fpr: np.ndarray, orders: np.ndarray, divergence: np.ndarray) -> np.ndarray:
    """Return the largest tpr that every order allows, float64 (n,), for fpr in (0, 1)."""
    low = np.broadcast_to(fpr, (len(orders), len(fpr)))
    high = np.ones_like(low)
    rounding = ROUNDING * orders * (1 - np.log(np.minimum(fpr, 1 - fpr))) / (orders - 1)
    for _ in range(BISECTIONS):
        middle = (low + high) / 2
        forth, back = _binary_divergence(orders, middle, fpr), _binary_divergence(orders, fpr, middle)
        allowed = np.maximum(forth, back) <= divergence + rounding
        low, high = np.where(allowed, middle, low), np.where(allowed, high, middle)
    return high.min(axis=0)


def _binary_divergence(orders: np.ndarray, p: np.ndarray, q: np.ndarray) -> np.ndarray:
    """Return the Rényi divergence between Bernoulli(p) and Bernoulli(q), p and q in (0, 1]; inf if p is impossible."""
    with np.errstate(divide="ignore", invalid="ignore"):
        heads = orders * np.log(p) + (1 - orders) * np.log(q)
        tails = np.where(p < 1, orders * np.log1p(-p) + (1 - orders) * np.log1p(-q), np.where(q < 1, -inf, 0.0))
    return np.logaddexp(heads, tails) / (orders - 1)


# ---------------------------------------------------------------------- curves → a curve
def lowest(curves: Sequence[TradeOff]) -> TradeOff:
    """Return the pointwise minimum, which holds if all given curves do."""
    best = min(curves, key=lambda curve: curve.advantage)
    return TradeOff(lambda fpr: np.min([curve.tpr(fpr) for curve in curves], axis=0), best.source)


def twice(curve: TradeOff) -> TradeOff:
    """Return the curve for two steps from neighbor to neighbor.

    Replacing a record means removing one and adding one.
    """
    return several(curve, 2)


def several(curve: TradeOff, count: int) -> TradeOff:
    """Return the curve for ``count`` ≥ 1 steps from neighbor to neighbor: F(F(…fpr)) (Dong, Roth & Su 2022, theorem
    2.14).

    For Gaussian curves that is the curve of ``count`` times μ.
    """
    if count == 1:
        return curve

    def tpr(fpr: np.ndarray) -> np.ndarray:
        for _ in range(count):
            fpr = curve.tpr(fpr)
        return fpr

    return TradeOff(tpr, curve.source)
