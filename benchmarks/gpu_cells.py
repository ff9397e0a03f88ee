"""Seconds of whole cells on a device: {none, shuffle, Poisson, whole batches} × {softmax regression, MLP}.

    python benchmarks/gpu_cells.py                      # on the GPU
    python benchmarks/gpu_cells.py --processes 1 2 4 8  # so many private MLPs at once, each in a process of its own
    python benchmarks/gpu_cells.py --device cpu --quick

Each cell trains 5 models for 100 epochs on 10,000 records in batches of 200, with and without a checkpoint that is
saved after each epoch. With ``--quick`` it is one epoch of a tenth of the records.
"""

import argparse
import multiprocessing
import time
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

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
STARTED = 600  # seconds within which all processes must have begun
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


def at_once(count: int, *cell: object) -> float:
    """Seconds per cell if ``count`` processes train one each; they start together, when all have begun the device."""
    spawned = multiprocessing.get_context("spawn")  # a fork could not use a device that its parent has begun
    ready, go = spawned.Barrier(count + 1), spawned.Event()
    processes = [spawned.Process(target=_one_of, args=(ready, go, *cell)) for _ in range(count)]
    for process in processes:
        process.start()
    ready.wait(timeout=STARTED)
    begun = time.perf_counter()
    go.set()
    for process in processes:
        process.join()
    if any(process.exitcode for process in processes):
        raise SystemExit(f"{count} processes at once: one failed")
    return (time.perf_counter() - begun) / count


def _one_of(ready: Any, go: Any, *cell: Any) -> None:
    torch.set_num_threads(1)
    warm_up(cell[2])
    ready.wait(timeout=STARTED)
    go.wait()
    seconds(*cell)


def warm_up(device: str) -> None:
    """The libraries and the device begin."""
    seconds("softmax_regression", None, device, 1, 1000, False)


def main() -> None:
    """Prints a line for each cell, or for each number of processes."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--device", default="cuda", choices=["cuda", "cpu"])
    parser.add_argument("--quick", action="store_true", help="one epoch of a tenth of the records")
    parser.add_argument("--processes", type=int, nargs="+", default=[], help="time so many cells at once instead")
    given = parser.parse_args()
    torch.set_num_threads(1)
    epochs, records = (1, 1000) if given.quick else (100, 10_000)
    for count in given.processes:
        spent = at_once(count, "mlp", MECHANISMS["shuffle"], given.device, epochs, records, False)
        print(f"{count} at once: {spent:8.2f} s per cell", flush=True)
    if given.processes:
        return
    warm_up(given.device)
    print(f"{MODELS} models, {epochs} epochs of {records} records, {given.device}: seconds, and with a checkpoint")
    for name in ARCHITECTURES:
        for of, mechanism in MECHANISMS.items():
            bare, saved = (seconds(name, mechanism, given.device, epochs, records, own) for own in (False, True))
            print(f"{name:20s} {of:8s} {bare:8.2f} {saved:8.2f}", flush=True)


if __name__ == "__main__":
    main()
