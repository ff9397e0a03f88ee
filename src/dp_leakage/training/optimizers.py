"""Adam and SGD on one flat buffer, fused: one pass over the memory per step.

These are the kernels of `torch.optim.Adam(fused=True)` and `torch.optim.SGD(fused=True)`, called without the optimizer
objects, whose overhead exceeds the whole step of a small model.
"""

import torch
from torch import Tensor

from dp_leakage.common.kernels import adam_step
from dp_leakage.training.settings import TrainingSettings

Slots = dict[str, Tensor]


def slots(settings: TrainingSettings, flat: Tensor) -> Slots:
    """Allocate the optimizer's state: zeros like ``flat`` (K, P), and Adam's step count."""
    if settings.optimizer == "adam":
        return {
            "mean": torch.zeros_like(flat),
            "square": torch.zeros_like(flat),
            "step": torch.zeros((), dtype=torch.float32, device=flat.device),
        }
    return {"velocity": torch.zeros_like(flat)} if settings.momentum else {}


class Optimizer:
    """Moves parameters against their gradient, and brings its memory up to date.

    Off the CPU the learning rate is a tensor of the device, so that a captured step follows its changes.

    Args:
        settings: choice of the optimizer.
        flat, gradient: (K, P), the parameters and their gradient.
        memory: from `slots`.
    """

    def __init__(self, settings: TrainingSettings, flat: Tensor, gradient: Tensor, memory: Slots) -> None:
        self.settings, self.flat, self.gradient, self.memory = settings, flat, gradient, memory
        self.rate: float | Tensor = 0.0
        if flat.device.type != "cpu":
            self.rate = torch.zeros((), dtype=torch.float32, device=flat.device)

    def set_rate(self, rate: float) -> None:
        """Set the learning rate of the next steps."""
        if isinstance(self.rate, Tensor):
            self.rate.fill_(rate)
        else:
            self.rate = rate

    def step(self) -> None:
        """Take one step. On a device it waits for nothing, so it can be captured (see `graphs`)."""
        if self.settings.optimizer == "adam":
            count = self.memory["step"].add_(1)
            adam_step(self.flat, self.gradient, self.memory["mean"], self.memory["square"], count, self.rate)
            return
        along = self.gradient
        if self.settings.momentum:
            along = self.memory["velocity"].mul_(self.settings.momentum).add_(along)
        if isinstance(self.rate, Tensor):
            self.flat.addcmul_(along, self.rate, value=-1)
        else:
            self.flat.add_(along, alpha=-self.rate)
