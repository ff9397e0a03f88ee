"""Searches for an ε below what an attack shows, over random trainings: prints a table and whatever it found.

Each ε is the number that the command ``dp-leakage epsilon`` prints. Against it stands the δ that one attacker reaches
at this ε: with balls in bins, who looks at the sum of all steps alone; otherwise, who holds the likelihood ratio of one
pair of gradients. That δ is computed without the package: the losses are tilted to where ε lies before they are
transformed, so that rounding is relative to δ, however small.

    python benchmarks/proven_epsilon.py 10000 --minutes 40 --rows rows.csv    # of processor time
    python benchmarks/proven_epsilon.py 210 --seed 1 --corners    # two of three values at an end of their range
"""

import argparse
import io
import time
from collections.abc import Callable
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import replace
from math import inf
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pandas as pd
from scipy import fft
from scipy.optimize import brentq
from scipy.special import log_ndtr, logsumexp

from dp_leakage.privacy.accounting import Case
from dp_leakage.privacy.command import main
from dp_leakage.privacy.mechanism import Mechanism
from dp_leakage.privacy.training import Training

SLACK = 1e-3  # relative, of the δ that is shown: the grid's error
NODES, POINTS, REACH = 60_000, 20_000, 14.0  # of one step; of a standard deviation of all; deviations in all, each way
VANISHED = 1e-30
KINDS = ("bins replace", "bins presence", "wor", "poisson", "poisson replace", "vmf", "vmf sampled")

Losses = tuple[np.ndarray, np.ndarray]  # of one step, float64 (n,): losses, and the logarithms of their masses


class Setting(NamedTuple):
    """A question to an accountant, and which δ an attacker reaches at an ε."""

    kind: str
    case: Case
    shown: Callable[[float], float]


# ---------------------------------------------------------------------- what an attacker reaches
def of_gaussian(mu: float, epsilon: float) -> float:
    """δ between N(μ, 1) and N(0, 1) (Balle & Wang 2018, theorem 8)."""
    here, there = log_ndtr(mu / 2 - epsilon / mu), epsilon + log_ndtr(-mu / 2 - epsilon / mu)
    return float(np.exp(here) * -np.expm1(min(there - here, 0.0)))


def of_steps(one: Losses, steps: int, epsilon: float) -> float:
    """δ of so many independent losses. Each is split between two points of a grid, which keeps their mean."""
    losses, log_mass = one
    kept = log_mass > -np.inf
    losses, log_mass = losses[kept], log_mass[kept]

    def tilted(order: float) -> np.ndarray:
        return np.exp(log_mass + order * losses - logsumexp(log_mass + order * losses))

    def too_low(order: float) -> float:
        return steps * float(tilted(order) @ losses) - epsilon

    if steps * losses.max() <= epsilon:
        return 0.0
    order, high = 0.0, 1.0
    if too_low(0.0) < 0:
        while too_low(high) < 0 and high < 1e6:
            high *= 4
        order = brentq(too_low, 0.0, high, rtol=1e-6) if high < 1e6 else high
    log_moment = float(logsumexp(log_mass + order * losses))
    mass = tilted(order)
    losses, mass = losses[mass > VANISHED], mass[mass > VANISHED]
    mean = float(mass @ losses)
    deviation = float(np.sqrt(steps * (mass @ (losses - mean) ** 2)))
    spacing = max(deviation / POINTS, float(np.ptp(losses)) / 2**22)
    start = losses.min()
    at = (losses - start) / spacing
    whole = np.floor(at).astype(int)
    grid = np.bincount(whole, mass * (1 - at + whole), whole.max() + 2)
    grid[1:] += np.bincount(whole, mass * (at - whole), whole.max() + 1)
    size = fft.next_fast_len(max(int(2 * REACH * POINTS), len(grid)), real=True)
    total = fft.irfft(fft.rfft(grid, size) ** steps, size)
    first = round((steps * (mean - start) - REACH * deviation) / spacing)  # the place of all that comes first
    place = first + np.arange(size)
    loss = steps * start + spacing * place
    above = loss > epsilon
    weight = np.exp(-order * (loss[above] - epsilon)) * -np.expm1(epsilon - loss[above])
    sum_above = float(total[place[above] % size] @ weight)
    return float(np.exp(steps * log_moment - order * epsilon) * max(sum_above, 0.0))


