"""Small data and architectures that the trainer's tests share."""

from dataclasses import replace

import pytest
import torch
from torch import Tensor, nn

from dp_leakage.models.architectures import build
from dp_leakage.models.layers import (
    AvgPool2d,
    Conv2d,
    Embedding,
    Flatten,
    GlobalAvgPool2d,
    GroupNorm,
    LayerNorm,
    Layers,
    Linear,
    MaxPool2d,
    Residual,
    SiLU,
    Tanh,
    TemperedSigmoid,
    WeightStandardizedConv2d,
)
from dp_leakage.models.user_module import module_layers
from dp_leakage.training import trainer
from dp_leakage.training.checkpoint import Checkpoint
from dp_leakage.training.settings import TrainingSettings
from dp_leakage.training.trainer import EnsembleTraining

CLASSES = 5
SHAPES = {
    "softmax_regression": (12,),
    "mlp": (12,),
    "lenet": (1, 28, 28),
    "cnn": (2, 16, 16),
    "cnn_small": (1, 10, 10),
    "mixed": (2, 11, 13),
    "residual": (2, 8, 9),
    "table": (6,),
    "module": (12,),
}
SETTINGS = TrainingSettings("sgd", 0.1, epochs=1, batch_size=8)


class Stretch(nn.Module):
    """A layer for which Opacus has no rule."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.weight, self.bias = (nn.Parameter(torch.linspace(0.5, 1.5, width)) for _ in range(2))

    def forward(self, x: Tensor) -> Tensor:
        return x * self.weight.exp() + self.bias


class Net(nn.Module):
    """A user's own module."""

    def __init__(self) -> None:
        super().__init__()
        self.enter, self.stretch, self.leave = nn.Linear(12, 7), Stretch(7), nn.Linear(7, CLASSES)
        self.norm = nn.GroupNorm(1, 7)

    def forward(self, x: Tensor) -> Tensor:
        h = self.stretch(torch.tanh(self.enter(x)))
        return self.leave(h + self.norm(h))


def layers_of(name: str, **settings: object) -> Layers:
    """An architecture of the registry; or ``mixed``, ``residual`` and ``table``, which have all other layers; or
    ``module``, a user's own.
    """
    if name == "module":
        return module_layers(Net, SHAPES[name], CLASSES)
    if name == "residual":
        inner = Residual((GroupNorm(2, 4), Tanh(), Conv2d(4, 4, 3, padding=1)))
        block = Residual((WeightStandardizedConv2d(4, 4, 3, 2, 1), inner, GroupNorm(2, 4)), (Conv2d(4, 4, 1, 2),))
        return (Conv2d(2, 4, 3, padding=1), MaxPool2d(3, 1, 1), block, GlobalAvgPool2d(), Linear(4, CLASSES))
    if name == "table":
        return (Embedding((3, 4), 2), Linear(8, 6), LayerNorm(6), TemperedSigmoid(1.58, 3.0, 0.71), Linear(6, CLASSES))
    if name == "mixed":
        convolutions = (Conv2d(2, 3, 3, stride=2, padding=1), Tanh(), MaxPool2d(2), Conv2d(3, 4, 2), AvgPool2d(2))
        return (*convolutions, Flatten(), SiLU(), Linear(4, CLASSES))
    if name == "mlp":
        settings = {"hidden": (20, 16)} | settings
    return build(name, SHAPES[name], CLASSES, **settings)


def data_of(name: str, n: int = 40, dtype: torch.dtype = torch.float32) -> tuple[Tensor, Tensor]:
    generator = torch.Generator().manual_seed(5)
    x = torch.randn(n, *SHAPES[name], generator=generator).to(dtype)
    if name == "table":  # the first columns are categories
        x[:, :2] = torch.randint(0, 3, (n, 2), generator=generator).to(dtype)
    return x, torch.randint(0, CLASSES, (n,), generator=generator)


def subsets_of(n: int, models: int, size: int | None = None) -> Tensor:
    generator = torch.Generator().manual_seed(6)
    return torch.stack([torch.randperm(n, generator=generator)[: size or n] for _ in range(models)])


def started(layers, x, y, subsets, seeds, mechanism=None, **settings) -> EnsembleTraining:
    """A training at epoch 0, not in inference mode."""
    return trainer.start(layers, x, y, subsets, seeds, replace(SETTINGS, **settings), mechanism)


def take(training: EnsembleTraining, batches: list[list[Tensor]]) -> None:
    """One step for each list of batches (a tensor of rows per model)."""
    training.draw = lambda _: [[[rows] for rows in of_model] for of_model in zip(*batches, strict=True)]
    with torch.inference_mode():
        training.run_epoch()


def cut_and_resumed(folder, last, *given):
    """What `train` gives after it was cut behind epoch ``last`` and went on from its checkpoint."""
    checkpoint = Checkpoint(folder / "checkpoint", "this", interval=0)

    def stop(epoch):
        if epoch == last:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        trainer.train(*given, checkpoint=checkpoint, on_epoch=stop)
    return trainer.train(*given, checkpoint=checkpoint)
