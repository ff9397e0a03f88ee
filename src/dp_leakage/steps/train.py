"""Trains the K models of one cell (targets, shadows or references) as one ensemble."""

import time
from pathlib import Path
from typing import Any

import numpy as np
import torch

from dp_leakage.common.errors import UserError
from dp_leakage.common.identity import derived_seed, identity
from dp_leakage.common.user_code import FILES, call
from dp_leakage.data.dataset import Dataset
from dp_leakage.data.splits import dealt, heads
from dp_leakage.data.subclasses import PARTITIONS
from dp_leakage.engines import ENGINES
from dp_leakage.engines.answers import Answers, history_of
from dp_leakage.engines.asking import asked
from dp_leakage.models.layers import Layers
from dp_leakage.privacy.calibration import calibrated
from dp_leakage.privacy.mechanism import holds_groups
from dp_leakage.provenance.files import read_arrays, write_json, write_table, write_tensors
from dp_leakage.steps import Json, log, provenance, run
from dp_leakage.steps._data import dataset_of
from dp_leakage.steps._models import architecture_of, device_of, train_models, tuned_settings
from dp_leakage.training.blocks import block_dimensions
from dp_leakage.training.checkpoint import Checkpoint
from dp_leakage.training.settings import TrainingSettings


def main(
    settings: Json,
    data: Path,
    models: Path,
    history: Path,
    timing: Path,
    device: str,
    checkpoint_seconds: float,
    tuned: Path | None = None,
) -> None:
    """Reads ``data.npz`` and the best learning rate; writes the models, their history and the wall time."""
    started = time.perf_counter()
    arrays, _ = read_arrays(data, settings["data"])
    x, y = torch.from_numpy(arrays["x"]), torch.from_numpy(arrays["y"])
    seeds = [derived_seed(settings["seed"], repeat) for repeat in range(settings["repeats"])]
    subsets = _subsets(arrays, settings["subset"], seeds, settings["seed"])
    held = _held(settings["subset"], len(seeds))
    if settings["engine"] in ENGINES:
        rows = [own if held is None else own[held[k]] for k, own in enumerate(subsets)]
        found = _answers(settings, dataset_of(arrays), [own.numpy() for own in rows], seeds)
        _write_answers(settings, dataset_of(arrays), found, models, history)
        write_json(timing, {"train_seconds": time.perf_counter() - started, "models": len(seeds), "device": "cpu"})
        return
    architecture = architecture_of(settings, tuple(x.shape[1:]), int(y.max()) + 1)
    told, chosen = tuned_settings(settings, tuned)
    schedule = {key: settings["training"][key] for key in ("epochs", "batch_size")}
    blocks = blocks_of(architecture, settings["mechanism"])
    mechanism = calibrated(settings["mechanism"], blocks=blocks, dataset_size=subsets.shape[1], **schedule)
    if mechanism is not None:
        log.info("noise multiplier %s, kappa %s", mechanism.noise_multiplier, mechanism.kappa)
    groups = groups_of(settings["mechanism"], x, y, subsets, settings["seed"])
    resume = Checkpoint(models.with_name(f".{models.stem}.checkpoint"), identity(settings), checkpoint_seconds)
    try:
        ensemble, epochs = train_models(
            settings,
            architecture,
            x,
            y,
            subsets,
            seeds,
            TrainingSettings(**told["training"]),
            mechanism,
            held=held,
            evaluate_on=torch.from_numpy(arrays["target_nonmembers"]),
            groups=groups,
            device=device_of(device),
            checkpoint=resume,
            on_epoch=lambda epoch: log.info("epoch %d of %d", epoch, settings["training"]["epochs"]),
        )
    except UserError as error:
        raise UserError(f"{_cell(settings)}: {error}") from None
    noise = {} if mechanism is None else {"noise_multiplier": mechanism.noise_multiplier, "kappa": mechanism.kappa}
    n_groups = None if groups is None else int(groups.max()) + 1
    sizes = {"n_train": int(subsets.shape[1]), "n_test": len(arrays["target_nonmembers"]), "n_groups": n_groups}
    # The only tensors that may be shared, see ``dp_leakage.share``.
    stamp = provenance(settings, **sizes, blocks=blocks, **noise, **chosen, parameters=sorted(ensemble.parameters))
    write_tensors(models, {name: tensor.cpu().numpy() for name, tensor in ensemble.tensors().items()}, stamp)
    write_table(history, _columns(epochs), stamp)
    write_json(
        timing,
        {"train_seconds": time.perf_counter() - started, "models": len(seeds), "device": device_of(device)},
    )
    resume.path.unlink(missing_ok=True)


