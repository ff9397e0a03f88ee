"""The noise of a step's private training."""

from dp_leakage.models.layers import Layers
from dp_leakage.privacy.calibration import solved
from dp_leakage.privacy.protection import Protection
from dp_leakage.privacy.training import Training
from dp_leakage.training.blocks import blocks_of


def private_training(
    protection: Protection | None, layers: Layers, epochs: int, batch_size: float, units: int
) -> Training | None:
    """Return the private training of these layers on so many units, with its noise; None without a mechanism.

    Raises:
        UserError: no noise reaches the budget.
    """
    blocks = blocks_of(layers, None if protection is None else protection.step)
    return solved(protection, epochs=epochs, batch_size=batch_size, dataset_size=units, blocks=blocks)
