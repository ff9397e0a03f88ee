"""How long a step for whole persons takes beside one for as many single records.

    python benchmarks/persons.py

160 persons have 5 records each; coins decide who is in; a batch has 40 persons, or 200 records. One process, one
thread: both take turns, an epoch each, and the least time of the rounds counts. The goal is a ratio of at most 2.
"""

import time

import torch
from torch import Tensor

from dp_leakage.models.architectures import build
from dp_leakage.privacy.mechanism import Mechanism
from dp_leakage.training.settings import TrainingSettings
from dp_leakage.training.trainer import EnsembleTraining, start

PERSONS, RECORDS, BATCH = 160, 5, 40
ROUNDS = 9
WORKLOADS: list[tuple[str, tuple[int, ...], dict, int]] = [  # architecture, shape of a record, its settings, models
    ("softmax_regression", (30,), {}, 12),
    ("mlp", (30,), {"hidden": [64, 64]}, 12),
    ("mlp", (784,), {"hidden": [256]}, 12),
    ("lenet", (1, 28, 28), {}, 2),
]


def main() -> None:
    """Print a table."""
    torch.set_num_threads(1)
    print(f"{'workload':<32}{'sampler':<10}{'record':>10}{'person':>10}{'ratio':>8}   (µs per model and step)")
    for name, shape, settings, models in WORKLOADS:
        for sampler in ("poisson", "shuffle"):
            record, person = seconds(name, shape, settings, models, sampler)
            words = f"{name} {settings.get('hidden', '')}"
            print(f"{words:<32}{sampler:<10}{record * 1e6:10.0f}{person * 1e6:10.0f}{person / record:8.2f}", flush=True)


def seconds(name: str, shape: tuple[int, ...], settings: dict, models: int, sampler: str) -> tuple[float, float]:
    """Of processor time per model and step: for single records, and for persons."""
    count = PERSONS * RECORDS
    generator = torch.Generator().manual_seed(0)
    x = torch.randn(count, *shape, generator=generator)
    y = torch.randint(0, 10, (count,), generator=generator)
    groups = torch.arange(count) // RECORDS
    held = (torch.rand(models, PERSONS, generator=generator) < 0.5)[:, groups]

    def training(unit: str, batch_size: int, groups: Tensor | None) -> EnsembleTraining:
        how = TrainingSettings("adam", 0.01, epochs=1, batch_size=batch_size)
        mechanism = Mechanism(sampler, unit, noise_multiplier=1.0)
        subsets = torch.arange(count).expand(models, -1)
        layers = build(name, shape, 10, **settings)
        return start(layers, x, y, subsets, range(models), how, mechanism, groups, held=held)

    with torch.inference_mode():
        both = training("example", BATCH * RECORDS, None), training("person", BATCH, groups)
        times: list[list[float]] = [[], []]
        for _ in range(ROUNDS):
            for one, taken in zip(both, times, strict=True):
                begun = time.process_time()
                one.run_epoch()
                taken.append((time.process_time() - begun) / models / (PERSONS // BATCH))
    return min(times[0]), min(times[1])


if __name__ == "__main__":
    main()
