"""Metrics from scores and histories: pure functions of arrays, every value with a 95 % interval."""

from dp_leakage.metrics.intervals import Estimate
from dp_leakage.metrics.inversion import measure_inversion
from dp_leakage.metrics.measure import (
    STRONGEST,
    measure_attribute,
    measure_membership,
    measure_ranks,
    measure_strongest,
    measure_training,
)
from dp_leakage.metrics.reconstruction import measure_reconstruction

__all__ = [
    "STRONGEST",
    "Estimate",
    "measure_attribute",
    "measure_inversion",
    "measure_membership",
    "measure_ranks",
    "measure_reconstruction",
    "measure_strongest",
    "measure_training",
]
