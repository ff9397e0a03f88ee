"""Mechanism: automatic clipping (AUTO-S of Bu et al. 2023): gradients of almost one length, whatever their own."""

MECHANISM = {}
STABILITY = 0.01


def bound(norms, clip_norm):
    """The factor of each gradient, given its length: the result is always shorter than clip_norm."""
    return clip_norm / (norms + STABILITY)
