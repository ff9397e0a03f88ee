"""Two defenses on the same records."""

from collections.abc import Callable

import numpy as np

from dp_leakage.intervals import CONFIDENCE, Estimate

Scores = tuple[np.ndarray, np.ndarray]


def paired_difference(
    metric: Callable[[np.ndarray, np.ndarray], float], a: Scores, b: Scores, seed: int = 0, draws: int = 400
) -> Estimate:
    """The metric of a less that of b, with a 95 % bootstrap interval over records and repeats.

    Args:
        metric: of members' (R, m) and non-members' values (R, n), such as `roc.area`.
        a, b: members' and non-members' scores under two defenses, the same m + n records in the same order; the
            numbers of repeats may differ.
        seed: of the resampling.
        draws: bootstrap samples.

    Each draw resamples the records, the same for both, and the repeats, each for itself (Owen 2007). With few repeats
    their part is too small by the factor (R − 1)/R, and the deviations are stretched for the smaller R.
    """
    rng = np.random.default_rng(seed)
    value = metric(*a) - metric(*b)
    differences = np.empty(draws)
    for draw in range(draws):
        records = [rng.integers(scores.shape[1], size=scores.shape[1]) for scores in a]
        values = []
        for scores in (a, b):
            repeats = rng.integers(len(scores[0]), size=len(scores[0]))
            values.append(metric(*(s[np.ix_(repeats, rows)] for s, rows in zip(scores, records, strict=True))))
        differences[draw] = values[0] - values[1]
    fewest = min(len(a[0]), len(b[0]))
    stretch = np.sqrt(fewest / (fewest - 1)) if fewest > 1 else 1.0
    tail = (1 - CONFIDENCE) / 2
    low, high = value + stretch * (np.quantile(differences, [tail, 1 - tail]) - np.median(differences))
    return Estimate(value, float(low), float(high))