def normals(first: tuple[float, float], second: tuple[float, float]) -> list[Losses]:
    """The losses between two mixtures (weight of N(0, 1), place of the other normal), both ways."""
    far = max(abs(first[1]), abs(second[1]))
    x = np.linspace(-25 - 2 * far, 25 + 2 * far, NODES)

    def log_density(weight: float, place: float) -> np.ndarray:
        with np.errstate(divide="ignore"):
            return np.logaddexp(np.log(weight) - x**2 / 2, np.log1p(-weight) - (x - place) ** 2 / 2)

    p, q = (log_density(*one) - np.log(np.sqrt(2 * np.pi) / (x[1] - x[0])) for one in (first, second))
    return [(p - q, p), (q - p, q)]


def directions(dimension: int, kappa: float, rate: float) -> list[Losses]:
    """The losses between (1−q) Q + q P and Q, both ways, for directional draws P, Q around opposite vectors."""
    angle = np.linspace(-np.pi / 2, np.pi / 2, NODES)[1:-1]
    with np.errstate(divide="ignore"):
        p = kappa * np.sin(angle) + (dimension - 2) * np.log(np.cos(angle))
        p = p - logsumexp(p)
        q = p[::-1]
        p = np.logaddexp(np.log(rate) + p, np.log1p(-rate) + q)
    return [(p - q, p), (q - p, q)]


# ---------------------------------------------------------------------- random trainings
class Corners(NamedTuple):
    """A generator whose draws lie at an end of their range two times of three."""

    rng: np.random.Generator

    def uniform(self, low: float, high: float) -> float:
        return (low, high - 1e-12 * (high - low), self.rng.uniform(low, high))[self.rng.integers(3)]

    def integers(self, low: int, high: int | None = None) -> int:
        first, end = (0, low) if high is None else (low, high)
        return (first, end - 1, int(self.rng.integers(first, end)))[self.rng.integers(3)]


def drawn(kind: str, rng: np.random.Generator | Corners) -> Setting:
    """A random training of a kind whose noise puts ε mostly between .1 and 150."""
    epochs = int(np.exp(rng.uniform(0, np.log(2000))))
    t = int(np.exp(rng.uniform(0, np.log(200 if kind.startswith("bins") else 2000))))
    batch = int(np.exp(rng.uniform(0, np.log(300))))
    n = max(batch * t - int(rng.integers(batch)), batch)
    delta, mu = float(10 ** rng.uniform(-12.5, -2)), float(np.exp(rng.uniform(np.log(0.05), np.log(14))))
    run = {"epochs": epochs, "batch_size": batch, "dataset_size": n}
    if kind.startswith("vmf"):
        return directional(kind, run, delta, mu, rng)
    apart = 2 if kind in ("bins replace", "wor", "poisson replace") else 1
    rate = Training(Mechanism("poisson"), **run).rate
    uses = epochs * t
    by_sum = apart * np.sqrt(epochs / t) if kind.startswith("bins") else apart * rate * np.sqrt(uses)
    sigma = float(max(by_sum / mu, 0.3))
    sampler = {"b": "balls_in_bins", "w": "wor", "p": "poisson"}[kind[0]]
    training = Training(Mechanism(sampler, noise_multiplier=sigma), **run)
    case = Case(training, "pld", delta, "replace_one" if apart == 2 else "add_remove")
    if sampler == "balls_in_bins":
        steps = training.steps_per_epoch
        return Setting(kind, case, lambda epsilon: of_gaussian(apart * np.sqrt(epochs / steps) / sigma, epsilon))
    # Without replacement, the other record of a batch may have the gradient of one of the two.
    other = (1 - rate, -1 / sigma) if kind == "poisson replace" else (1.0, 0.0)
    pairs = normals((1 - rate, (2 if kind == "wor" else 1) / sigma), other)
    return Setting(kind, case, lambda epsilon: max(of_steps(one, training.steps, epsilon) for one in pairs))


