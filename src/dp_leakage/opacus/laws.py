"""Laws of observations of a correct training, and p-values under them."""

import numpy as np
from scipy.stats import chi2, gamma

ALPHA = 1e-6  # false alarms of one test; a training faces some dozen tests, so about one alarm in 100,000 is false
BAND = 0.02  # noise that is short by less than this share is not refuted, however many numbers were seen


def std_interval(squares: np.ndarray, counts: np.ndarray, alpha: float) -> tuple[np.ndarray, np.ndarray]:
    """Return the 1 − alpha interval of a standard deviation, from sums of squared Gaussian numbers.

    Args:
        squares: float64, any shape, ≥ 0.
        counts: number of terms in each sum, ≥ 1, of a broadcastable shape.
        alpha: two-sided level in (0, 1).
    """
    low = np.sqrt(squares / chi2.isf(alpha / 2, counts))
    return low, np.sqrt(squares / chi2.isf(1 - alpha / 2, counts))


def dispersion(values: np.ndarray, trials: float, rate: float) -> tuple[float, float]:
    """Return p-values for too small and too large dispersion of Binomial(trials, rate) counts.

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
    """Bound the probability of this many pairs of equal Poisson batches, by Markov's inequality."""
    if not repeats:
        return 1.0
    same = records * np.log(rate**2 + (1 - rate) ** 2)
    return float(min(1.0, batches * (batches - 1) / 2 * np.exp(same) / repeats))


def least_square(alpha: float, steps: int, numbers: np.ndarray) -> np.ndarray:
    """Return a lower limit of the least of ``numbers`` sums of ``steps`` squared normal numbers, at level ``alpha``."""
    return chi2.ppf(alpha / np.asarray(numbers, float), steps)
