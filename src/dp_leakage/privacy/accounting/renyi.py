"""Rényi divergences of sampled mechanisms, and their conversion to (ε, δ).

dp-accounting computes them for the sampled Gaussian, too. This module exists for two reasons. A calibration needs tens
of ε, and one takes 3 ms here, at the best order found by search, but 3 s there over the published accountant's 2,200
orders. And the library's values at fractional orders, which decide where ε exceeds 10, sum the absolute values of an
alternating series: they are 16 % too large at order 1.3, and more at large σ. The tests compare the two.
"""

from functools import lru_cache

import numpy as np

MAX_ORDER = 1e4
CLASSIC_MAX_ORDER = 1199.0
"""The largest order of the accountant that the published noise tables were made with."""
COARSE_ORDERS, FINE_ORDERS, REFINEMENTS = 120, 30, 2
REACH = 12.0  # standard deviations; the normal density beyond is 1e-32
SMALL = 0.05
"""Noise below which quadrature would need a grid of about 5/σ² points. The two normals then lie at least twenty
standard deviations apart, and the mass between them is less than a rounding error, so closed bounds are used
(``_apart``).
"""


def epsilon_from_renyi(orders: np.ndarray, divergence: np.ndarray, delta: float, conversion: str) -> float:
    """Return the least ε over the orders for which the Rényi bounds imply (ε, δ)-DP; arguments as below."""
    return max(0.0, float(np.min(epsilon_at_orders(orders, divergence, delta, conversion))))


def epsilon_at_orders(orders: np.ndarray, divergence: np.ndarray, delta: float, conversion: str) -> np.ndarray:
    """Return the ε that each order's Rényi bound implies with δ, float64 (n,). A negative value is equivalent to 0.

    Args:
        orders: float64 (n,), each > 1.
        divergence: float64 (n,), the Rényi divergence at each order, may be inf.
        delta: in (0, 1).
        conversion: ``tight``: ε = D + ln(1−1/α) − ln(αδ)/(α−1) (Canonne, Kamath & Steinke 2020, prop. 12),
            and 0 if the divergence alone bounds the total variation by δ; ``classic``: ε = D + ln(1/δ)/(α−1) (Mironov
            2017, prop. 3), over orders up to ``CLASSIC_MAX_ORDER``.
    """
    if conversion == "classic":
        return np.where(orders <= CLASSIC_MAX_ORDER, divergence - np.log(delta) / (orders - 1), np.inf)
    epsilon = divergence + np.log1p(-1 / orders) - np.log(delta * orders) / (orders - 1)
    # Bretagnolle–Huber: total variation ≤ √(1 − e^−KL), and KL ≤ D.
    return np.where(-np.expm1(-divergence) <= delta**2, 0.0, epsilon)


def sampled_gaussian_epsilon(
    rate: float, sigma: float, replace: bool, steps: int, delta: float, conversion: str, beside: float = 0.0
) -> float:
    """Return ε of T steps of the sampled Gaussian, composed with Gaussian mechanisms without sampling.

    Args:
        rate: q in (0, 1].
        sigma: relative to the largest distance between neighboring data sets' sums: the clipping norm for add_remove,
            twice the clipping norm for replace_one.
        replace: replace_one neighbors, under Poisson sampling or without replacement; otherwise add_remove under
            Poisson sampling, for which the divergence is exact.
        steps: T.
        delta, conversion: see ``epsilon_from_renyi``.
        beside: ρ ≥ 0 of the mechanisms composed with the steps, whose divergence at order α is ρα (Bun & Steinke 2016).
    """
    orders, divergence = _coarse(rate, sigma, replace)
    for _ in range(REFINEMENTS):
        epsilon = epsilon_at_orders(orders, steps * divergence + beside * orders, delta, conversion)
        best = int(np.argmin(epsilon))
        if epsilon[best] <= 0:
            return 0.0
        # Near the order where the divergence jumps, ε falls until the last order before it, so look closer there.
        low, high = orders[max(best - 1, 0)], orders[min(best + 1, len(orders) - 1)]
        orders = 1 + np.geomspace(low - 1, high - 1, FINE_ORDERS)
        divergence = _divergence(rate, sigma, replace, orders)
    return epsilon_from_renyi(orders, steps * divergence + beside * orders, delta, conversion)


def step_divergence(rate: float, sigma: float, replace: bool) -> tuple[np.ndarray, np.ndarray]:
    """Return ascending orders around the relevant ones, float64 (n,), and one step's divergence at them; arguments as
    above.
    """
    return _coarse(rate, sigma, replace)


