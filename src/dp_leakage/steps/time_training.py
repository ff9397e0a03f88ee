"""Time an epoch of every defense of one model, of Opacus' hooks and of plain PyTorch, alternating in one process.

They alternate because a machine's speed drifts: compared epochs run within seconds of each other. The output is a
time, so equal settings do not give equal bytes.
"""

import time
from collections.abc import Callable
from pathlib import Path

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from dp_leakage.common.identity import derived_seed
from dp_leakage.data.dataset import Dataset
from dp_leakage.models.layers import Layers
from dp_leakage.models.layers import module as module_of
from dp_leakage.privacy.calibration import solved
from dp_leakage.privacy.mechanism import Mechanism
from dp_leakage.privacy.protection import Protection
from dp_leakage.provenance.files import write_table
from dp_leakage.steps import Json, log, provenance, run
from dp_leakage.steps._data import read_dataset
from dp_leakage.steps._models import architecture_of
from dp_leakage.training.samplers import draw_epoch
from dp_leakage.training.settings import TrainingSettings
from dp_leakage.training.streams import stream
from dp_leakage.training.trainer import start

OURS, OPACUS, PYTORCH = "ours", "opacus", "pytorch"
Epoch = Callable[[], None]


def main(settings: Json, data: Path, timed: Path) -> None:
    """Read ``data.npz``; write timed (the defense), engine, round, and seconds of an epoch over ``records`` records."""
    dataset = read_dataset(data, settings["data"])
    epochs = dict(_epochs(settings, dataset))
    for run_epoch in epochs.values():  # warm-up of memory, kernels and caches, not timed
        run_epoch()
    rows = []
    for turn in range(settings["rounds"]):
        for (defense, engine), run_epoch in epochs.items():
            begun = time.perf_counter()
            run_epoch()
            rows.append((defense, engine, turn, time.perf_counter() - begun))
        log.info("round %d of %d", turn + 1, settings["rounds"])
    columns = dict(zip(("timed", "engine", "round", "seconds"), map(list, zip(*rows, strict=True)), strict=True))
    write_table(timed, columns | {"records": [settings["records"]] * len(rows)}, provenance(settings))


def _epochs(settings: Json, dataset: Dataset) -> "list[tuple[tuple[str, str], Epoch]]":
    """Yield (defense, engine) and a function that runs one more epoch. Comparison engines run for `none` and the
    first DP cell.
    """
    x, y = torch.from_numpy(dataset.x), torch.from_numpy(dataset.y)
    rows = torch.from_numpy(dataset.trainable[: settings["records"]])
    seed = derived_seed(settings["seed"], "timing")
    found: list[tuple[tuple[str, str], Epoch]] = []
    rivals = {OPACUS, PYTORCH}
    for cell in settings["cells"]:
        layers = architecture_of(cell, tuple(x.shape[1:]), dataset.n_classes)
        training = TrainingSettings(**cell["training"])
        private = solved(
            Protection.read(cell["mechanism"]),
            epochs=training.epochs,
            batch_size=training.batch_size,
            dataset_size=settings["n_records"],
        )
        mechanism = None if private is None else private.mechanism
        with torch.inference_mode():
            ours = start(layers, x, y, rows[None], [seed], training, mechanism)
        found.append(((cell["defense"], OURS), torch.inference_mode()(ours.run_epoch)))
        rival = PYTORCH if cell["defense"] == "none" else OPACUS if mechanism is not None else None
        if rival in rivals:
            rivals.remove(rival)
            found.append(((cell["defense"], rival), _rival(_module(layers), x, y, rows, seed, training, mechanism)))
    return found


def _rival(
    module: nn.Module,
    x: Tensor,
    y: Tensor,
    rows: Tensor,
    seed: int,
    training: TrainingSettings,
    mechanism: Mechanism | None,
) -> Epoch:
    """Return an epoch of plain PyTorch, or of Opacus' documented loop, on our batches."""
    from opacus import GradSampleModule
    from opacus.optimizers import DPOptimizer

    batch_size, draws = min(training.batch_size, len(rows)), stream(seed, "batches")
    rate = training.learning_rate
    optimizer: torch.optim.Optimizer = torch.optim.SGD(module.parameters(), lr=rate, momentum=training.momentum)
    if training.optimizer == "adam":
        optimizer = torch.optim.Adam(module.parameters(), lr=rate)
    sampler = "shuffle"
    if mechanism is not None:
        sampler, module = mechanism.sampler, GradSampleModule(module)
        how = {"noise_multiplier": mechanism.noise_multiplier, "max_grad_norm": mechanism.clip_norm}
        generator = stream(seed, "noise")
        optimizer = DPOptimizer(optimizer, **how, expected_batch_size=batch_size, generator=generator)

    def run_epoch() -> None:
        for (own,) in draw_epoch(sampler, "example", rows, batch_size, rows, draws):
            if not len(own):
                continue  # which Opacus' hooks cannot take
            optimizer.zero_grad()
            F.cross_entropy(module(x[own]), y[own]).backward()
            optimizer.step()

    return run_epoch


def _module(layers: Layers) -> nn.Sequential:
    """Return the layers as a PyTorch module with PyTorch's initial parameters."""
    module = module_of(layers)
    for layer in module.modules():
        if hasattr(layer, "reset_parameters"):
            layer.reset_parameters()
    return module.train()


if __name__ == "__main__":
    torch.set_num_threads(1)
    run(main, "data", "timed", kept=("timed",))
