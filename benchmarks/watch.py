"""Measure the time that a watch adds to a training by Opacus.

    python benchmarks/watch.py            # minutes
    python benchmarks/watch.py --rounds 3
    python benchmarks/watch.py --profile "digits, hooks"     # where a watched training spends its time

One process, one thread. Trainings with and without a watch take turns, and medians of processor seconds over the rounds
are compared: so a busy neighbor slows them alike. The data are drawn at random.
"""

import argparse
import cProfile
import pstats
import statistics
import time
import warnings
from collections.abc import Callable
from contextlib import nullcontext
from typing import NamedTuple

import torch
from opacus import PrivacyEngine
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

from dp_leakage.opacus import watch


class Workload(NamedTuple):
    """A training by Opacus.

    Attributes:
        network: makes the model.
        shape: of a record.
        batch: records in a batch, on average.
        steps: of the training.
        mode: of Opacus' gradients.
    """

    network: Callable[[], nn.Module]
    shape: tuple[int, ...]
    batch: int
    steps: int
    mode: str


def mnist_cnn() -> nn.Module:
    """Return the network of Opacus' MNIST example, 26,010 parameters."""
    return nn.Sequential(
        *(nn.Conv2d(1, 16, 8, 2, padding=3), nn.ReLU(), nn.MaxPool2d(2, 1)),
        *(nn.Conv2d(16, 32, 4, 2), nn.ReLU(), nn.MaxPool2d(2, 1)),
        *(nn.Flatten(), nn.Linear(32 * 4 * 4, 32), nn.ReLU(), nn.Linear(32, 10)),
    )


def digits_cnn() -> nn.Module:
    """Return a network for pictures of 8 × 8, 4,000 parameters."""
    return nn.Sequential(
        *(nn.Conv2d(1, 8, 3, padding=1), nn.GroupNorm(2, 8), nn.ReLU(), nn.MaxPool2d(2)),
        *(nn.Conv2d(8, 16, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2)),
        *(nn.Flatten(), nn.Linear(64, 32), nn.ReLU(), nn.Linear(32, 10)),
    )


def wide_mlp() -> nn.Module:
    """Return a network with 0.5 million parameters."""
    return nn.Sequential(nn.Linear(784, 512), nn.ReLU(), nn.Linear(512, 256), nn.ReLU(), nn.Linear(256, 10))


WORKLOADS = {
    "MNIST CNN, hooks": Workload(mnist_cnn, (1, 28, 28), 128, 100, "hooks"),
    "MNIST CNN, ghost": Workload(mnist_cnn, (1, 28, 28), 128, 100, "ghost"),
    "wide MLP, hooks": Workload(wide_mlp, (784,), 64, 60, "hooks"),
    "digits, hooks": Workload(digits_cnn, (1, 8, 8), 64, 200, "hooks"),
    "digits, ghost": Workload(digits_cnn, (1, 8, 8), 64, 200, "ghost"),
}


class Times(NamedTuple):
    """Processor seconds of one training.

    Attributes:
        steps: of the loop over its batches.
        rest: of its watch: what it does before the first step and after the last.
    """

    steps: float
    rest: float


def trained(workload: Workload, watched: bool, seed: int) -> Times:
    """Train once; return its times."""
    torch.manual_seed(seed)
    data = TensorDataset(torch.randn(workload.batch * workload.steps, *workload.shape))
    labels = torch.randint(0, 10, (len(data),))
    data.tensors = (*data.tensors, labels)
    beginning = time.process_time()
    with watch(say=None) if watched else nullcontext() as seen:
        model = workload.network()
        made = PrivacyEngine().make_private(
            module=model,
            optimizer=torch.optim.SGD(model.parameters(), lr=0.05),
            data_loader=DataLoader(data, batch_size=workload.batch),
            criterion=nn.CrossEntropyLoss(),
            noise_multiplier=1.0,
            max_grad_norm=1.0,
            grad_sample_mode=workload.mode,
        )
        private, optimizer, loader = made[0], made[1], made[-1]
        criterion = made[2] if len(made) == 4 else nn.CrossEntropyLoss()
        started = time.process_time()
        for x, y in loader:
            optimizer.zero_grad()
            criterion(private(x), y).backward()
            optimizer.step()
        ended = time.process_time()
    if watched:
        assert seen.verdict == "holds", seen.findings
    return Times(ended - started, started - beginning + time.process_time() - ended)


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=7, help="trainings of each kind (default: %(default)s)")
    parser.add_argument("--profile", choices=WORKLOADS, help="print where a watched training spends its time")
    options = parser.parse_args()
    torch.set_num_threads(1)
    warnings.filterwarnings("ignore")
    if options.profile:
        profile(WORKLOADS[options.profile])
        return
    print("| training | ms a step | watched | more | end, s |\n| --- | --- | --- | --- | --- |")
    for name, workload in WORKLOADS.items():
        trained(workload, True, 0)  # the first training pays for imports
        plain, watched = [], []
        for seed in range(options.rounds):
            for times, is_watched in [(plain, False), (watched, True)][:: 1 if seed % 2 else -1]:
                times.append(trained(workload, is_watched, seed))
        more = [after.steps / before.steps - 1 for before, after in zip(plain, watched, strict=True)]
        low, _, high = statistics.quantiles(more)
        step, slower = (1000 * statistics.median(t.steps for t in times) / workload.steps for times in (plain, watched))
        rest = statistics.median(t.rest for t in watched) - statistics.median(t.rest for t in plain)
        share = f"{100 * statistics.median(more):.1f} % ({100 * low:.1f} to {100 * high:.1f})"
        print(f"| {name} | {step:.2f} | {slower:.2f} | {share} | {rest:.2f} |", flush=True)


def profile(workload: Workload) -> None:
    """Print where a watched training spends its time."""
    trained(workload, True, 0)
    seen = cProfile.Profile(time.process_time)
    seen.runcall(trained, workload, True, 1)
    pstats.Stats(seen).sort_stats("cumulative").print_stats("dp_leakage", 40)


if __name__ == "__main__":
    main()