def _answers(settings: Json, data: Dataset, subsets: list[np.ndarray], seeds: list[int]) -> Answers:
    try:
        return asked(settings["engine"], settings, data, subsets, seeds)
    except UserError as error:
        raise UserError(f"{_cell(settings)}: {error}") from None


def _write_answers(settings: Json, data: Dataset, found: Answers, models: Path, history: Path) -> None:
    """The answers that an engine keeps instead of a model's parameters, and the accuracies."""
    sizes = {"n_train": int(found.trained_on.sum(axis=1).max()), "n_test": len(data.roles["target_nonmembers"])}
    stamp = provenance(settings, **sizes, n_groups=None, blocks=None)
    write_tensors(models, found.tensors(), stamp)
    write_table(history, history_of(found, data), stamp)


def _cell(settings: Json) -> str:
    cell = "/".join(settings[key] for key in ("study", "dataset", "model", "defense"))
    return f"{cell} ({settings['role']} models)"


def _subsets(arrays: dict[str, Any], subset: Json, seeds: list[int], seed: int) -> torch.Tensor:
    """Rows that each model trains on, (K, size): the whole pool of roles, or ``size`` records of it.

    Each model draws them by its own seed; if ``dealt``, the pool in the order of its rows is dealt to all models.
    """
    pool = torch.cat([torch.from_numpy(arrays[role]) for role in subset["pool"]])
    if subset["size"] == len(pool):
        return pool.expand(len(seeds), -1)
    if subset.get("dealt"):
        return pool.sort().values[torch.from_numpy(dealt(len(pool), subset["size"], len(seeds), seed))]
    generators = (torch.Generator().manual_seed(derived_seed(own, "subset")) for own in seeds)
    drawn = [torch.randperm(len(pool), generator=generator)[: subset["size"]] for generator in generators]
    return torch.stack([pool[rows].sort().values for rows in drawn])


def _held(subset: Json, repeats: int) -> torch.Tensor | None:
    """The coins of design ``coins``, bool (repeats, size); None if every model trains on all of its subset."""
    return torch.from_numpy(heads(subset["size"], repeats, subset["coins"])) if "coins" in subset else None


def groups_of(
    mechanism: Json | None, x: torch.Tensor, y: torch.Tensor, subsets: torch.Tensor, seed: int
) -> torch.Tensor | None:
    """The (sub)class of each training record, int64 (n,), if those are the mechanism's units."""
    if mechanism is None or not holds_groups(mechanism["unit"]):
        return None
    if mechanism["unit"] == "class":
        return y
    rows = subsets.unique()
    if mechanism["unit"] in FILES:
        own = call(mechanism["unit"], "groups", x.numpy(), y.numpy(), derived_seed(seed, "groups"))
        if (
            not isinstance(own, np.ndarray)
            or own.shape != tuple(y.shape)
            or own.dtype.kind not in "iu"
            or own.min() < 0
        ):
            words = f"valid is an array of whole numbers from 0 on, one for each of {len(y)} records"
            found = getattr(own, "dtype", type(own).__name__)
            raise UserError(f"plugin {mechanism['unit']}: groups returns {found}; {words}")
        return torch.as_tensor(own, dtype=torch.int64)
    split = PARTITIONS[mechanism["settings"]["partition"]]
    groups = torch.zeros_like(y)
    found = split(x[rows].numpy(), y[rows].numpy(), mechanism["settings"]["k_sub"], derived_seed(seed, "subclasses"))
    groups[rows] = torch.from_numpy(found)
    return groups


def blocks_of(layers: Layers, mechanism: Json | None) -> list[int] | None:
    """Dimensions of the unit vectors of directional noise, over which its accountants compose."""
    return block_dimensions(layers, mechanism["block"]) if mechanism and mechanism["noise"] == "vmf" else None


def _columns(epochs: list[Json]) -> dict[str, list[Any]]:
    renamed = [{"repeat" if key == "model" else key: value for key, value in row.items()} for row in epochs]
    return {
        key: [row[key] for row in renamed] for key in ("repeat", "epoch", "loss", "train_accuracy", "test_accuracy")
    }


if __name__ == "__main__":
    torch.set_num_threads(1)
    run(main, "data", "models", "history", "timing", "tuned?", options={"device": "auto", "checkpoint_seconds": 60.0})