def directional(kind: str, run: dict, delta: float, mu: float, rng: np.random.Generator | Corners) -> Setting:
    """Directional noise: in shuffled batches and any number of equal blocks, or around the sum of Poisson batches."""
    dimension = int(np.exp(rng.uniform(np.log(2), np.log(3000))))
    sampled = kind == "vmf sampled"
    blocks = 1 if sampled else int(rng.integers(1, 6))
    sampler, block = ("poisson", "sum") if sampled else ("shuffle", "layer")
    step = Mechanism(sampler, bound="normalize", noise="vmf", block=block)
    training = Training(step, **run, blocks=(dimension,) * blocks)
    kappa = float(min(mu * np.sqrt(dimension / blocks / training.uses) / training.rate**sampled / 2, 60.0))
    training = replace(training, mechanism=replace(step, kappa=kappa))
    case = Case(training, "vmf_pld", delta, "add_remove" if sampled else "replace_one")
    pairs = directions(dimension, kappa, training.rate if sampled else 1.0)
    uses = training.uses * blocks
    return Setting(kind, case, lambda epsilon: max(of_steps(one, uses, epsilon) for one in pairs))


def printed(case: Case, smallest: bool = False) -> float:
    """ε that ``dp-leakage epsilon`` prints for a training; infinite if it answers with an error.

    ``smallest``: without an accountant, so that it prints the smallest proven one.
    """
    training, step = case.training, case.training.mechanism
    noise = ("--kappa", step.kappa) if case.blocks else ("--noise-multiplier", step.noise_multiplier)
    given = {
        "--epochs": training.epochs,
        "--batch-size": training.batch_size,
        "--dataset-size": training.dataset_size,
        "--delta": case.delta,
        "--sampler": case.sampler,
        "--neighbors": case.relation,
        **({} if smallest else {"--accountant": case.accountant}),
    }
    words = ["epsilon", *map(str, noise), *(str(word) for pair in given.items() for word in pair)]
    words += ["--blocks", ",".join(map(str, case.blocks))] * bool(case.blocks) + ["--summed"] * case.summed
    out = io.StringIO()
    with redirect_stdout(out), redirect_stderr(io.StringIO()):
        failed = main([*words])
    return inf if failed else float(out.getvalue().splitlines()[1].split()[1])


def searched(
    number: int,
    seed: int,
    minutes: float = inf,
    rows: Path | None = None,
    corners: bool = False,
    smallest: bool = False,
) -> pd.DataFrame:
    """One row a setting: its ε, and the δ that is shown there over the δ that was asked for.

    Args:
        number: of settings, whose kinds take turns.
        minutes: of processor time, after which no other setting begins.
        rows: a csv to which each row is added at once.
        corners: whether two of three values lie at an end of their range.
        smallest: whether no accountant is named.
    """
    found, begin = [], time.process_time()
    for index in range(number):
        if time.process_time() - begin > 60 * minutes:
            break
        rng = np.random.default_rng([seed, index])
        setting = drawn(KINDS[index % len(KINDS)], Corners(rng) if corners else rng)
        start = time.process_time()
        epsilon = printed(setting.case, smallest)
        seconds = time.process_time() - start
        share = setting.shown(epsilon) / setting.case.delta if np.isfinite(epsilon) else 0.0
        found.append({"seed": seed, "index": index, "kind": setting.kind, "epochs": setting.case.epochs})
        found[-1] |= {"delta": setting.case.delta, "epsilon": epsilon, "share": share, "seconds": seconds}
        if share > 1 + SLACK:
            print(f"setting {index}: ε {epsilon:.6g} is too small, δ shown / δ {share:.6g}, {setting.case}", flush=True)
        if rows:
            pd.DataFrame(found[-1:]).to_csv(rows, mode="a", header=not rows.exists(), index=False)
    return pd.DataFrame(found)


def table(found: pd.DataFrame) -> pd.DataFrame:
    """Sum up each kind: how many, how many too small or infinite, the largest and the median share, ε, and seconds."""
    return found.groupby("kind").agg(
        settings=("share", "size"),
        infinite=("epsilon", lambda epsilon: int(np.isinf(epsilon).sum())),
        too_small=("share", lambda share: int((share > 1 + SLACK).sum())),
        largest_share=("share", "max"),
        median_share=("share", "median"),
        median_epsilon=("epsilon", "median"),
        largest_epsilon=("epsilon", "max"),
        seconds=("seconds", "mean"),
    )


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("number", type=int)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--minutes", type=float, default=inf, help="of processor time")
    parser.add_argument("--rows", type=Path, help="a csv to which each setting is added")
    parser.add_argument("--corners", action="store_true", help="two of three values at an end of their range")
    parser.add_argument("--smallest", action="store_true", help="name no accountant")
    options = parser.parse_args()
    found = searched(**vars(options))
    print(table(found).to_string())
