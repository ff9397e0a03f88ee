"""Asking a model about an image several times: shifted by a pixel and mirrored (Carlini et al. 2022, VI.B)."""

import numpy as np

from dp_leakage.attacks.signals import margins
from dp_leakage.errors import UserError
from dp_leakage.models.ensemble import Ensemble

SHIFTS = [(0, 0), (0, 1), (0, -1), (1, 0), (-1, 0), (1, 1), (1, -1), (-1, 1), (-1, -1)]
QUERIES = [(mirrored, *shift) for mirrored in (False, True) for shift in SHIFTS]


def queried_margins(models: Ensemble, x: np.ndarray, y: np.ndarray, queries: int) -> np.ndarray:
    """Margins, float64 (K, n), averaged over the first ``queries`` of `QUERIES`; the first is the record itself.

    Args:
        models: K models.
        x: (n, …) records; images (n, channels, height, width) where ``queries`` > 1.
        y: (n,) classes.
        queries: 1 to 18.

    Raises:
        UserError: more queries than there are, or more than one of records that are not images.
    """
    if not 1 <= queries <= len(QUERIES):
        raise UserError(f"key 'queries' is {queries}; valid is 1 to {len(QUERIES)}")
    if queries > 1 and x.ndim != 4:
        raise UserError(f"key 'queries' is {queries}, but the records are no images; valid is 1")
    total = margins(models, x, y)
    for query in QUERIES[1:queries]:
        total += margins(models, altered(x, *query), y)
    return total / queries


def altered(x: np.ndarray, mirrored: bool, down: int, right: int) -> np.ndarray:
    """Images (n, c, h, w) mirrored left to right, then shifted by whole pixels, zeros moving in."""
    result = np.zeros_like(x)
    height, width = x.shape[2:]
    source = x[..., ::-1] if mirrored else x
    result[:, :, max(down, 0) : height + min(down, 0), max(right, 0) : width + min(right, 0)] = source[
        :, :, max(-down, 0) : height + min(-down, 0), max(-right, 0) : width + min(-right, 0)
    ]
    return result
