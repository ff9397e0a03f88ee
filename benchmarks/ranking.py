"""Every membership attack on four data sets, undefended and at ε = 8: prints docs/results/ranking.md.

    make ranking                            # CIFAR-10 and CIFAR-100 lie in data/, as `snakemake` finds them
    python benchmarks/ranking.py data digits breast_cancer    # of some data sets alone

Targets by coins, and references under the same defense, of which each record is in half. Attacks that learn from
shadow models (`shokri`, `shokri_trees`) are not among them: they need models on records of their own.
"""

import sys
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

import numpy as np
import torch
from attacks import asked, measured

from dp_leakage.attacks import ATTACKS
from dp_leakage.data import load
from dp_leakage.data.dataset import Dataset
from dp_leakage.data.splits import dealt, heads
from dp_leakage.models.architectures import build
from dp_leakage.models.ensemble import Ensemble
from dp_leakage.privacy.calibration import calibrated
from dp_leakage.privacy.mechanism import Mechanism
from dp_leakage.training.settings import TrainingSettings
from dp_leakage.training.trainer import train

EPSILON, DELTA = 8.0, 1e-5


class World(NamedTuple):
    """A data set, and how models of it train.

    Attributes:
        title: in words.
        source: name of the data source.
        pool: records that coins decide about; `new` more are new to all models.
        components: principal components of the features, whitened; None for the features as they are.
        architecture: name and settings.
        epochs, batch_size, rate: of Adam.
        private_rate: its learning rate under noise.
        without: attacks that take too long here.
        targets, references: how many models under attack, and of the attacker's own.
    """

    title: str
    source: str
    pool: int
    new: int
    components: int | None
    architecture: dict
    epochs: int
    batch_size: int
    rate: float
    private_rate: float
    without: tuple[str, ...] = ()
    targets: int = 6
    references: int = 16


WORLDS = {
    "digits": World(
        "Digits, MLP 64-64", "digits", 800, 800, 30, {"name": "mlp", "hidden": [64, 64]}, 60, 50, 0.01, 0.01
    ),
    "breast_cancer": World(
        "Breast cancer (a table), MLP 64", "breast_cancer", 400, 169, 30, {"name": "mlp", "hidden": [64]},
        60, 40, 0.01, 0.01,
    ),
    "cifar100": World(
        "CIFAR-100, 50 components, MLP 256", "cifar100", 8000, 2000, 50, {"name": "mlp", "hidden": [256]},
        20, 100, 0.001, 0.003,
    ),
    "cifar10": World(
        "CIFAR-10, small CNN", "cifar10", 1000, 1000, None,
        {"name": "cnn_small", "channels": (16, 32), "dense": 64}, 12, 50, 0.001, 0.002,
        ("label_noise", "boundary", "quantile_regression"), 4, 8,
    ),
}  # fmt: skip
OPENING = f"""# Ranking: every membership attack, undefended and at ε = {EPSILON:g}

Made by `make ranking` (`benchmarks/ranking.py`). Targets by coins; references, where an attack has any, under the same
defense, of which each record is in half. `loss_trace` sees the losses of all epochs. The noise is Gaussian, of Poisson
batches, with δ = {DELTA:g} (`pld`, add/remove). 95 % intervals over targets and records; seconds of one core for one
target, beside other work. Sorted by the AUC without a defense. `shokri` and `shokri_trees`, which need shadow models on
records of their own, are not here, and what a defense hides is in [attacks](attacks.md).
"""
HEAD = "| attack | references | AUC | TPR at 1 % | at .1 % | seconds | AUC, ε = 8 | TPR at 1 % | at .1 % |"


def main(folder: str, *names: str) -> None:
    """A table for each data set."""
    print(OPENING, flush=True)
    for name in names or WORLDS:
        world = WORLDS[name]
        data = prepared(world, Path(folder))
        found = [ranked(world, data, private) for private in (False, True)]
        (undefended, accuracy), (private, under_noise) = found
        print(
            f"## {world.title}\n\n{world.targets} targets; {world.pool:,} records, of which coins put half into each "
            f"model; accuracy on {world.new:,} new ones {accuracy:.3f} undefended and {under_noise:.3f} at "
            f"ε = {EPSILON:g}.\n\n{HEAD}"
        )
        print("| --- | ---: |" + " ---: |" * 7)
        for attack in sorted(undefended, key=lambda attack: undefended[attack][0], reverse=True):
            needs = {None: "0", "reference": str(world.references)}[ATTACKS[attack].needs]
            count = f"{world.targets - 1} others" if ATTACKS[attack].reads == "models" else needs
            cells = [f"`{attack}`", count, *undefended[attack], *private[attack][:3]]
            print(f"| {' | '.join(cells)} |", flush=True)
        print(flush=True)


