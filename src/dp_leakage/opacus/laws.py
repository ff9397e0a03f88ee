"""Laws of what a correct training shows, and how unlikely what was seen is under them."""

import numpy as np
from scipy.stats import chi2, gamma

ALPHA = 1e-6  # false alarms of one test; a training faces some dozen tests, so about one alarm in 100,000 is false
BAND = 0.02  # noise that is short by less than this share is not refuted, however many numbers were seen


def std_interval(squares: np.ndarray, counts: np.ndarray, alpha: float) -> tuple[np.ndarray, np.ndarray]:
    """Return the 1 − alpha interval of a standard deviation from sums of squares of Gaussian numbers.

    Args:
        squares: float64, any shape, ≥ 0.
        counts: how many numbers each sum has, ≥ 1, of a shape that fits.
        alpha: in (0, 1), of both sides together.
    """
    low = np.sqrt(squares / chi2.isf(alpha / 2, counts))
    return low, np.sqrt(squares / chi2.isf(1 - alpha / 2, counts))


def dispersion(values: np.ndarray, trials: float, rate: float) -> tuple[float, float]:
    """Return the p-values of counts that vary so little, or so much, if each is Binomial(trials, rate).

    The sum of squared deviations is compared with a gamma law that has its mean and variance.

    Args:
        values: (n,) counts, independent of each other.
        trials: of each count.
        rate: in (0, 1].
    """
    counts = np.asarray(values, float)
    variance = trials * rate * (1 - rate)
    if variance == 0 or len(counts) < 3:
        return 1.0, 1.0
    seen = float(((counts - trials * rate) ** 2).sum() / variance)
    each = 2 + (1 - 6 * rate * (1 - rate)) / variance  # variance of one squared, standardized count
    law = gamma(len(counts) / each, scale=each)
    return float(law.cdf(seen)), float(law.sf(seen))


def repeated_batches(repeats: int, batches: int, records: int, rate: float) -> float:
    """Return a bound on the chance of this many pairs of equal Poisson batches, by Markov's inequality."""
    if not repeats:
        return 1.0
    same = records * np.log(rate**2 + (1 - rate) ** 2)
    return float(min(1.0, batches * (batches - 1) / 2 * np.exp(same) / repeats))


def least_square(alpha: float, steps: int, numbers: np.ndarray) -> np.ndarray:
    """Return the sum of ``steps`` squared normal numbers that the least of ``numbers`` such sums falls below by chance
    ``alpha``.
    """
    return chi2.ppf(alpha / np.asarray(numbers, float), steps)
