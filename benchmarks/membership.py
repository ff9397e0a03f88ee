"""LiRA and RMIA with 16 reference models over 20,000 records: scoring alone, and from training to scores.

    python benchmarks/membership.py              # a minute or two; writes results/bench/membership.json
    python benchmarks/membership.py --quick      # fewer epochs and records
    python benchmarks/membership.py --scoring    # scoring alone
    python benchmarks/membership.py --scoring --rivals FOLDER    # beside other tools; see membership_rivals.py

One process, one thread, whose processor time is taken: what others run beside it counts little. From training to scores
the same models are trained and asked one by one in plain PyTorch in turns with ours. Goals: three times faster from end
to end; four attacks on given signals in 0.5 s and 500 MB.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import time
import tracemalloc
from collections.abc import Callable
from pathlib import Path

import numpy as np

from dp_leakage.training.launcher import ENVIRONMENT

RESULTS = Path("results/bench/membership.json")
REFERENCES, FEATURES, CLASSES = 16, 50, 100
GOAL = 3.0
ARCHITECTURES = {"softmax_regression": {}, "mlp": {"hidden": [64, 64]}}


def main() -> None:
    """Run the benchmark in a process that was started in the trainer's environment."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="fewer epochs and records")
    parser.add_argument("--scoring", action="store_true", help="no training")
    parser.add_argument("--rivals", default="", help="folders with checkouts of other tools, separated as PATH is")
    parser.add_argument("--rounds", type=int, help="of which the middle time is taken")
    arguments = parser.parse_args()
    if any(os.environ.get(name) != value for name, value in ENVIRONMENT.items()):
        sys.exit(
            subprocess.run(
                [sys.executable, *sys.argv], env={**os.environ, **ENVIRONMENT, "TQDM_DISABLE": "1"}, check=False
            ).returncode
        )
    import torch

    torch.set_num_threads(1)
    records, epochs, rounds = (4000, 2, 1) if arguments.quick else (20_000, 3, 3)
    rounds = arguments.rounds or rounds
    rows = [] if arguments.scoring else [end_to_end(name, records, epochs, rounds) for name in ARCHITECTURES]
    rows += scoring(records, rounds, arguments.rivals)
    for row in rows:
        print(json.dumps(row))
    RESULTS.parent.mkdir(parents=True, exist_ok=True)
    RESULTS.write_text(json.dumps(rows, indent=1) + "\n")
    print(f"written: {RESULTS}")