def ranked(world: World, data: Dataset, private: bool) -> tuple[dict[str, list[str]], float]:
    """What each attack finds, and the mean accuracy of the targets on new records."""
    models, losses = trained(world, data, heads(world.pool, world.targets, 1), 100, private)
    inside = np.zeros((world.references, world.pool), bool)
    inside[np.arange(len(inside))[:, None], dealt(world.pool, world.pool // 2, len(inside), 2)] = True
    target, learnt = asked(models, data), asked(trained(world, data, inside, 200, private)[0], data)
    target = replace(target, losses=losses)
    found = {}
    for attack, entry in ATTACKS.items():
        if entry.family != "membership" or entry.needs == "shadow" or not entry.aware or attack in world.without:
            continue
        known = models if entry.reads == "models" else learnt if entry.needs else None
        found[attack] = measured(attack, target, known, data)
    return found, float(target.of("target_nonmembers").correct.mean())


def prepared(world: World, folder: Path) -> Dataset:
    """A pool that coins decide about and new records, on whose components and spread nothing private rests."""
    raw = load({"source": world.source}, folder)
    order = np.random.default_rng(0).permutation(len(raw.x))[: world.pool + world.new]
    x, y = raw.x[order].astype(np.float64), raw.y[order]
    roles = {"pool": np.arange(world.pool), "target_nonmembers": np.arange(world.pool, len(x))}
    if world.components is not None:
        x = x.reshape(len(x), -1)
        new = x[world.pool :]
        mean, (_, scale, directions) = new.mean(axis=0), np.linalg.svd(new - new.mean(axis=0), full_matrices=False)
        kept = slice(min(world.components, int((scale > 1e-9 * scale[0]).sum())))
        x = (x - mean) @ (directions[kept].T / scale[kept] * len(new) ** 0.5)
    return Dataset(x.astype(np.float32), y, roles, np.array([], dtype=np.int64))


def trained(world: World, data: Dataset, inside: np.ndarray, seed: int, private: bool) -> tuple[Ensemble, np.ndarray]:
    """Models that train each on its records of the pool, bool (K, pool), and losses after each epoch (E, K, n)."""
    layers = build(n_classes=data.n_classes, input_shape=data.x.shape[1:], **world.architecture)
    rate = world.private_rate if private else world.rate
    schedule = {"epochs": world.epochs, "batch_size": world.batch_size}
    settings = TrainingSettings(optimizer="adam", learning_rate=rate, **schedule)
    subsets = torch.arange(world.pool).expand(len(inside), -1)
    x, y, seeds = torch.from_numpy(data.x), torch.from_numpy(data.y), range(seed, seed + len(inside))
    mechanism = noise(world, schedule) if private else None
    held, trace = torch.from_numpy(inside), torch.from_numpy(data.traced)
    models, history = train(layers, x, y, subsets, seeds, settings, mechanism, held=held, trace=trace)
    losses = np.array([row["losses"] for row in history], np.float32)
    return models, losses.reshape(world.epochs, len(inside), -1)


def noise(world: World, schedule: dict) -> Mechanism | None:
    """Gaussian noise on Poisson batches, for the budget."""
    step = {"sampler": "poisson", "unit": "example", "bound": "clip", "clip_norm": 1.0, "noise": "gaussian"}
    given = {"block": "whole", "noise_multiplier": None, "kappa": None, "settings": {}, "rdp_sigma": None}
    budget = {"accountant": "pld", "epsilon": EPSILON, "delta": DELTA}
    return calibrated(step | given | budget, dataset_size=world.pool, **schedule)


if __name__ == "__main__":
    torch.set_num_threads(1)
    main(*sys.argv[1:])
