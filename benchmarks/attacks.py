"""Every membership attack on the same models of the bundled digits: prints the table of docs/results/attacks.md.

    python benchmarks/attacks.py mlp
    python benchmarks/attacks.py softmax_regression

Eight undefended targets by coins, and 2, 4 or 16 references, of which each record is in half. Below, what is found of
the same targets behind defenses that only hide, by attacks that do not know it and by the one that does.
"""

import sys
import time
from dataclasses import replace
from importlib import import_module
from pathlib import Path

import numpy as np
import pandas as pd
import torch

from dp_leakage.attacks import ATTACKS
from dp_leakage.attacks.queries import ask, ask_probabilities
from dp_leakage.attacks.signals import Signals, score_columns
from dp_leakage.data import load
from dp_leakage.data.dataset import Dataset
from dp_leakage.data.splits import dealt, heads
from dp_leakage.metrics import measure_membership
from dp_leakage.models.architectures import build
from dp_leakage.models.ensemble import Ensemble
from dp_leakage.training.settings import TrainingSettings
from dp_leakage.training.trainer import train

POOL, COMPONENTS, TARGETS, REFERENCES = 800, 30, 8, (2, 4, 16)
HIDDEN = {
    "top shown as .9": "posterior_masked",
    "temperature 4": "posterior_rescaled",
    "two digits": "posterior_rounded",
    "class alone": "posterior_label",
}  # defense → the attack that knows it
LAYERS = {"mlp": {"hidden": [64, 64]}, "softmax_regression": {}}


def main(name: str) -> None:
    """A line per attack and number of references; then what is found where a defense only hides."""
    data = digits()
    models = trained(name, data, heads(POOL, TARGETS, 1), 100)
    target, head = asked(models, data), "AUC | TPR at 1 % | at .1 % | seconds |"
    print(f"| attack | references | {head}\n| --- | ---: | ---: | ---: | ---: | ---: |")
    for attack, entry in ATTACKS.items():
        if entry.family == "membership" and entry.needs is None and entry.reads != "losses":
            reference = models if entry.reads == "models" else None
            line(attack, "7 others" if reference else "0", target, reference, data)
    for count in REFERENCES:
        inside = np.zeros((count, POOL), bool)
        inside[np.arange(count)[:, None], dealt(POOL, POOL // 2, count, 2)] = True
        reference = asked(trained(name, data, inside, 200), data)
        for attack, entry in ATTACKS.items():
            if entry.needs == "reference" and entry.aware:
                line(attack, str(count), target, reference, data)
    print(f"\n| defense | attack | {head}\n| --- | --- | ---: | ---: | ---: | ---: |")
    for defense, adaptive in HIDDEN.items():
        behind = hidden(target, defense)
        for attack in ("lira_online", "rmia_online", "posterior", adaptive):
            line(attack, defense, behind, reference, data)


def hidden(said: Signals, defense: str) -> Signals:
    """The same models behind a defense that only hides."""
    assert said.probability is not None
    probability = said.probability.astype(np.float64)
    top = np.arange(probability.shape[2]) == probability.argmax(axis=2)[..., None]
    if defense == "top shown as .9":
        rest = np.where(top, 0.0, probability)
        shown = np.where(top, 0.9, 0.1 * rest / np.maximum(rest.sum(axis=2, keepdims=True), 1e-300))
    elif defense == "temperature 4":
        shown = probability**0.25 / (probability**0.25).sum(axis=2, keepdims=True)
    else:
        shown = probability.round(2) if defense == "two digits" else top.astype(float)
    own = np.take_along_axis(shown, said.y[None, :, None], axis=2)[..., 0]
    margin = np.log(np.maximum(own, 1e-9)) - np.log(np.maximum(1 - own, 1e-9))
    return replace(said, probability=shown.astype(np.float32), margin=margin[None])


def line(attack: str, second: str, target: Signals, reference: Signals | Ensemble | None, data: Dataset) -> None:
    """Prints what one attack finds."""
    first, then = (second, f"`{attack}`") if second in HIDDEN else (f"`{attack}`", second)
    print(f"| {first} | {then} | {' | '.join(measured(attack, target, reference, data))} |", flush=True)


def measured(
    attack: str, target: Signals, reference: Signals | Ensemble | None, data: Dataset, settings: dict | None = None
) -> list[str]:
    """What one attack finds, with 95 % intervals, and the processor's seconds for a target."""
    entry = ATTACKS[attack]
    chosen, module, started = entry.settings | (settings or {}), import_module(entry.module), time.process_time()
    if entry.reads == "models":
        frame = module.score(reference, data, None, chosen, 0)
    else:
        known = module.fit(reference, chosen, 0) if entry.learns else reference
        frame = pd.DataFrame(score_columns(target.asked, module.score(target, known, chosen, 0)._asdict()))
    return [*rates(frame, attack), f"{(time.process_time() - started) / target.size:.3f}"]


def rates(frame: pd.DataFrame, attack: str) -> list[str]:
    """AUC, and TPR at 1 % and .1 %, with 95 % intervals, of the scores of all targets."""
    rows = pd.DataFrame(measure_membership(frame, attack))
    rows, shown = rows[rows["repeat"] == "all"], []
    for metric, fpr in (("membership_auc", None), ("reached_tpr", 0.01), ("reached_tpr", 0.001)):
        found = rows[(rows["metric"] == metric) & (fpr is None or rows["fpr"] == fpr)]
        value, low, high = found.iloc[0][["value", "low", "high"]]
        shown.append(f"{value:.3f} [{low:.3f}, {high:.3f}]".replace("0.", "."))
    return shown


def digits() -> Dataset:
    """The digits' first principal components, a pool that coins decide about, and new records."""
    raw = load({"source": "digits"}, Path("data"))
    x = raw.x.reshape(len(raw.x), -1).astype(np.float64)
    x -= x.mean(axis=0)
    x = x @ np.linalg.svd(x, full_matrices=False)[2][:COMPONENTS].T
    x /= np.linalg.norm(x, axis=1, keepdims=True)
    order = np.random.default_rng(0).permutation(len(x))
    roles = {"pool": np.arange(POOL), "target_nonmembers": np.arange(POOL, len(x))}
    return Dataset(x[order].astype(np.float32), raw.y[order], roles, np.array([], dtype=np.int64))


def trained(name: str, data: Dataset, inside: np.ndarray, seed: int) -> Ensemble:
    """Models that train as those of the quickstart, each on its records of the pool, bool (K, POOL)."""
    layers = build(name, data.x.shape[1:], data.n_classes, **LAYERS[name])
    settings = TrainingSettings(optimizer="adam", learning_rate=0.01, epochs=60, batch_size=50, evaluate_every=60)
    subsets = torch.arange(POOL).expand(len(inside), -1)
    x, y, seeds = torch.from_numpy(data.x), torch.from_numpy(data.y), range(seed, seed + len(inside))
    return train(layers, x, y, subsets, seeds, settings, held=torch.from_numpy(inside))[0]


def asked(models: Ensemble, data: Dataset) -> Signals:
    """All that the models say about the records."""
    roles = list(data.roles)
    return replace(ask(models, data), probability=ask_probabilities(models, data, roles)[1], x=data.x)


if __name__ == "__main__":
    torch.set_num_threads(1)
    main(*sys.argv[1:])