def end_to_end(name: str, records: int, epochs: int, rounds: int) -> dict:
    """Training the references and both attacks' fit and score: as an ensemble, and model by model."""
    import torch

    from dp_leakage.attacks import ATTACKS
    from dp_leakage.attacks.membership import lira, rmia
    from dp_leakage.attacks.queries import ask
    from dp_leakage.data.dataset import Dataset
    from dp_leakage.models.architectures import build
    from dp_leakage.models.ensemble import Ensemble
    from dp_leakage.training.settings import TrainingSettings
    from dp_leakage.training.trainer import train

    rng = np.random.default_rng(0)
    x = rng.normal(size=(records * 3 // 2, FEATURES)).astype(np.float32)
    y = rng.integers(CLASSES, size=len(x))
    half = records // 2
    roles = {
        "target_members": np.arange(half),
        "target_nonmembers": np.arange(half, records),
        "reference_pool": np.arange(records, len(x)),
    }
    data = Dataset(x, y, roles, np.array([], dtype=np.int64))
    tensors = torch.from_numpy(x), torch.from_numpy(y)
    subsets = torch.from_numpy(np.stack([rng.permutation(records)[:half] for _ in range(REFERENCES)]))
    layers = build(name, (FEATURES,), CLASSES, **ARCHITECTURES[name])
    settings = TrainingSettings(
        optimizer="adam", learning_rate=0.01, epochs=epochs, batch_size=200, evaluate_every=epochs
    )
    target, _ = train(layers, *tensors, torch.arange(half)[None], [99], settings)

    def attack(models: Ensemble) -> None:
        of_target, of_references = ask(target, data), ask(models, data)
        for module, key in ((lira, "lira_online"), (rmia, "rmia_online")):
            module.score(of_target, of_references, ATTACKS[key].settings, 0)

    def ours() -> None:
        models, _ = train(layers, *tensors, subsets, range(REFERENCES), settings)
        attack(models)

    def one_by_one() -> None:
        modules = [plain_training(target.module(0), *tensors, rows, epochs) for rows in subsets]
        plain_attacks(target.module(0), modules, tensors, subsets, roles)

    times = in_turns([ours, one_by_one], rounds)
    ratio = times[1] / times[0]
    return {"what": f"end to end, {name}", "ours_s": times[0], "plain_s": times[1], "faster": ratio, "goal": GOAL}


def plain_training(module, x, y, rows, epochs: int):
    """One model as one would write it: `nn.Module`, autograd, `torch.optim.Adam`."""
    import torch

    for layer in module:
        if hasattr(layer, "reset_parameters"):
            layer.reset_parameters()
    module.train().requires_grad_(True)
    optimizer = torch.optim.Adam(module.parameters(), lr=0.01)
    for _ in range(epochs):
        for batch in rows[torch.randperm(len(rows))].split(200):
            optimizer.zero_grad()
            torch.nn.functional.cross_entropy(module(x[batch]), y[batch]).backward()
            optimizer.step()
    return module.eval()


def plain_attacks(target, modules, tensors, subsets, roles) -> None:
    """LiRA and RMIA model by model, RMIA by all pairs in blocks of rows."""
    import torch

    x, y = tensors
    records = len(roles["target_members"]) + len(roles["target_nonmembers"])

    def probability(module):
        with torch.no_grad():
            return torch.softmax(module(x), 1).gather(1, y[:, None])[:, 0].double().clamp(1e-12, 1 - 1e-12).numpy()

    found = np.stack([probability(module) for module in modules])
    of_target = probability(target)
    inside = np.zeros((len(modules), len(x)), dtype=bool)
    for row, rows in zip(inside, subsets.numpy(), strict=True):
        row[rows] = True
    margin, own = np.log(found / (1 - found))[:, :records], np.log(of_target / (1 - of_target))[:records]
    held = inside[:, :records]
    for which in (held, ~held):
        mean = np.where(which, margin, 0).sum(0) / np.maximum(which.sum(0), 1)
        deviation = np.sqrt(np.where(which, (margin - mean) ** 2, 0).sum() / which.sum())
        (own - mean) / deviation
    ratio = of_target / found.mean(0)
    dense(np.log(ratio[:records])[None], np.log(ratio[records:])[None])


def dense(of_x: np.ndarray, of_z: np.ndarray) -> np.ndarray:
    """The share of z that each x dominates, by all N·Z pairs, a thousand rows at a time."""
    blocks = (of_x[0, start : start + 1000, None] - of_z[0][None] >= 0 for start in range(0, of_x.shape[1], 1000))
    return np.concatenate([block.mean(axis=1) for block in blocks])


def signals(records: int) -> tuple:
    """What a target and 16 references say of the records and half as many others; each record is in 8 references."""
    from dp_leakage.attacks.signals import Signals

    rng = np.random.default_rng(0)
    n = records * 3 // 2
    role = np.repeat(
        ["target_members", "target_nonmembers", "reference_pool"], [records // 2, records // 2, n - records]
    )
    y, hard = rng.integers(CLASSES, size=n), rng.normal(2, 3, n)

    def said(inside: np.ndarray) -> Signals:
        margin = hard + 1.5 * inside + rng.normal(size=inside.shape)
        rank = np.where(margin > 0, 1, 2).astype(np.int32)
        return Signals(np.arange(n), y, role, inside, margin[None], rank == 1, rank)

    halves = np.stack([rng.permutation(records) < records // 2 for _ in range(REFERENCES // 2)])
    dealt = np.stack([halves, ~halves], axis=1).reshape(REFERENCES, records)
    outside = np.zeros((REFERENCES, n - records), dtype=bool)
    return said((role == "target_members")[None]), said(np.concatenate([dealt, outside], axis=1))


def scoring(records: int, rounds: int, rivals: str = "") -> list[dict]:
    """Each attack on one target, signals given, and other tools' beside it; in a warm process, with its peak memory."""
    from importlib import import_module

    from membership_rivals import RIVALS, A, add_folders
    from sklearn.metrics import roc_auc_score

    from dp_leakage.attacks import ATTACKS

    target, others = signals(records)
    member = target.asked.trained_on[0]

    def attack(name: str, **settings: object) -> np.ndarray:
        entry = ATTACKS[name]
        return import_module(entry.module).score(target, others, entry.settings | settings, 0).score[0]

    names = ("lira", "lira_online", "rmia", "rmia_online")
    fixed = {"a": A, "temperature": 1.0}
    ways = [("ours", name, "", lambda name=name: attack(name)) for name in names]
    ways += [("ours", f"{name}, a given", "", lambda name=name: attack(name, **fixed)) for name in names[2:]]
    ways += [("ours", "all four", "", lambda: [attack(name) for name in names][-1])]
    rows = []
    if rivals:
        add_folders(rivals)
        for rival in RIVALS:
            try:
                ways.append((rival.tool, rival.attack, rival.how, rival.prepared(target, others)))
            except ImportError as error:
                rows.append({"tool": rival.tool, "attack": rival.attack, "left out": f"cannot be imported: {error}"})
    times = in_turns([way[-1] for way in ways], rounds)
    for (tool, what, how, way), seconds in zip(ways, times, strict=True):
        auc = roc_auc_score(member, way())
        rows.append(
            {"tool": tool, "attack": what, "how": how, "seconds": seconds, "peak_mb": peak(way) / 2**20, "auc": auc}
        )
    return sorted(rows, key=lambda row: (row["attack"], row.get("seconds", np.inf)))


def in_turns(ways: list[Callable[[], object]], rounds: int) -> list[float]:
    """Median processor seconds of each way over rounds in which they take turns, after one round to warm up."""
    seconds: list[list[float]] = [[] for _ in ways]
    for _ in range(rounds + 1):
        for own, way in zip(seconds, ways, strict=True):
            started = time.process_time()
            way()
            own.append(time.process_time() - started)
    return [statistics.median(own[1:]) for own in seconds]


def peak(way: Callable[[], object]) -> int:
    """Most bytes that a call holds at once."""
    tracemalloc.start()
    way()
    most = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return most


if __name__ == "__main__":
    main()
