"""Times an epoch of every defense of one model, and of Opacus' hooks and plain PyTorch, in turns in one process.

They take turns because a machine's speed drifts: compared epochs ran within seconds of each other. The output is a
time, so the promise of the same bytes from the same settings does not hold for it.
"""

import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

import torch
from torch import nn

from dp_leakage.common.identity import derived_seed
from dp_leakage.data.dataset import Dataset
from dp_leakage.models.layers import Layers
from dp_leakage.models.layers import module as module_of
from dp_leakage.privacy.calibration import calibrated
from dp_leakage.provenance.files import write_table
from dp_leakage.steps import Json, log, provenance, run
from dp_leakage.steps._data import read_dataset
from dp_leakage.steps._models import architecture_of
from dp_leakage.training.opacus_engine import start_module
from dp_leakage.training.settings import TrainingSettings
from dp_leakage.training.trainer import start

OURS, OPACUS, PYTORCH = "ours", "opacus", "pytorch"
Epoch = Callable[[], None]


def main(settings: Json, data: Path, timed: Path) -> None:
    """Reads ``data.npz``; writes timed (the defense), engine, round, seconds of one epoch over ``records`` records."""
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
    """(defense, engine) and a function that runs one more epoch. The rivals run for `none` and the first DP cell."""
    x, y = torch.from_numpy(dataset.x), torch.from_numpy(dataset.y)
    rows = torch.from_numpy(dataset.trainable[: settings["records"]])
    seed = derived_seed(settings["seed"], "timing")
    found: list[tuple[tuple[str, str], Epoch]] = []
    rivals = {OPACUS, PYTORCH}
    for cell in settings["cells"]:
        layers = architecture_of(cell, tuple(x.shape[1:]), dataset.n_classes)
        schedule = {key: cell["training"][key] for key in ("epochs", "batch_size")}
        mechanism = calibrated(cell["mechanism"], dataset_size=settings["n_records"], **schedule)
        training = TrainingSettings(**cell["training"])
        with torch.inference_mode():
            ours = start(layers, x, y, rows[None], [seed], training, mechanism)
        found.append(((cell["defense"], OURS), torch.inference_mode()(ours.run_epoch)))
        rival = PYTORCH if cell["defense"] == "none" else OPACUS if mechanism is not None else None
        if rival in rivals:
            rivals.remove(rival)
            worker = start_module(partial(_module, layers), x, y, rows, seed, training, mechanism)
            found.append(((cell["defense"], rival), worker.run_epoch))
    return found


def _module(layers: Layers) -> nn.Sequential:
    """The layers as a PyTorch module with PyTorch's initial parameters."""
    module = module_of(layers)
    for layer in module.modules():
        if hasattr(layer, "reset_parameters"):
            layer.reset_parameters()
    return module


if __name__ == "__main__":
    torch.set_num_threads(1)
    run(main, "data", "timed")
