"""Seconds of whole cells on a device: {none, shuffle, Poisson, whole batches} × {softmax regression, MLP}.

    python benchmarks/gpu_cells.py                      # on the GPU
    python benchmarks/gpu_cells.py --device cpu --quick

Each cell trains 5 models for 100 epochs on 10,000 records in batches of 200, with and without a checkpoint that is
saved after each epoch. With ``--quick`` it is one epoch of a tenth of the records.
"""

import argparse
import time
from pathlib import Path
from tempfile import TemporaryDirectory

import torch

from dp_leakage.models.architectures import build
from dp_leakage.privacy.mechanism import Mechanism
from dp_leakage.training.checkpoint import Checkpoint
from dp_leakage.training.settings import TrainingSettings
from dp_leakage.training.trainer import train

FEATURES, CLASSES, MODELS = 50, 100, 5  # as jayaraman2019's Purchase-100 and CIFAR-100 after PCA
MECHANISMS = {
    "none": None,
    "shuffle": Mechanism(noise_multiplier=1.0),
    "poisson": Mechanism("poisson", noise_multiplier=1.0),
    "batch": Mechanism(unit="batch", noise_multiplier=1.0),
}
ARCHITECTURES = {"softmax_regression": {}, "mlp": {"hidden": [256, 256]}}


def seconds(name: str, mechanism: Mechanism | None, device: str, epochs: int, records: int, saved: bool) -> float:
    """Of one cell, from the call to the models on the CPU."""
    layers = build(name, (FEATURES,), CLASSES, **ARCHITECTURES[name])
    generator = torch.Generator().manual_seed(0)
    x = torch.randn(records, FEATURES, generator=generator)
    y = torch.randint(0, CLASSES, (records,), generator=generator)
    settings = TrainingSettings("adam", 0.01, epochs=epochs, batch_size=200, evaluate_every=epochs)
    with TemporaryDirectory() as folder:
        resume = Checkpoint(Path(folder) / "checkpoint", "benchmark", 0) if saved else None
        begun = time.perf_counter()
        train(
            layers,
            x,
            y,
            torch.arange(records).expand(MODELS, -1),
            range(MODELS),
            settings,
            mechanism,
            device=device,
            checkpoint=resume,
        )
        return time.perf_counter() - begun


def main() -> None:
    """Prints a line for each cell."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--device", default="cuda", choices=["cuda", "cpu"])
    parser.add_argument("--quick", action="store_true", help="one epoch of a tenth of the records")
    given = parser.parse_args()
    torch.set_num_threads(1)
    epochs, records = (1, 1000) if given.quick else (100, 10_000)
    seconds("softmax_regression", None, given.device, 1, 1000, False)  # libraries and the device begin
    print(f"{MODELS} models, {epochs} epochs of {records} records, {given.device}: seconds, and with a checkpoint")
    for name in ARCHITECTURES:
        for of, mechanism in MECHANISMS.items():
            bare, saved = (seconds(name, mechanism, given.device, epochs, records, own) for own in (False, True))
            print(f"{name:20s} {of:8s} {bare:8.2f} {saved:8.2f}", flush=True)


if __name__ == "__main__":
    main()
