"""Accuracy of guessed attribute values, regardless of membership."""

import numpy as np

from dp_leakage.metrics.intervals import ROUNDING, Estimate, Z, difference, mean_in_unit_range, over_repeats, wilson


def value_advantage(truth: np.ndarray, guess: np.ndarray) -> Estimate:
    """Return TPR − FPR of guessed binary attributes, averaged over features and repeats, with a 95 % interval.

    Args:
        truth: bool (R, n, F): the value of each of F features of n records, the same in each of R repeats.
        guess: bool (R, n, F).

    The two rates are means over the same records, so their variances and their correlation come from the records'
    influence on them (delta method), by the unbiased estimate of each feature. If all guesses of a feature are right,
    or all wrong, as often for rare values, they show no variance; Wilson's interval then gives it. A feature with only
    one value contributes 0 to the mean.
    """
    usable = truth[0].any(axis=0) & ~truth[0].all(axis=0)
    if not usable.any():
        return Estimate(0.0, 0.0, 0.0)
    truth, guess = truth[:, :, usable], guess[:, :, usable]
    (tpr, tprs, tpr_influence), (fpr, fprs, fpr_influence) = _rate(truth, guess), _rate(~truth, guess)
    spreads = tpr_influence.std() * fpr_influence.std()
    correlation = float(np.mean(tpr_influence * fpr_influence) / spreads) if spreads > 0 else 0.0
    estimate = over_repeats(difference(tpr, fpr, correlation), tprs - fprs, limits=(-1.0, 1.0))
    return Estimate(*(float(end * usable.mean()) for end in estimate))


def _rate(among: np.ndarray, guess: np.ndarray) -> tuple[Estimate, np.ndarray, np.ndarray]:
    """P(guess | among), mean over features: over all repeats; for each, (R,); and each record's influence, (n,)."""
    counts = among[0].sum(axis=0)
    rates = (among & guess).sum(axis=1) / counts
    means = rates.mean(axis=0)
    unbiased = np.sqrt(counts / np.maximum(counts - 1, 1))
    each = among[0] * (guess.mean(axis=0) - means) * unbiased / counts
    alike = ~(np.abs(each) > ROUNDING).any(axis=0)
    unseen = sum(_least_variance(mean, n) for mean, n in zip(means[alike], counts[alike], strict=True))
    influence = each.mean(axis=1)
    variance = float(np.sum(influence**2)) + unseen / len(counts) ** 2
    return mean_in_unit_range(float(rates.mean()), variance, int(counts.min())), rates.mean(axis=1), influence


def _least_variance(rate: float, n: int) -> float:
    """Return the variance implied by Wilson's interval for a rate of n records; for one record the largest, 1/4."""
    if n == 1:
        return 0.25
    _, low, high = wilson(rate, n)
    return ((high - low) / 2 / Z) ** 2
