"""The cost of releasing the best of several private trainings, and how many to run: Papernot & Steinke (2022).

A random number of runs have settings drawn at random from a declared grid, and the best run is released. The cost does
not depend on the size of the grid, but on the mean number of runs and on the shape of its distribution. It grows like
the logarithm of the mean for ``geometric`` and ``logarithmic``, and far faster for ``poisson`` where the mean is large.
"""

import logging
from math import inf

import numpy as np
from scipy.optimize import brentq

from dp_leakage.common.errors import UserError, nearest
from dp_leakage.privacy.training import Training

SHAPES = {"logarithmic": 0.0, "geometric": 1.0, "poisson": inf}
"""Shape of the distribution of the number of runs (a truncated negative binomial; ∞ is Poisson)."""


def selection_epsilon(training: Training, *, delta: float, mean: float, runs: str) -> float:
    """Return an upper bound on ε of releasing the best of a random number of Poisson-sampled Gaussian trainings;
    add_remove.

    Computed by dp-accounting's ``RepeatAndSelectDpEvent``. The criterion for "best" must not use the training records,
    or must be part of each run's mechanism.

    Args:
        training: each run, with Gaussian noise and Poisson batches; it must be the same for all runs.
        delta: in (0, 1).
        mean: the expected number of runs, ≥ 1.
        runs: ``logarithmic``, ``geometric`` (both at least one run) or ``poisson`` (possibly none).

    Raises:
        UserError: a value is out of range.
    """
    from dp_accounting import GaussianDpEvent, PoissonSampledDpEvent, SelfComposedDpEvent
    from dp_accounting.dp_event import RepeatAndSelectDpEvent
    from dp_accounting.rdp import RdpAccountant

    from dp_leakage.privacy.accounting.case import Case

    logging.getLogger("absl").setLevel(logging.ERROR)  # a warning for each order at which a series does not converge
    _check(mean, runs)
    case, sigma = Case(training, "rdp", delta), training.mechanism.sigma
    if sigma == 0:
        raise UserError("noise_multiplier must be positive; got 0.")
    once = PoissonSampledDpEvent(case.rate, GaussianDpEvent(sigma))
    accountant = RdpAccountant()
    accountant.compose(RepeatAndSelectDpEvent(SelfComposedDpEvent(once, case.steps), mean, SHAPES[runs]))
    return float(accountant.get_epsilon(delta))


def drawn_runs(mean: float, runs: str, grid: int, seed: int) -> list[int]:
    """Draw which of ``grid`` settings, counted from 0, to train in turn. Their number and each setting are random.

    Args:
        mean, runs: as for ``selection_epsilon``.
        grid: number of settings declared beforehand, ≥ 1.
        seed: ≥ 0. Whoever knows it knows the number of runs, so keep it as secret as the noise.

    Raises:
        UserError: a value is out of range.
    """
    _check(mean, runs)
    if grid < 1:
        raise UserError(f"grid: {grid} settings; valid: 1 or more.")
    generator = np.random.default_rng(seed)
    if runs == "poisson":
        number = generator.poisson(mean)
    elif runs == "geometric":
        number = generator.geometric(1 / mean)
    else:
        number = generator.logseries(_logarithmic(mean)) if mean > 1 else 1
    return generator.integers(grid, size=int(number)).tolist()


def _logarithmic(mean: float) -> float:
    """Return p of the logarithmic distribution with this mean > 1: −p / ((1−p) ln(1−p))."""
    return float(brentq(lambda p: -p / ((1 - p) * np.log1p(-p)) - mean, 1e-12, 1 - 1e-12))


def _check(mean: float, runs: str) -> None:
    if runs not in SHAPES:
        raise UserError(f"runs: {runs!r} is unknown; {nearest(runs, SHAPES)}.")
    if not 1 <= mean < inf:
        raise UserError(f"mean: {mean} runs; expected 1 or more on average.")
