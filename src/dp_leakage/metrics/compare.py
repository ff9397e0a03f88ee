"""Two defenses on the same records."""

from collections.abc import Callable

import numpy as np

from dp_leakage.metrics.intervals import Estimate, Influences, crossed_difference

Scores = tuple[np.ndarray, np.ndarray]


def paired_difference(metric: Callable[[np.ndarray, np.ndarray], Influences], a: Scores, b: Scores) -> Estimate:
    """The metric of a minus that of b, with a 95 % interval over the shared records and the repeats of each.

    Args:
        metric: of members' (R, m) and non-members' values (R, n), such as `roc.area`.
        a, b: members' and non-members' scores under two defenses, the same m + n records in the same order; the
            numbers of repeats may differ.
    """
    return crossed_difference(metric(*a), metric(*b))
