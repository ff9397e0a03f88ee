"""What a step for whole persons is compared with: one for as many single records. A table of `trainer.py`.

160 persons have 5 records each, or from 1 to 40 with 5 on average. Coins decide who is in. A batch has 40 persons, or
as many records as they have on average.
"""

from collections.abc import Callable

import torch
from torch import Tensor

from dp_leakage.models.architectures import build
from dp_leakage.privacy.mechanism import Mechanism
from dp_leakage.training.settings import TrainingSettings
from dp_leakage.training.trainer import start

PERSONS, RECORDS, MOST, BATCH = 160, 5, 40, 40
STEPS = PERSONS // BATCH  # in an epoch
GOAL = 2.0  # a person-level step over a record-level one
WORKLOADS: list[tuple[str, tuple[int, ...], dict, int]] = [  # architecture, shape of a record, its settings, models
    ("softmax_regression", (30,), {}, 12),
    ("mlp", (30,), {"hidden": [64, 64]}, 12),
    ("mlp", (784,), {"hidden": [256]}, 12),
    ("lenet", (1, 28, 28), {}, 2),
]


def sizes(even: bool) -> Tensor:
    """How many records each person has."""
    if even:
        return torch.full((PERSONS,), RECORDS)
    drawn = torch.empty(PERSONS).geometric_(1 / RECORDS, generator=torch.Generator().manual_seed(1))
    return drawn.clamp(max=MOST).long()


def epochs(
    name: str, shape: tuple[int, ...], settings: dict, models: int, sampler: str, even: bool
) -> dict[str, Callable[[], None]]:
    """An epoch of single records, and one of persons."""
    own = sizes(even)
    groups, count = torch.repeat_interleave(torch.arange(PERSONS), own), int(own.sum())
    generator = torch.Generator().manual_seed(0)
    x = torch.randn(count, *shape, generator=generator)
    y = torch.randint(0, 10, (count,), generator=generator)
    held = (torch.rand(models, PERSONS, generator=generator) < 0.5)[:, groups]

    def epoch(unit: str, batch_size: int) -> Callable[[], None]:
        how = TrainingSettings("adam", 0.01, epochs=1, batch_size=batch_size)
        mechanism = Mechanism(sampler, unit, noise_multiplier=1.0)
        subsets, layers = torch.arange(count).expand(models, -1), build(name, shape, 10, **settings)
        with torch.inference_mode():
            training = start(layers, x, y, subsets, range(models), how, mechanism, groups, held=held)
        return torch.inference_mode()(training.run_epoch)

    return {"record": epoch("example", -(-count // STEPS)), "person": epoch("person", BATCH)}
