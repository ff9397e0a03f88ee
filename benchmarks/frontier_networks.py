"""Networks of docs/results/frontier by Opacus' own engine: prints a line for each training.

    python benchmarks/frontier_networks.py results/frontier first_tutorial_1.2 0 1 2    # a run's folder, row, seeds

Data sets are those that a run of the study has prepared, and noise multipliers those of its trainings. PyTorch's
modules are trained by ``opacus.PrivacyEngine``, on Poisson batches unless a row says otherwise; nothing of the package
is used but its scattering.
"""

import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import torch
from opacus import PrivacyEngine
from torch import nn
from torch.nn.functional import cross_entropy, group_norm
from torch.utils.data import DataLoader, TensorDataset

from dp_leakage.data.scattering import scattering


def images(activation: type[nn.Module]) -> nn.Sequential:
    """The network of Opacus' example and of TensorFlow Privacy's tutorial."""
    return nn.Sequential(
        *(nn.Conv2d(1, 16, 8, 2, padding=3), activation(), nn.MaxPool2d(2, 1)),
        *(nn.Conv2d(16, 32, 4, 2), activation(), nn.MaxPool2d(2, 1)),
        *(nn.Flatten(), nn.Linear(512, 32), activation(), nn.Linear(32, 10)),
    )


def features() -> nn.Sequential:
    """Tramèr & Boneh's network on scattering features of gray images."""
    return nn.Sequential(
        *(nn.Conv2d(81, 16, 3, 2, padding=1), nn.Tanh(), nn.Conv2d(16, 32, 3, 1, padding=1), nn.Tanh()),
        *(nn.Flatten(), nn.Linear(512, 32), nn.Tanh(), nn.Linear(32, 10)),
    )


def he(weight: torch.Tensor) -> None:
    """Keras' ``he_normal``: a normal distribution cut off at two deviations, of variance 2/fan_in after the cut."""
    deviation = (2 / weight[0].numel()) ** 0.5 / 0.87962566103423978
    nn.init.trunc_normal_(weight, std=deviation, a=-2 * deviation, b=2 * deviation)


@dataclass(frozen=True)
class Row:
    """A row of the study; ``start`` fills weights, with biases of 0, and None leaves PyTorch's.

    With ``groups``, images become scattering features whose channels are normalized in so many groups. With
    ``shuffled``, batches are as in the authors' code: of ``batch`` records each, without what fills none.
    """

    dataset: str
    network: Callable[[], nn.Sequential]
    noise: float
    epochs: int
    batch: int
    rate: float
    clip: float = 1.0
    momentum: float = 0.0
    start: Callable[[torch.Tensor], object] | None = None
    groups: int | None = None
    shuffled: bool = False


TUTORIAL = "mnist", lambda: images(nn.ReLU)
LINEAR = "mnist", lambda: images(nn.Identity)
EXAMPLE = "mnist_standardized", lambda: images(nn.ReLU)
FASHION = Row("fashion_mnist_scattering", features, 2.1825, 40, 2048, 4.0, clip=0.1, momentum=0.9)
ROWS = {
    "tutorial_1.2": Row(*TUTORIAL, 1.2, 10, 256, 0.32, start=nn.init.xavier_uniform_),
    "tutorial_2.92": Row(*TUTORIAL, 1.12, 60, 256, 0.08, start=nn.init.xavier_uniform_),
    # The tutorial's code whose settings have the printed values: no activations, and weights by he_normal.
    "first_tutorial_1.2": Row(*LINEAR, 1.2, 10, 256, 0.32, start=he),
    "first_tutorial_2.92": Row(*LINEAR, 1.12, 60, 256, 0.08, start=he),
    "opacus_6.86": Row(*EXAMPLE, 0.7, 45, 240, 0.25, clip=1.5),
    # Batches with which the README's first version printed the same accuracies.
    "opacus_6.86_256": Row(*EXAMPLE, 0.7, 45, 256, 0.25, clip=1.5),
    "mnist_features": Row("mnist_scattering", features, 1.402, 25, 1024, 1.0, clip=0.1, momentum=0.9),
    # Without a private normalization, whose cost the authors' σ of this row has no room for.
    "mnist_groups": Row("mnist", features, 1.3575, 25, 1024, 1.0, clip=0.1, momentum=0.9, groups=27),
    "fashion_features": FASHION,
    # The authors' 29 steps an epoch, with the noise that they print for them.
    "fashion_shuffled": replace(FASHION, noise=2.15, shuffled=True),
}


def main(results: str, name: str, *seeds: str) -> None:
    """A line for each training: accuracy on the test records after the last epoch."""
    torch.set_num_threads(1)
    row = ROWS[name]
    with np.load(Path(results) / row.dataset / "data.npz") as data:
        x, y = torch.tensor(data["x"], dtype=torch.float32), torch.tensor(data["y"], dtype=torch.long)
        members, others = torch.tensor(data["target_members"]), torch.tensor(data["target_nonmembers"])
    x = x.reshape(len(x), *(x.shape[1:] if x.ndim == 4 else (1, 28, 28)))
    if row.groups is not None:
        x = torch.cat([group_norm(torch.from_numpy(scattering(some.numpy())), row.groups) for some in x.split(1000)])
    for seed in map(int, seeds):
        started = time.process_time()
        net = trained(row, x, y, members, seed)
        with torch.no_grad():
            hits = torch.cat([net(x[some]).argmax(1) == y[some] for some in others.split(1000)])
        seconds = time.process_time() - started
        print(f"{name}\t{seed}\t{100 * hits.float().mean().item():.2f}\t{seconds:.0f} s", flush=True)


def trained(row: Row, x: torch.Tensor, y: torch.Tensor, members: torch.Tensor, seed: int) -> nn.Module:
    """A network that Opacus trained with DP-SGD."""
    torch.manual_seed(seed)
    net = row.network()
    if row.start is not None:
        for layer in net:
            if isinstance(layer, nn.Conv2d | nn.Linear):
                row.start(layer.weight.data)
                nn.init.zeros_(layer.bias)
    optimizer = torch.optim.SGD(net.parameters(), lr=row.rate, momentum=row.momentum)
    loader = DataLoader(TensorDataset(members), batch_size=row.batch)  # says the batch and the number of records
    net, optimizer, _ = PrivacyEngine().make_private(
        module=net, optimizer=optimizer, data_loader=loader, noise_multiplier=row.noise, max_grad_norm=row.clip
    )
    for chosen in batches(row, members):
        optimizer.zero_grad()
        cross_entropy(net(x[chosen]), y[chosen]).backward()
        optimizer.step()
    return net


def batches(row: Row, members: torch.Tensor) -> Iterator[torch.Tensor]:
    """The records of each step."""
    for _ in range(row.epochs):
        if row.shuffled:
            yield from members[torch.randperm(len(members))].split(row.batch)[: len(members) // row.batch]
        else:
            steps = -(-len(members) // row.batch)
            yield from (members[torch.rand(len(members)) < 1 / steps] for _ in range(steps))


if __name__ == "__main__":
    main(*sys.argv[1:])
