"""Every membership attack on four data sets, undefended and at ε = 8: prints docs/results/ranking.md.

    make ranking                # CIFAR-10 and CIFAR-100 lie in data/, as `snakemake` finds them
    make ranking SCALE=full     # more records and a wider CNN: hours, where the small scale takes minutes
    python benchmarks/ranking.py data --peers FOLDER:FOLDER digits    # one data set, beside other tools

Targets by coins, and references under the same defense, of which each record is in half. Shadow models learn on halves
of the new records. Other tools are run if their code is in the folders given; `membership_rivals.py` says how.
"""

import argparse
import logging
import time
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from types import MappingProxyType
from typing import NamedTuple

import numpy as np
import pandas as pd
import torch
from attacks import asked, measured, rates
from membership_rivals import RANKED, VERSIONS, Rival, add_folders

from dp_leakage.attacks import ATTACKS
from dp_leakage.attacks.signals import Signals, score_columns
from dp_leakage.common.errors import UserError
from dp_leakage.data import load
from dp_leakage.data.dataset import Dataset
from dp_leakage.data.splits import dealt, heads
from dp_leakage.models.architectures import build
from dp_leakage.models.ensemble import Ensemble
from dp_leakage.privacy.calibration import solved
from dp_leakage.privacy.mechanism import Mechanism
from dp_leakage.privacy.protection import Protection
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
        lighter: settings of attacks that would take too long here with their own.
        targets, references: how many models under attack, and of each kind of the attacker's own.
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
    lighter: Mapping[str, dict] = MappingProxyType({})
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
        {"label_noise": {"copies": 10}, "boundary": {"rounds": 1, "copies": 10}, "quantile_regression": {"rounds": 20}},
        4, 8,
    ),
}  # fmt: skip
# What the small scale changes.
SMALL = {
    "cifar100": {"pool": 2000, "new": 1000},
    "cifar10": {"pool": 500, "new": 500, "architecture": {"name": "cnn_small", "channels": (8, 16), "dense": 64}},
}
OPENING = f"""# Ranking: every membership attack, undefended and at ε = {EPSILON:g}

Made by one command, `{{command}}` (`benchmarks/ranking.py`), at the {{scale}} scale. {{records}}

- Targets are trained with random inclusion. References, if an attack has any, are trained under the same defense, and
  each record is in half of them.
- `loss_trace` sees the losses of all epochs. `shokri` and `shokri_trees` learn from shadow models, as many as there are
  references, each trained on half of the new records under the same defense.
- The noise is Gaussian, of Poisson batches, with δ = {DELTA:g} (`pld`, add/remove).
- 95 % intervals are over targets and records; seconds are of one core for one target, beside other work, without the
  training of references. Rows are sorted by the AUC without a defense. [attacks](attacks.md) has defenses that hide
  outputs.
{{peers}}
"""
HEAD = "| attack | references | AUC | TPR at 1 % | at .1 % | seconds | AUC, ε = 8 | TPR at 1 % | at .1 % |"


