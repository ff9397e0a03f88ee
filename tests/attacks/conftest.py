"""Stand-ins for trained models whose outputs are known, and small real ensembles."""

from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
import pandas as pd
import pytest
import torch

from dp_leakage.attacks.queries import ask, ask_probabilities, asked_records
from dp_leakage.attacks.signals import positions, score_columns
from dp_leakage.data.dataset import Dataset
from dp_leakage.models.architectures import build
from dp_leakage.models.ensemble import Ensemble
from dp_leakage.training.settings import TrainingSettings
from dp_leakage.training.trainer import train


class Known:
    """K models with logits f(k, x) -> (n, C), to plant what an attack should find."""

    def __init__(self, function, size, train_indices=None):
        self.function, self.size = function, size
        self.train_indices = torch.as_tensor(np.zeros((size, 0), int) if train_indices is None else train_indices)

    device = torch.device("cpu")

    def logits(self, x, models=None):
        chosen = range(self.size) if models is None else models
        return torch.stack([torch.as_tensor(self.function(k, x.numpy()), dtype=torch.float32) for k in chosen])


def split(n, rng, **sizes):
    """Roles of the given sizes, disjoint rows of n in random order."""
    ends = np.cumsum(list(sizes.values()))
    return dict(zip(sizes, np.split(rng.permutation(n)[: ends[-1]], ends[:-1]), strict=True))


@pytest.fixture
def known():
    return Known


def signals_of(models, data, queries=1):
    """What attacks get of models: signals, with the probabilities and features of all records."""
    record, _ = asked_records(data)
    signals = replace(ask(models, data, queries), x=data.x[record])
    if hasattr(models, "losses"):
        signals = replace(signals, losses=models.losses[:, :, record])
    if data.n_classes > 1:
        record, probability = ask_probabilities(models, data, list(data.roles))
        signals = replace(signals, probability=probability[:, positions(signals.record, record)])
    return signals


def as_targets(signals):
    """The same, of models that are taken for targets, whatever they were trained on."""
    return replace(signals, trained_on=np.tile(signals.role == "target_members", (signals.size, 1)))


@pytest.fixture(name="as_targets")
def as_targets_fixture():
    return as_targets


@pytest.fixture
def signals():
    return signals_of


def frame_of(attack, models, data, reference, settings, seed=0, queries=1):
    """The score file's frame of a membership attack on models."""
    said = as_targets(signals_of(models, data, queries))
    columns = attack.score(said, reference, settings, seed)._asdict()
    return pd.DataFrame(score_columns(said.asked, columns))


@pytest.fixture(name="frame_of")
def frame_of_fixture():
    return frame_of


@pytest.fixture
def numbered():
    """A data set whose feature 0 is the row number, so that a `Known` model can look its outputs up."""

    def make(n_classes=3, seed=0, **sizes):
        rng = np.random.default_rng(seed)
        n = sum(sizes.values()) + 5
        x = rng.normal(size=(n, 4)).astype(np.float32)
        x[:, 0] = np.arange(n)
        return Dataset(x, rng.integers(n_classes, size=n), split(n, rng, **sizes), np.array([], dtype=np.int64))

    return make


def sharp_inside(data, sizes, seed=0):
    """A function f(k, x): outputs that are sharper for what model k trained on, and which rows those are."""
    rng = np.random.default_rng(seed)
    inside = np.zeros((len(sizes), len(data.x)), dtype=bool)
    for row, chosen in zip(inside, sizes, strict=True):
        row[chosen] = True
    noise = rng.normal(size=(len(sizes), len(data.x)))

    def logits(k, x):
        rows = x[:, 0].astype(int)
        strength = 2 + 1.5 * inside[k, rows] + noise[k, rows]
        return strength[:, None] * np.eye(data.n_classes)[data.y[rows]]

    return logits


@pytest.fixture(name="sharp_inside")
def sharp_inside_fixture():
    return sharp_inside


@pytest.fixture
def planted(known, numbered):
    """Shadow and target models whose outputs differ between members and non-members by 1.5 standard deviations."""
    data = numbered(target_members=500, target_nonmembers=500, shadow_pool=1600)
    pool = data.roles["shadow_pool"]
    subsets = np.stack([pool[:800], pool[400:1200]])
    shadow = known(sharp_inside(data, subsets), 2, subsets)
    target = known(sharp_inside(data, [data.roles["target_members"]] * 2, seed=1), 2)
    return data, shadow, target


def blobs(seed=0):
    """Overlapping classes that a network can only fit by heart."""
    rng = np.random.default_rng(seed)
    y = rng.integers(4, size=1200)
    x = (rng.normal(size=(4, 8))[y] + 1.5 * rng.normal(size=(1200, 8))).astype(np.float32)
    roles = split(1200, rng, target_members=200, target_nonmembers=200, shadow_pool=400, reference_pool=400)
    return Dataset(x, y, roles, np.array([], dtype=np.int64))


@dataclass(frozen=True, kw_only=True)
class Traced(Ensemble):
    """Trained models, with the losses (epochs, models, n) of all records at the evaluated epochs."""

    losses: np.ndarray


class Trained(NamedTuple):
    """Two target models that know their records by heart, and what attackers may train."""

    data: Dataset
    target: Ensemble
    shadow: Ensemble  # on half of the shadow pool each
    reference: Ensemble  # on half of the reference pool each
    reference_with_targets: Ensemble  # on half of the targets' records and of the reference pool each


@pytest.fixture(scope="session")
def trained():
    data, rng = blobs(), np.random.default_rng(1)
    settings = TrainingSettings(epochs=60, batch_size=50, evaluate_every=10)
    layers = build("mlp", (8,), 4, hidden=[64])
    x, y = torch.from_numpy(data.x), torch.from_numpy(data.y)
    pools = [data.roles[name] for name in ("shadow_pool", "reference_pool", "target_members", "target_nonmembers")]

    def fit(subsets, first_seed):
        seeds = range(first_seed, first_seed + len(subsets))
        rows = torch.arange(len(x))
        models, history = train(layers, x, y, torch.from_numpy(np.stack(subsets)), seeds, settings, trace=rows)
        losses = torch.stack([row["losses"] for row in history]).numpy()
        return Traced(**vars(models), losses=losses.reshape(-1, models.size, len(x)))

    def halves(pool, count):
        return [rng.permutation(pool)[: len(pool) // 2] for _ in range(count)]

    return Trained(
        data,
        fit([data.roles["target_members"]] * 2, 0),
        fit(halves(pools[0], 2), 10),
        fit(halves(pools[1], 6), 20),
        fit(halves(np.concatenate(pools[1:]), 6), 30),
    )


@pytest.fixture(scope="session")
def overfitted(trained):
    """A data set, two target models that know it by heart, and two shadow models that know theirs."""
    return trained[:3]
