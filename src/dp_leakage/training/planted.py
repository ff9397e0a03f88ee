"""Known mistakes of private-training implementations, planted to test whether an audit finds them.

Each function turns the claimed mechanism into the mechanism with the mistake.
"""

from collections.abc import Callable
from dataclasses import replace

from dp_leakage.privacy.mechanism import Mechanism

Bug = Callable[[Mechanism, float], Mechanism]


def _of_mean(mechanism: Mechanism, batch_size: float) -> float | None:
    """Return σ divided by the batch size, or None without Gaussian noise."""
    return None if mechanism.noise_multiplier is None else mechanism.noise_multiplier / batch_size


def noise_forgotten(mechanism: Mechanism, batch_size: float) -> Mechanism:
    """Clip the gradients, but add no noise."""
    return replace(mechanism, noise_multiplier=0.0)


def noise_divided_twice(mechanism: Mechanism, batch_size: float) -> Mechanism:
    """Divide noise that was already scaled for the mean by the batch size again, together with the sum."""
    return replace(mechanism, noise_multiplier=_of_mean(mechanism, batch_size))


def batch_clipped(mechanism: Mechanism, batch_size: float) -> Mechanism:
    """Clip the batch's mean gradient alone, but add the smaller noise that is right if each example is clipped."""
    return replace(mechanism, unit="batch", noise_multiplier=_of_mean(mechanism, batch_size))


def batches_shuffled(mechanism: Mechanism, batch_size: float) -> Mechanism:
    """Shuffle, so that each record is in exactly one batch of every epoch, although the accountant assumes Poisson
    batches.
    """
    return replace(mechanism, sampler="shuffle")


BUGS: dict[str, Bug] = {
    bug.__name__: bug for bug in (noise_forgotten, noise_divided_twice, batch_clipped, batches_shuffled)
}
