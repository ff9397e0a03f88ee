"""How well an attribute's value was guessed, regardless of membership."""

import numpy as np

from dp_leakage.metrics.intervals import Estimate, difference, mean_in_unit_range, over_repeats


def value_advantage(truth: np.ndarray, guess: np.ndarray) -> Estimate:
    """TPR − FPR of guessed binary attributes, averaged over features and repeats, with a 95 % interval.

    Args:
        truth: bool (R, n, F): the value of each of F features of n records, the same in each of R repeats.
        guess: bool (R, n, F).

    The two rates are means over the same records, so their variances and their correlation come from the
    records' influence on them (delta method); a rate without variance gets Wilson's interval at its number of
    records. A feature with only one value contributes 0 to the mean.
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
    influence = (among[0] * (guess.mean(axis=0) - rates.mean(axis=0)) / counts).mean(axis=1)
    estimate = mean_in_unit_range(float(rates.mean()), float(np.sum(influence**2)), int(counts.min()))
    return estimate, rates.mean(axis=1), influence