def main() -> None:
    """A table for each data set."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", type=Path, help="folder with the data sets' files")
    parser.add_argument("names", nargs="*", help=f"of {', '.join(WORLDS)}; all by default")
    parser.add_argument("--scale", choices=("small", "full"), default="small")
    parser.add_argument("--peers", default="", help="folders with other tools' code, separated as PATH is")
    given = parser.parse_args()
    add_folders(given.peers)
    print(opening(given.scale, given.peers), flush=True)
    for name in given.names or WORLDS:
        world = WORLDS[name]._replace(**SMALL.get(name, {}) if given.scale == "small" else {})
        data = prepared(world, given.data)
        found = [ranked(world, data, private, RANKED if given.peers else ()) for private in (False, True)]
        (undefended, accuracy), (private, under_noise) = found
        print(
            f"## {world.title}\n\n{world.targets} targets; {world.pool:,} records, of which coins put half into each "
            f"model; accuracy on {world.new:,} new ones {accuracy:.3f} undefended and {under_noise:.3f} at "
            f"ε = {EPSILON:g}.{lightened(world)}\n\n{HEAD}"
        )
        print("| --- | ---: |" + " ---: |" * 7)
        for attack in sorted(undefended, key=lambda attack: undefended[attack][0], reverse=True):
            print(f"| {' | '.join([attack, known(attack, world), *undefended[attack], *private[attack][:3]])} |")
        print(flush=True)


def opening(scale: str, peers: str) -> str:
    """What stands above the tables."""
    versions = "; ".join(f"{tool} {version}" for tool, version in VERSIONS.items())
    beside = (
        "- Rows without code marks are other tools: their scoring functions as published, on the same targets and "
        "references, with their own defaults where nothing else is said ([how they were run](attacks.md)): "
        f"{versions}. ART is told who is a member in one half of the records, and judges the other."
        if peers
        else "- Other tools were not run: `PEERS` names no folder with their code."
    )
    command = "make ranking" + (" SCALE=full" if scale == "full" else "") + (" PEERS=FOLDERS" if peers else "")
    full = "; ".join(f"{WORLDS[name].title.split(',')[0]} {WORLDS[name].pool:,}" for name in SMALL)
    records = {
        "small": f"At the full one (`make ranking SCALE=full`) there are more records ({full}) and a wider CNN.",
        "full": "`make ranking` alone takes fewer records and a narrower CNN.",
    }[scale]
    return OPENING.format(command=command, scale=scale, records=records, peers=beside)


def lightened(world: World) -> str:
    """A sentence about attacks with less work than their own settings."""
    said = (f"`{attack}` with {', '.join(f'{k} {v}' for k, v in own.items())}" for attack, own in world.lighter.items())
    return f" To save time, {'; '.join(said)}." if world.lighter else ""


def known(attack: str, world: World) -> str:
    """How many other models an attack has."""
    entry = ATTACKS.get(attack.strip("`"))
    if entry is None:
        return "0, and half of the members" if attack.startswith("ART") else str(world.references)
    if entry.reads == "models":
        return f"{world.targets - 1} others"
    return {None: "0", "reference": f"{world.references}", "shadow": f"{world.references} shadows"}[entry.needs]


def ranked(world: World, data: Dataset, private: bool, peers: tuple[Rival, ...]) -> tuple[dict[str, list[str]], float]:
    """What each attack finds, and the mean accuracy of the targets on new records."""
    models, losses = traced(world, data, heads(world.pool, world.targets, 1), 100, private, data.traced)
    references = trained(world, data, halves(world.pool, world.references, 2), 200, private)
    target, reference = replace(asked(models, data), losses=losses), asked(references, data)
    others = {"reference": reference, "shadow": shadows(world, data, private), None: None}
    found = {}
    for attack, entry in ATTACKS.items():
        if entry.family != "membership" or not entry.aware:
            continue
        own = models if entry.reads == "models" else others[entry.needs]
        try:
            found[f"`{attack}`"] = measured(attack, target, own, data, world.lighter.get(attack))
        except UserError as error:
            logging.warning("%s: %s", attack, error)
            found[f"`{attack}`"] = ["–"] * 4
    for peer in peers:
        found[f"{peer.tool}: {peer.how}"] = of_peer(peer, target, reference)
    return found, float(target.of("target_nonmembers").correct.mean())


def of_peer(peer: Rival, target: Signals, reference: Signals) -> list[str]:
    """What another tool's attack finds of each target, as `measured` says it."""
    scores, seconds = [], 0.0
    for model in range(target.size):
        run, started = peer.prepared(target.models(np.array([model])), reference), time.process_time()
        scores.append(run())
        seconds += time.process_time() - started
    score = np.stack(scores)
    flagged = score > np.median(score, axis=1, keepdims=True)  # no tool's own test, and no rate here depends on it
    frame = pd.DataFrame(score_columns(target.asked, {"score": score, "flagged": flagged}))
    return [*rates(frame, peer.tool), f"{seconds / target.size:.3f}"]


def halves(pool: int, models: int, seed: int) -> np.ndarray:
    """Bool (models, pool), half of the pool in each model and each record in half of the models."""
    inside = np.zeros((models, pool), bool)
    inside[np.arange(models)[:, None], dealt(pool, pool // 2, models, seed)] = True
    return inside


def shadows(world: World, data: Dataset, private: bool) -> Signals:
    """What models say about the new records, each trained on half of these."""
    new = data.roles["target_nonmembers"]
    roles = {"pool": np.arange(len(new))}
    own = Dataset(data.x[new], data.y[new], roles, np.array([], dtype=np.int64))
    smaller = world._replace(pool=len(new))
    said = asked(trained(smaller, own, halves(len(new), world.references, 3), 300, private), own)
    return replace(said, role=np.full(len(new), "shadow_pool"))


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


def trained(world: World, data: Dataset, inside: np.ndarray, seed: int, private: bool) -> Ensemble:
    """Models that train each on its records of the pool, bool (K, pool)."""
    return traced(world, data, inside, seed, private, None)[0]


def traced(
    world: World, data: Dataset, inside: np.ndarray, seed: int, private: bool, trace: np.ndarray | None
) -> tuple[Ensemble, np.ndarray]:
    """The same, with the losses of the rows ``trace`` after each epoch, float32 (E, K, n), empty without any."""
    layers = build(n_classes=data.n_classes, input_shape=data.x.shape[1:], **world.architecture)
    rate = world.private_rate if private else world.rate
    schedule = {"epochs": world.epochs, "batch_size": world.batch_size}
    every = world.epochs if trace is None else 1
    settings = TrainingSettings(optimizer="adam", learning_rate=rate, evaluate_every=every, **schedule)
    subsets = torch.arange(world.pool).expand(len(inside), -1)
    x, y, seeds = torch.from_numpy(data.x), torch.from_numpy(data.y), range(seed, seed + len(inside))
    mechanism = noise(world, schedule) if private else None
    held, rows = torch.from_numpy(inside), None if trace is None else torch.from_numpy(trace)
    models, history = train(layers, x, y, subsets, seeds, settings, mechanism, held=held, trace=rows)
    if rows is None:
        return models, np.empty((0, len(inside), 0), np.float32)
    return models, torch.stack([row["losses"] for row in history]).numpy().reshape(world.epochs, len(inside), -1)


def noise(world: World, schedule: dict) -> Mechanism:
    """Gaussian noise on Poisson batches, for the budget."""
    protection = Protection(Mechanism("poisson"), "pld", epsilon=EPSILON, delta=DELTA)
    training = solved(protection, dataset_size=world.pool, **schedule)
    assert training is not None
    return training.mechanism


if __name__ == "__main__":
    torch.set_num_threads(1)
    main()
