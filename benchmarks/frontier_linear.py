"""The linear rows of docs/results/frontier by another program: prints a line for each way to train and each training.

    python benchmarks/frontier_linear.py data features cifar10 5    # folders of data and features, data set, trainings

Tramèr & Boneh's linear models on scattering features (2021), in NumPy: nothing of the package but its images and its
features is used. The ways go from what the study does to what the authors' code does, so that the lines say what each
difference is worth. All trainings of a way see the same batches; their noise, that of the normalization included,
differs. Features are computed once and kept in their folder.
"""

import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from dp_leakage.data import load
from dp_leakage.data.scattering import MAPS, scattering

CLIP, MOMENTUM, MOMENT_NOISE, LEAST_VARIANCE, MICROBATCH, CHUNK = 0.1, 0.9, 8.0, 1e-5, 256, 1000
SIGNED = 2**0.5  # how much more noise the study adds to means that may lie below 0


@dataclass(frozen=True)
class Way:
    """How to train: ``noise`` is relative to the clipping norm, and ``moment_noise``, of means and of mean squares, to
    the ``bounds``, which are the medians of the private records if they are None.
    """

    noise: float
    epochs: int
    shuffled: bool = False
    bounds: tuple[float, float] | None = None
    moment_noise: tuple[float, float] = (MOMENT_NOISE, MOMENT_NOISE)


@dataclass(frozen=True)
class Setting:
    """A row of the study, as printed by the authors, and the ways to train it.

    ``pixels`` are the means and deviations by which each color is standardized before the features are computed.
    """

    members: int
    batch: int
    rate: float
    pixels: tuple[tuple[float, ...], tuple[float, ...]]
    ways: dict[str, Way]


STUDY = {
    "mnist": Way(3.0246, 37, bounds=(0.3, 0.15)),
    "cifar10": Way(5.641, 51, bounds=(1.0, 1.5), moment_noise=(MOMENT_NOISE * SIGNED, MOMENT_NOISE)),
}
SETTINGS = {
    "mnist": Setting(60_000, 4096, 8.0, ((0.0,), (1.0,)), {
        "as the study": STUDY["mnist"],
        "medians as bounds": replace(STUDY["mnist"], bounds=None),
        "medians, shuffled, the printed noise": Way(3.04, 40, shuffled=True),
        "moments without noise": replace(STUDY["mnist"], bounds=None, moment_noise=(0.0, 0.0)),
    }),
    "cifar10": Setting(50_000, 8192, 4.0, ((0.485, 0.456, 0.406), (0.229, 0.224, 0.225)), {
        "as the study": STUDY["cifar10"],
        "medians as bounds": replace(STUDY["cifar10"], bounds=None),
        "medians, shuffled, the printed noise": Way(5.67, 60, shuffled=True),
        "moments without noise": replace(STUDY["cifar10"], bounds=None, moment_noise=(0.0, 0.0)),
    }),
}  # fmt: skip


def main(data: str, features: str, name: str, trainings: str, *only: str) -> None:
    """A line for each way and training: accuracy on the test records after the last epoch, and of the best epoch."""
    setting, seeds = SETTINGS[name], range(int(trainings))
    x, y = cached(Path(data), Path(features), name)
    n = setting.members
    moments = np.concatenate([_moments(x[at : at + CHUNK]) for at in range(0, n, CHUNK)])
    for number, (title, way) in enumerate(setting.ways.items()):
        if only and str(number) not in only:
            continue
        started = time.process_time()
        fitted = [normalization(moments, way, setting, np.random.default_rng([1, seed])) for seed in seeds]
        shift, stretch = (np.stack(part).astype(np.float32) for part in zip(*fitted, strict=True))
        found = train(x, y, moments, (shift, stretch), way, setting)
        seconds = (time.process_time() - started) / len(seeds)
        for seed, accuracy in zip(seeds, found.T, strict=True):
            last, best = 100 * accuracy[-1], 100 * accuracy.max()
            print(f"{name}\t{title}\t{seed}\t{last:.2f}\t{best:.2f}\t{seconds:.0f} s", flush=True)
        print(f"{name}\t{title}\tmean\t{100 * found[-1].mean():.2f}\t{100 * found.max(axis=0).mean():.2f}", flush=True)


