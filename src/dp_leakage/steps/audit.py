"""Train models of one cell with randomly included canaries, and score the canaries."""

import time
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import torch

from dp_leakage.attacks.queries import QUERIES, altered, margins
from dp_leakage.attacks.signals import losses
from dp_leakage.common.identity import derived_seed, identity
from dp_leakage.data.audit_design import AuditDesign
from dp_leakage.data.canaries import Canaries, place
from dp_leakage.data.dataset import Dataset
from dp_leakage.models.ensemble import Models
from dp_leakage.models.layers import Layers, parameter_shapes
from dp_leakage.privacy.accounting.case import UNAMPLIFIED
from dp_leakage.privacy.mechanism import Mechanism
from dp_leakage.privacy.protection import Protection
from dp_leakage.privacy.training import Training
from dp_leakage.provenance.files import write_table
from dp_leakage.steps import Json, log, provenance
from dp_leakage.steps._data import read_dataset
from dp_leakage.steps._models import architecture_of, device_of, tuned_training
from dp_leakage.steps._noise import private_training
from dp_leakage.steps.train import group_count, groups_of, in_records, units_of
from dp_leakage.training.checkpoint import Checkpoint, checkpoint_beside, forget_beside
from dp_leakage.training.planted import BUGS
from dp_leakage.training.settings import TrainingSettings
from dp_leakage.training.trainer import train
from dp_leakage.training.watch import WhiteBoxObserver

# Settings of the training that makes a worst-case start.
START: Json = {"optimizer": "adam", "learning_rate": 0.01, "batch_size": 50}


def main(
    settings: Json, data: Path, scores: Path, device: str, checkpoint_seconds: float, tuned: Path | None = None
) -> None:
    """Read ``data.npz`` and the best learning rate; write score and inclusion of every canary in every model."""
    dataset = read_dataset(data, settings["data"])
    frames, private = [], None
    training, _ = tuned_training(settings, tuned)
    for name, given in settings["designs"].items():
        design = AuditDesign(**given)
        started = time.perf_counter()
        resume = checkpoint_beside(scores, identity(settings), checkpoint_seconds, name)
        frame, private = _scored(name, design, settings, training, dataset, device_of(device), resume)
        frames.append(frame.assign(design=name))
        log.info("audit %s: %d models in %.0f s", name, design.models, time.perf_counter() - started)
    stamp = provenance(settings, training=None if private is None else private.settings)
    write_table(scores, pd.concat(frames, ignore_index=True).to_dict("list"), stamp)
    forget_beside(scores)


def _scored(
    name: str,
    design: AuditDesign,
    settings: Json,
    given: TrainingSettings,
    dataset: Dataset,
    device: str,
    resume: Checkpoint,
) -> tuple[pd.DataFrame, Training | None]:
    """Train one design's models; return repeat, place, held (inclusion), score; and the claimed training."""
    seed = derived_seed(settings["seed"], name)
    seeds = [derived_seed(seed, model) for model in range(design.models)]
    replaced = design.relation == "replace_one"
    placed = place(dataset, design.canary, design.canaries, replaced, derived_seed(seed, "canaries"))
    held = np.random.default_rng(derived_seed(seed, "coins")).random((len(seeds), design.canaries)) < 0.5
    chosen = np.where(held[:, placed.of], placed.held, placed.other)
    subsets = torch.from_numpy(np.concatenate([np.tile(placed.fixed, (len(seeds), 1)), chosen], axis=1))
    x, y = torch.from_numpy(placed.x), torch.from_numpy(placed.y)
    architecture = architecture_of(settings, tuple(x.shape[1:]), dataset.n_classes)
    units = units_of(placed.person, subsets[0].numpy())
    protection = Protection.read(settings["mechanism"])
    step = None if protection is None else protection.step
    private = private_training(protection, architecture, given.epochs, given.batch_size, len(units))
    claimed = None if private is None else private.mechanism
    training = in_records(given, claimed, units)
    done = claimed
    if design.bug is not None:
        assert claimed is not None  # a planted mistake needs a mechanism
        done = BUGS[design.bug](claimed, training.batch_size)
    options: dict[str, Any] = {}
    if design.start == "trained":
        options["initial"] = _start(settings, architecture, dataset, x.shape[1:], design.start_epochs, seed, device)
    groups = _groups(step, settings["seed"], placed)
    rate = given.batch_size / len(units)
    watch = _watch(design, placed, architecture, claimed, rate, replaced, groups, seed)
    if watch is not None:
        options["watch"] = watch
    ensemble, _ = train(
        architecture,
        x,
        y,
        subsets,
        seeds,
        training,
        done,
        groups=groups,
        group_count=group_count(step, y, groups),
        device=device,
        checkpoint=resume,
        on_epoch=lambda epoch: log.info("audit %s: epoch %d of %d", name, epoch, training.epochs),
        **options,
    )
    score = (
        watch.scores.numpy()
        if watch is not None and design.score == "white_box"
        else _asked(design.score, ensemble, placed)
    )
    frame = {
        "repeat": np.repeat(np.arange(len(seeds)), held.shape[1]),
        "place": np.tile(np.arange(held.shape[1]), len(seeds)),
        "held": held.ravel(),
        "score": score.ravel(),
    }
    return pd.DataFrame(frame), private