@lru_cache(maxsize=64)
def _coarse(rate: float, sigma: float, replace: bool) -> tuple[np.ndarray, np.ndarray]:
    # The best order is about 1 + √(2 ln(1/δ)) σ without sampling; with it, it stays below the order of about
    # 2σ² ln(1/q) at which the divergence jumps to that of the unsampled Gaussian.
    top = min(max(15 * sigma, 4 * sigma**2 * -np.log(rate), 1.0), MAX_ORDER - 1)
    if sigma < SMALL:
        top = 1.0  # here ``_apart`` holds, and the best order lies far below
    # Below about 1 + σ² the divergence is that of order one, and only the conversion still grows.
    orders = 1 + np.geomspace(min(0.01, top / 100, max(sigma**2 / 10, 1e-9)), top, COARSE_ORDERS)
    return orders, _divergence(rate, sigma, replace, orders)


def _divergence(rate: float, sigma: float, replace: bool, orders: np.ndarray) -> np.ndarray:
    if rate == 1:
        return orders / (2 * sigma**2)
    if sigma < SMALL:
        return np.minimum(_apart(rate, sigma, replace, orders), orders / (2 * sigma**2))
    return (replaced_gaussian if replace else poisson_gaussian)(rate, sigma, orders)


def poisson_gaussian(rate: float, sigma: float, orders: np.ndarray) -> np.ndarray:
    """Return the Rényi divergence of (1−q) N(0,σ²) + q N(1,σ²) from N(0,σ²), by quadrature.

    Neighbors: add_remove, Poisson sampling; of the two directions this is the larger (Mironov, Talwar & Zhang 2019).
    With w the density ratio at a standard normal u, e^{(α−1)D} − 1 = E[w^α − 1 − α(w−1)]. Since the mean of w is one,
    the subtraction does not change the value, but it makes the integrand non-negative and keeps every digit of a
    divergence as small as 1e-20. The trapezoidal rule converges geometrically for this analytic integrand: the nearest
    singularity lies πσ off the real axis, so a spacing of 0.4 min(1, σ) leaves an error of about e^−49.

    Args:
        rate: q in (0, 1).
        sigma: > 0.
        orders: float64 (n,), each > 1, any real.

    Returns:
        float64 (n,).
    """
    spacing = 0.4 * min(1.0, sigma)
    ratio = _Ratio(rate, sigma, np.arange(-REACH, orders.max() / sigma + REACH, spacing))
    log_moments = np.array([_log_sum(ratio.log_excess(order) + ratio.log_density) for order in orders])
    return np.logaddexp(0.0, log_moments + np.log(spacing)) / (orders - 1)


def replaced_gaussian(rate: float, sigma: float, orders: np.ndarray) -> np.ndarray:
    """Return a bound on the Rényi divergence of the sampled Gaussian for replace_one neighbors, by quadrature.

    The outputs are P = (1−q) μ₀ + q μ₁ and Q = (1−q) μ₀ + q μ₂, and any two of the μ lie at most one unit apart before
    noise. In sampling without replacement, μ₀ has another unit in place of the one in question. By advanced joint
    convexity (Balle, Barthe & Gaboardi 2018) the hockey-stick divergences at ε ≥ 0 of P from Q and of Q from P are at
    most that of R = (1−q) N(0,σ²) + q N(1,σ²) from N(0,σ²). As e^{(α−1)D} − 1 is α(α−1) times the integral over ε ≥ 0
    of e^{(α−1)ε} times the first plus e^{−αε} times the second, with w = dR/dN it is at most E[w^α − 1 − α(w−1) +
    w^{1−α} − 1 − (1−α)(w−1)] over w > 1. The trapezoidal rule starts at w = 1, where the integrand vanishes with its
    first derivative; its error is of fourth order, below 1e-6 here.

    Arguments and result as ``poisson_gaussian``; σ is relative to the distance of the μ.
    """
    spacing = 0.1 * min(1.0, sigma)
    ratio = _Ratio(rate, sigma, np.arange(0.5 / sigma, orders.max() / sigma + REACH, spacing))
    log_moments = np.array(
        [
            _log_sum(np.logaddexp(ratio.log_excess(order), ratio.log_excess(1 - order)) + ratio.log_density)
            for order in orders
        ]
    )
    return np.logaddexp(0.0, log_moments + np.log(spacing)) / (orders - 1)


