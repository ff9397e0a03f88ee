"""Average of the parameters over steps. It reads only released values."""

from torch import Tensor

from dp_leakage.training.settings import TrainingSettings

AVERAGE = "average"  # its name in a training's memory


def start_average(settings: TrainingSettings, flat: Tensor) -> dict[str, Tensor]:
    """Allocate the average of the parameters (K, P), if the settings ask for one."""
    return {AVERAGE: flat.clone()} if settings.averages else {}


def move_average(settings: TrainingSettings, average: Tensor, flat: Tensor, step: int, steps: int) -> None:
    """Update the average after a step.

    Args:
        settings: with ``average_decay`` or ``average_epochs``.
        average, flat: (K, P), the average and the parameters.
        step: counted from 0 over the training.
        steps: in an epoch.
    """
    if settings.average_decay is not None:
        average.lerp_(flat, 1 - min(settings.average_decay, (1 + step) / (10 + step)))
        return
    assert settings.average_epochs is not None  # or there were no average
    first = max(settings.epochs - settings.average_epochs, 0) * steps
    # Before the last epochs, the average is the parameters as they are.
    average.lerp_(flat, 1 / max(step - first + 1, 1))