def _watch(
    design: AuditDesign,
    placed: Canaries,
    architecture: Layers,
    claimed: Mechanism | None,
    rate: float,
    replaced: bool,
    groups: torch.Tensor | None,
    seed: int,
) -> WhiteBoxObserver | None:
    """Return the `WhiteBoxObserver` of this design; None for canaries that are ordinary records without an observer."""
    scored = design.score == "white_box"
    if not scored and replaced:
        return None
    along = None
    if design.canary == "gradient":
        size = sum(int(np.prod(shape)) for shape in parameter_shapes(architecture).values())
        rng = np.random.default_rng(derived_seed(seed, "along"))
        along = torch.from_numpy(rng.choice(size, len(placed.held), replace=size < len(placed.held)))
    fixed, held, other, of = map(torch.from_numpy, (placed.fixed, placed.held, placed.other, placed.of))
    units = None
    if groups is not None:
        company = [fixed[groups[fixed] == groups[held[of == place][0]]] for place in range(design.canaries)]
        units = _with(company, held, of), _with(company, other, of)
    hidden = claimed is not None and claimed.sampler not in UNAMPLIFIED
    return WhiteBoxObserver(
        placed.first,
        held,
        other,
        along,
        replaced=replaced,
        of=of,
        units=units,
        claimed=claimed,
        rate=min(1.0, claimed.turns * rate) if claimed is not None and hidden else 1.0,
        scored=scored,
    )


def _with(company: list[torch.Tensor], rows: torch.Tensor, of: torch.Tensor) -> list[torch.Tensor]:
    """Return for each canary the other rows of its unit and its own row of ``rows``."""
    return [torch.cat([others, rows[of == place]]) for place, others in enumerate(company)]


def _start(
    settings: Json, architecture: Layers, dataset: Dataset, shape: torch.Size, epochs: int, seed: int, device: str
) -> dict[str, torch.Tensor]:
    """Train parameters without privacy on the non-members. Their gradients become small, so a canary stands out."""
    rows = torch.from_numpy(dataset.roles["target_nonmembers"])
    x = torch.from_numpy(dataset.x)
    x = x if x.shape[1:] == shape else torch.nn.functional.pad(x, (0, shape[0] - x.shape[1]))
    plain = TrainingSettings(**START, epochs=epochs, evaluate_every=epochs)
    seeds = [derived_seed(seed, "start")]
    models, _ = train(architecture, x, torch.from_numpy(dataset.y), rows[None], seeds, plain, None, device=device)
    return {name: value[0] for name, value in models.parameters.items()}


def _groups(step: Mechanism | None, seed: int, placed: Canaries) -> torch.Tensor | None:
    """Return the person or the (sub)class of every record. A pair has one group, whether the canary is included or
    not.
    """
    rows = torch.from_numpy(np.concatenate([placed.fixed, placed.held]))
    x, y = torch.from_numpy(placed.x), torch.from_numpy(placed.y)
    groups = groups_of(step, x, y, rows, seed, placed.person)
    if groups is not None:
        groups = groups.clone()  # these may be the labels themselves
        groups[placed.other] = groups[placed.held]
    return groups


def _asked(score: str, ensemble: Models, placed: Canaries) -> np.ndarray:
    """Return (K, m): the difference of the trained models' mean fit to a canary's included and other rows."""
    found = np.zeros((ensemble.size, len(placed.held)))
    for rows, sign in ((placed.held, 1.0), (placed.other, -1.0)):
        if rows[0] < placed.first:
            x, y = placed.x[rows], placed.y[rows]
            if score == "loss":
                found -= sign * losses(margins(ensemble, x, y))
                continue
            asked = [altered(x, *how) for how in QUERIES] if x.ndim == 4 else [x]
            found += sign * np.mean([margins(ensemble, one, y) for one in asked], axis=0)
    if placed.person is None:
        return found
    return np.stack([found[:, placed.of == place].mean(axis=1) for place in range(placed.of.max() + 1)], axis=1)