def cached(data: Path, folder: Path, name: str) -> tuple[np.ndarray, np.ndarray]:
    """Raw scattering features, float32 (n, maps, h, w) on disk, members first, and the classes."""
    raw, path = load({"source": name}, data), folder / f"{name}.npy"
    if not path.exists():
        folder.mkdir(parents=True, exist_ok=True)
        n, colors, height, width = raw.x.shape
        made = np.lib.format.open_memmap(path, "w+", np.float32, (n, MAPS * colors, height // 4, width // 4))
        for at in range(0, n, CHUNK):
            made[at : at + CHUNK] = scattering(raw.x[at : at + CHUNK])
    return np.load(path, mmap_mode="r"), raw.y


def _moments(x: np.ndarray) -> np.ndarray:
    """Each record's mean and mean square of each map, float64 (n, 2, maps)."""
    flat = x.reshape(*x.shape[:2], -1).astype(np.float64)
    return np.stack([flat.mean(axis=2), (flat**2).mean(axis=2)], axis=1)


def normalization(
    moments: np.ndarray, way: Way, setting: Setting, rng: np.random.Generator
) -> tuple[np.ndarray, np.ndarray]:
    """Shift and stretch of each raw map, (maps,): noisy moments of clipped records, as in the authors' code."""
    center, deviation = map(np.array, setting.pixels)
    shift, stretch = np.zeros((len(center), MAPS)), np.repeat(deviation, MAPS)
    shift[:, 0] = center  # a constant passes the average alone, which is the first map
    shift = shift.ravel()
    means = (moments[:, 0] - shift) / stretch
    squares = (moments[:, 1] - 2 * shift * moments[:, 0] + shift**2) / stretch**2
    found = []
    for values, bound, noise in zip((means, squares), way.bounds or (None, None), way.moment_noise, strict=True):
        lengths = np.linalg.norm(values, axis=1, keepdims=True)
        bound = np.median(lengths) if bound is None else bound
        clipped = (values / np.maximum(lengths / bound, 1)).mean(axis=0) if noise else values.mean(axis=0)
        spread = noise * bound / len(values)
        found.append(clipped + spread * rng.standard_normal(len(clipped)))
    variance = np.maximum(found[1] - found[0] ** 2, 0)
    print(f"# maps without variance: {(variance == 0).sum()} of {len(variance)}", file=sys.stderr)
    if way.bounds is None:  # the authors drop maps whose variance is lost in the noise
        length = np.where(variance == 0, np.inf, np.sqrt(variance + LEAST_VARIANCE))
    else:  # the study adds a deviation of the noise on mean squares, the last one
        length = np.sqrt(variance + spread)
    return shift + stretch * found[0], stretch * length


def batches(way: Way, setting: Setting, rng: np.random.Generator) -> Iterator[Iterator[np.ndarray]]:
    """The records of each step, by epoch: Poisson samples, or shuffled and without what fills no batch."""
    n, batch = setting.members, setting.batch
    for _ in range(way.epochs):
        if way.shuffled:
            order = rng.permutation(n)
            steps = n // MICROBATCH // (batch // MICROBATCH)
            yield (np.sort(order[step * batch : (step + 1) * batch]) for step in range(steps))
        else:
            yield (np.flatnonzero(rng.random(n) < batch / n) for _ in range(-(-n // batch)))


def train(
    x: np.ndarray,
    y: np.ndarray,
    moments: np.ndarray,
    normal: tuple[np.ndarray, np.ndarray],
    way: Way,
    setting: Setting,
) -> np.ndarray:
    """DP-SGD of softmax regressions on (x − shift)/stretch: accuracy on the test records, (epochs, trainings).

    The normalization is never applied to a batch: it goes into the weights and the gradients, and a record's length
    follows from its moments, so that all trainings share one pass over the raw features.
    """
    members, n = setting.members, len(x)
    flat, places = x.reshape(n, -1), int(np.prod(x.shape[2:]))
    shift, stretch = (np.repeat(part, places, axis=1)[:, :, None] for part in normal)  # (trainings, features, 1)
    squared = np.stack([
        1 + places * ((moments[:, 1] - 2 * a * moments[:, 0] + a**2) / b**2).sum(axis=1)
        for a, b in zip(*(part.astype(np.float64) for part in normal), strict=True)
    ])  # fmt: skip
    rng, count = np.random.default_rng([2, 0]), len(shift)
    edge = flat.shape[1] ** -0.5
    weights = rng.uniform(-edge, edge, (count, flat.shape[1], 10)).astype(np.float32)
    biases = rng.uniform(-edge, edge, (count, 1, 10)).astype(np.float32)
    moved = [np.zeros_like(weights), np.zeros_like(biases)]
    found = []

    def logits(rows: np.ndarray, k: int) -> np.ndarray:
        return rows @ (weights[k] / stretch[k]) + biases[k] - (shift[k] / stretch[k]).T @ weights[k]

    for epoch in batches(way, setting, rng):
        for chosen in epoch:
            rows = flat[chosen]
            for k in range(count):
                error = _softmax(logits(rows, k))
                error[np.arange(len(rows)), y[chosen]] -= 1
                lengths = np.linalg.norm(error, axis=1) * np.sqrt(squared[k, chosen])
                error *= np.minimum(1, CLIP / np.maximum(lengths, 1e-12))[:, None].astype(np.float32)
                total = error.sum(axis=0, keepdims=True)
                gradients = (rows.T @ error - shift[k] * total) / stretch[k], total
                for parameters, velocity, gradient in zip((weights, biases), moved, gradients, strict=True):
                    noise = CLIP * way.noise * rng.standard_normal(gradient.shape, dtype=np.float32)
                    velocity[k] = MOMENTUM * velocity[k] + (gradient + noise) / setting.batch
                    parameters[k] -= setting.rate * velocity[k]
        hits = np.zeros((count, n - members), bool)
        for at in range(members, n, CHUNK):
            rows = flat[at : at + CHUNK]
            for k in range(count):
                hits[k, at - members :][:CHUNK] = logits(rows, k).argmax(axis=1) == y[at : at + CHUNK]
        found.append(hits.mean(axis=1))
    return np.array(found)


def _softmax(logits: np.ndarray) -> np.ndarray:
    shares = np.exp(logits - logits.max(axis=1, keepdims=True))
    return shares / shares.sum(axis=1, keepdims=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