def _apart(rate: float, sigma: float, replace: bool, orders: np.ndarray) -> np.ndarray:
    """Return bounds on the divergences of ``poisson_gaussian`` and ``replaced_gaussian`` for small σ, in closed form.

    With x = u/σ − 1/2σ² and w = 1 + v, v = q(e^x − 1), the integrand is bounded piece by piece, for 1 < α ≤ 2: where v
    ≤ 0 by its value at the least, v = −q, as it is convex there (nothing for replace_one, which starts at v = 0); where
    0 < v ≤ 1 by its second-order term α(α−1)/2 v², for replace_one twice that; where v > 1, as w = b + a with b = qe^x
    and a = 1 − q below it, by w^α ≤ b^α (1 + αs + α(α−1)/2 s²), s = a/b, and w^{1−α} ≤ 1. The means of powers e^{px}
    over u > u₁ are e^{p(p−1)/2σ²} Φ(p/σ − u₁). If the normals lie far apart, next to nothing is lost.

    Args:
        rate: q in (0, 1).
        sigma: > 0.
        replace: as in ``sampled_gaussian_epsilon``.
        orders: float64 (n,), each in (1, 2].

    Returns:
        float64 (n,).
    """
    from scipy.special import log_ndtr, ndtr

    log_q, a = np.log(rate), 1 - rate
    beyond_one = sigma * np.log1p(1 / rate) + 0.5 / sigma  # the point u where v = 1

    def log_power(p: np.ndarray | float, sign: int = 1) -> np.ndarray:
        """Return ln E[e^{px}; u > u₁], or with sign −1 ln E[e^{px}; u < u₁], where v(u₁) = 1."""
        return p * (p - 1) / (2 * sigma**2) + log_ndtr(sign * (p / sigma - beyond_one))

    second = np.log(orders) + np.log(orders - 1) - np.log(2)
    log_a = np.log(max(a, 1e-300))
    rows = [
        orders * log_q + log_power(orders),
        np.log(orders) + log_a + (orders - 1) * log_q + log_power(orders - 1),
        second + 2 * log_a + (orders - 2) * log_q + log_power(orders - 2),
        second + (np.log(2) if replace else 0.0) + 2 * log_q + log_power(2.0, -1),
    ]
    # The subtracted part is 1 + αv for add_remove. For replace_one its twin gives (α − 1)v back, and 1 is never
    # reached. The share of v beyond one that is certain is all but q.
    certain = rate * (ndtr(1 / sigma - beyond_one) - ndtr(-beyond_one))
    less = certain * np.where(replace, 1.0, orders)
    least = 0.0 if replace else np.maximum(np.expm1(orders * np.log1p(-rate)) + orders * rate, 0.0)
    log_sum = np.logaddexp.reduce(rows, axis=0)
    with np.errstate(over="ignore"):
        excess = np.where(log_sum < 600, np.exp(np.minimum(log_sum, 600)) - less + least, np.inf)
    moment = np.where(log_sum < 600, np.log1p(np.maximum(excess, 0.0)), np.logaddexp(log_sum, least))
    return moment / (orders - 1)


class _Ratio:
    """The density ratio w = 1 + v, v = q (e^{u/σ − 1/2σ²} − 1), at standard normal points u, without overflow."""

    def __init__(self, rate: float, sigma: float, u: np.ndarray):
        x = u / sigma - 0.5 / sigma**2
        self.moderate = x < 30
        self.v = rate * np.expm1(np.where(self.moderate, x, 0.0))
        self.log_w = np.where(self.moderate, np.log1p(self.v), x + np.log(rate))
        with np.errstate(divide="ignore"):
            self.log_v = np.where(self.moderate, np.log(np.abs(self.v)), self.log_w)
        self.log_density = -0.5 * u**2 - 0.5 * np.log(2 * np.pi)

    def log_excess(self, power: float) -> np.ndarray:
        """ln(w^p − 1 − p v) for p > 1, or p < 0 where w ≥ 1, to every digit: near 1 a series, factored where huge."""
        log_power = power * self.log_w
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            series = 1 + (power - 2) / 3 * self.v * (1 + (power - 3) / 4 * self.v)
            near = np.log(power * (power - 1) / 2 * self.v**2 * series)
            middle = np.log(np.expm1(np.minimum(log_power, 40.0)) - power * self.v)
            if power > 0:
                far = log_power + np.log1p(-np.exp(np.log(power) + self.log_v - log_power))
            else:
                far = np.log(-power) + self.log_v
        is_near = self.moderate & (np.abs(power * self.v) < 1e-4)
        is_far = ~self.moderate | (log_power > 30)
        return np.where(is_near, near, np.where(is_far, far, middle))


def _log_sum(log_terms: np.ndarray) -> float:
    top = log_terms.max()
    return float(top + np.log(np.exp(log_terms - top).sum()))
