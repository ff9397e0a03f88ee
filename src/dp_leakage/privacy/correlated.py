"""Coefficients of noise that is correlated over steps, and its variance in running sums.

Noise B⁻¹z with independent z, where B is lower triangular and Toeplitz with first column c, hides gradients' sums after
B. An optimizer follows running sums of gradients, so what counts is AB⁻¹z with A the matrix of running sums, at a
length of c that is one. Its first column h has the generating function 1/((1 − x) c(x)).
"""

import math
from collections.abc import Callable
from functools import cache

import numpy as np

Column = Callable[[np.ndarray], tuple[np.ndarray, np.ndarray]]
"""Free numbers (f,) → the first column (n,) or (b,), and its derivatives (f, …)."""
Limits = list[tuple[float, float]]
ROUNDS = 500  # of the optimizer, which needs ten


def root(bands: int) -> np.ndarray:
    """Return c_0 … c_{b−1} of A's square root, 1, 1/2, 3/8, …, scaled to length one; float64 (b,).

    Fichtenberger, Henzinger & Upadhyay (2023); banded: Kalinin & Lampert (2024). All are positive and fall.
    """
    found = [1.0]
    for k in range(1, bands):
        found.append(found[-1] * (2 * k - 1) / (2 * k))
    length = math.sqrt(math.fsum(value * value for value in found))
    return np.array([value / length for value in found])


def running_error(column: np.ndarray, steps: int) -> float:
    """Root of the mean variance of the noise in the running sums of n steps, for σ = 1 and ``column`` at length one."""
    return math.sqrt(_squared(column, steps)[0])


@cache
def optimal(bands: int, steps: int) -> np.ndarray:
    """Return the b coefficients of length one with the least `running_error` over n steps; float64 (b,).

    The objective that Choquette-Choo et al. (2023, arXiv 2306.08153) minimize, by L-BFGS with the exact gradient,
    started from `root`.
    """
    if bands == 1:
        return root(1)
    start = root(bands)
    free = _minimum(
        start[1:] / start[0], lambda rest: (np.append(1.0, rest), np.eye(bands)[1:]), steps, [(0.0, 1.0)] * (bands - 1)
    )
    found = np.append(1.0, free)
    return found / np.linalg.norm(found)


@cache
def buffered(buffers: int, steps: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return a buffered linear Toeplitz matrix with the least `running_error` found (Dvijotham et al. 2024; McMahan
    et al. 2024).

    c_0 = 1 and c_k = Σ_j ω_j λ_j^{k−1}, so that d buffers are all that its inverse must remember.

    Returns:
        ω and λ, float64 (d,), ω positive and λ in (0, 1); and c, float64 (n,).
    """
    from scipy.special import expit, logit

    powers = np.arange(steps - 1)[:, None]

    def column(free: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        omega, decay = np.exp(free[:buffers]), expit(free[buffers:])
        terms = omega * decay**powers
        slopes = terms * powers * (1 - decay)  # dc/dfree: λ' = λ (1 − λ)
        return np.append(1.0, terms.sum(axis=1)), np.pad(np.hstack([terms, slopes]), ((1, 0), (0, 0))).T  # c_0 is fixed

    # Decays at 1/2, … steps' distance in equal ratios, whose weights make c fall like A's square root.
    reach = np.geomspace(2.0, max(2.0 * steps, 4.0), buffers)
    start = np.concatenate([np.log(0.5 / buffers / np.sqrt(reach / 2)), logit(np.exp(-1 / reach))])
    # The ω add up to at most c_0 = 1, so that c falls and its inverse stays bounded.
    limits = [(-15.0, -math.log(buffers))] * buffers + [(-15.0, 15.0)] * buffers
    free = _minimum(start, column, steps, limits)
    return np.exp(free[:buffers]), expit(free[buffers:]), column(free)[0]


def _minimum(start: np.ndarray, column: Column, steps: int, limits: Limits) -> np.ndarray:
    """Return the free numbers of a column with the least error, from a start and within their limits."""
    from scipy.optimize import minimize

    def loss(free: np.ndarray) -> tuple[float, np.ndarray]:
        found, slopes = column(free)
        squared, gradient = _squared(found, steps)
        return math.log(squared), slopes @ gradient / squared

    return minimize(loss, start, jac=True, method="L-BFGS-B", bounds=limits, options={"maxiter": ROUNDS}).x


def _squared(column: np.ndarray, steps: int) -> tuple[float, np.ndarray]:
    """Return the square of `running_error`, and its derivatives by each coefficient: dh/dc_j is −x^j h/c."""
    from scipy.signal import fftconvolve, lfilter

    column = column[:steps]
    one = np.zeros(steps)
    one[0] = 1.0
    h = lfilter([1.0], np.convolve(column, [1.0, -1.0])[:steps], one)
    weights = np.arange(steps, 0, -1) / steps  # h_k stands in so many of the rows
    mean, length = float(weights @ h**2), float(column @ column)
    shifted = fftconvolve(lfilter([1.0], column, h)[::-1], weights * h)[steps - 1 :][: len(column)]
    return mean * length, -2 * shifted * length + 2 * column * mean
