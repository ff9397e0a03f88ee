"""Adam and SGD on one flat buffer, fused: one pass over the memory per step.

These are the kernels of `torch.optim.Adam(fused=True)` and `torch.optim.SGD(fused=True)`, called without the optimizer
objects, whose overhead exceeds the whole step of a small model.
"""

from collections.abc import Callable

import torch
from torch import Tensor

from dp_leakage.common.kernels import adam_step
from dp_leakage.training.settings import TrainingSettings

Slots = dict[str, Tensor]


def slots(settings: TrainingSettings, flat: Tensor) -> Slots:
    """The optimizer's initial memory: zeros like ``flat`` (K, P), and Adam's step count."""
    if settings.optimizer == "adam":
        return {
            "mean": torch.zeros_like(flat),
            "square": torch.zeros_like(flat),
            "step": torch.zeros((), dtype=torch.float32, device=flat.device),
        }
    return {"velocity": torch.zeros_like(flat)} if settings.momentum else {}


def updater(settings: TrainingSettings, flat: Tensor, gradient: Tensor, memory: Slots) -> Callable[[float], None]:
    """A function of the learning rate that moves ``flat`` one step against ``gradient``, both (K, P).

    It brings ``memory`` up to date.
    """
    if settings.optimizer == "adam":
        mean, square, count = (memory[name] for name in ("mean", "square", "step"))

        def adam(rate: float) -> None:
            count.add_(1)
            adam_step(flat, gradient, mean, square, count, rate)

        return adam

    def plain(rate: float) -> None:
        flat.add_(gradient, alpha=-rate)

    def heavy_ball(rate: float) -> None:
        flat.add_(memory["velocity"].mul_(settings.momentum).add_(gradient), alpha=-rate)

    return heavy_ball if settings.momentum else plain
