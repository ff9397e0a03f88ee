"""Whether a device gives the same bytes twice, and with and without CUDA graphs, for many architectures and steps.

    python benchmarks/gpu_bytes.py                # on the GPU
    python benchmarks/gpu_bytes.py --device cpu

Exits with 1 if anything differs. On a CPU nothing is captured, so the second question has no meaning there.
"""

import argparse
import os
import sys
from collections.abc import Iterator
from typing import Any

import torch

from dp_leakage.common.captures import OFF
from dp_leakage.models.architectures import build
from dp_leakage.models.ensemble import Ensemble
from dp_leakage.privacy.mechanism import Mechanism
from dp_leakage.training.samplers import HEADS
from dp_leakage.training.settings import TrainingSettings
from dp_leakage.training.trainer import train
from dp_leakage.training.watch import WhiteBoxObserver

RECORDS, CLASSES, MODELS = 80, 5, 3
SHAPES = {
    "softmax_regression": (12,),
    "mlp": (12,),
    "lenet": (1, 28, 28),
    "cnn_small": (1, 10, 10),
    "resnet": (3, 8, 8),
    "wide_resnet": (3, 8, 8),
}
OF_ARCHITECTURE = {"resnet": {"channels": [8, 16]}, "wide_resnet": {"depth": 10, "width": 1}}
STEPS = {
    "none": None,
    "shuffle": Mechanism(noise_multiplier=0.5),
    "poisson": Mechanism("poisson", noise_multiplier=0.5),
    "batch": Mechanism(unit="batch", noise_multiplier=0.5),
    "class": Mechanism("class_poisson", unit="class", noise_multiplier=0.5),
    "person": Mechanism("poisson", unit="person", noise_multiplier=0.5),
    "vmf": Mechanism("wor", bound="normalize", noise="vmf", kappa=50.0),
    "vmf by row": Mechanism("poisson", bound="normalize", noise="vmf", kappa=50.0, block="row"),
    "coins": Mechanism("poisson", noise_multiplier=0.5),
    "watch": Mechanism(noise_multiplier=0.5),
}


def trained(name: str, step: str, device: str) -> Ensemble:
    """Models of one architecture, two epochs."""
    mechanism = STEPS[step]
    generator = torch.Generator().manual_seed(0)
    x = torch.rand(RECORDS, *SHAPES[name], generator=generator)
    y = torch.arange(RECORDS) % CLASSES
    layers = build(name, SHAPES[name], CLASSES, dropout=0.2, **OF_ARCHITECTURE.get(name, {}))
    groups = torch.arange(RECORDS) // 4 if mechanism is not None and mechanism.unit == "person" else y
    settings = TrainingSettings("adam", 0.01, epochs=2, batch_size=16)
    subsets = torch.arange(RECORDS).expand(MODELS, -1)
    options: dict[str, Any] = {}
    if step == "coins":
        options["held"] = torch.rand(subsets.shape, generator=generator) < HEADS
    if step == "watch":  # a canary that is one parameter's gradient, in place of the last two records
        canary, other = torch.arange(RECORDS - 2, RECORDS).split(1)
        options["watch"] = WhiteBoxObserver(RECORDS - 2, canary, other, along=torch.tensor([0]))
    made, _ = train(layers, x, y, subsets, range(MODELS), settings, mechanism, groups=groups, device=device, **options)
    return made


def differing(device: str) -> Iterator[tuple[str, str, list[str]]]:
    """Architecture, step, and what differs of it: ``again``, ``without graphs``."""
    for name in SHAPES:
        for step in STEPS:
            first, again = (trained(name, step, device) for _ in range(2))
            os.environ[OFF] = "1"
            single = trained(name, step, device)
            del os.environ[OFF]
            others = {"again": again, "without graphs": single}
            yield name, step, [words for words, other in others.items() if not _same(first, other)]


def _same(one: Ensemble, other: Ensemble) -> bool:
    return all(torch.equal(value, other.parameters[name]) for name, value in one.parameters.items())


def main() -> int:
    """Prints a line for each architecture and step; 1 if anything differs."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--device", default="cuda", choices=["cuda", "cpu"])
    given = parser.parse_args()
    torch.set_num_threads(1)
    status = 0
    for name, step, words in differing(given.device):
        print(f"{name:20s} {step:8s} {'differs ' + ', '.join(words) if words else 'same bytes'}", flush=True)
        status |= bool(words)
    return status


if __name__ == "__main__":
    sys.exit(main())
