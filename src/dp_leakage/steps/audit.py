"""Trains models of one cell with canaries, each held or not by a coin of its own, and scores the canaries."""

from pathlib import Path

import numpy as np
import torch

from dp_leakage.attacks.queries import margins
from dp_leakage.attacks.signals import losses
from dp_leakage.data.canaries import Canaries, place
from dp_leakage.data.dataset import Dataset
from dp_leakage.files import write_table
from dp_leakage.identity import derived_seed, identity
from dp_leakage.models.ensemble import Models
from dp_leakage.privacy.calibration import calibrated
from dp_leakage.steps import Json, log, provenance, run
from dp_leakage.steps._data import read_dataset
from dp_leakage.steps._models import architecture_of, device_of, train_models
from dp_leakage.steps.train import blocks_of, groups_of
from dp_leakage.training.checkpoint import Checkpoint
from dp_leakage.training.settings import TrainingSettings


def main(settings: Json, data: Path, scores: Path, device: str, checkpoint_seconds: float) -> None:
    """Reads ``data.npz``; writes the score of every canary in every model, and on which side its coin fell."""
    dataset = read_dataset(data, settings["data"])
    seeds = [derived_seed(settings["seed"], repeat) for repeat in range(settings["repeats"])]
    placed = place(dataset, _possible(settings, dataset), derived_seed(settings["seed"], "canaries"))
    coins = np.random.default_rng(derived_seed(settings["seed"], "coins"))
    held = coins.random((len(seeds), len(placed.held))) < 0.5
    chosen = np.where(held, placed.held, placed.other)
    subsets = torch.from_numpy(np.concatenate([np.tile(placed.fixed, (len(seeds), 1)), chosen], axis=1))
    x, y = torch.from_numpy(placed.x), torch.from_numpy(placed.y)
    architecture = architecture_of(settings, tuple(x.shape[1:]), dataset.n_classes)
    mechanism = calibrated(
        settings["mechanism"],
        blocks=blocks_of(architecture, settings["mechanism"]),
        dataset_size=subsets.shape[1],
        **{key: settings["training"][key] for key in ("epochs", "batch_size")},
    )
    resume = Checkpoint(scores.with_name(f".{scores.stem}.checkpoint"), identity(settings), checkpoint_seconds)
    ensemble, _ = train_models(
        settings,
        architecture,
        x,
        y,
        subsets,
        seeds,
        TrainingSettings(**settings["training"]),
        mechanism,
        groups=_groups(settings, placed),
        device=device_of(device),
        checkpoint=resume,
        on_epoch=lambda epoch: log.info("epoch %d of %d", epoch, settings["training"]["epochs"]),
    )
    frame = {
        "repeat": np.repeat(np.arange(len(seeds)), held.shape[1]),
        "canary": np.tile(placed.kind, len(seeds)).tolist(),
        "place": np.tile(np.arange(held.shape[1]), len(seeds)),
        "held": held.ravel(),
        "score": _loss(ensemble, placed, placed.other) - _loss(ensemble, placed, placed.held),
    }
    write_table(scores, frame, provenance(settings))
    resume.path.unlink(missing_ok=True)


def _possible(settings: Json, dataset: Dataset) -> dict[str, int]:
    """The canaries asked for; a feature of their own needs flat records, and leaves no directional noise as it was."""
    mechanism = settings["mechanism"]
    widens = dataset.x.ndim == 2 and settings["engine"] == "ensemble" and (mechanism or {}).get("noise") != "vmf"
    return {kind: n for kind, n in settings["canaries"].items() if n and (widens or kind != "gradient")}


def _groups(settings: Json, placed: Canaries) -> torch.Tensor | None:
    """The (sub)class of every record; that of a pair is found without looking at the coin."""
    rows = torch.from_numpy(np.concatenate([placed.fixed, placed.held]))
    x, y = torch.from_numpy(placed.x), torch.from_numpy(placed.y)
    groups = groups_of(settings["mechanism"], x, y, rows[None], settings["seed"])
    if groups is not None:
        groups[placed.other] = groups[placed.held]
    return groups


def _loss(ensemble: Models, placed: Canaries, rows: np.ndarray) -> np.ndarray:
    return losses(margins(ensemble, placed.x[rows], placed.y[rows])).ravel()


if __name__ == "__main__":
    torch.set_num_threads(1)
    run(main, "data", "scores", options={"device": "auto", "checkpoint_seconds": 60.0})
