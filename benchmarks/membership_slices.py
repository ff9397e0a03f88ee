"""What the best of many slices finds of models that leak nothing: a control for Table 3 of Lomurno & Matteucci (2022).

    python benchmarks/membership_slices.py results/lomurno2022/*/cnn/*/signals.npz

TensorFlow Privacy's tool attacks the whole data, each class, and the records that are classified rightly or wrongly,
and reports the largest AUC. Here the loss threshold does so on random samples of as many members as non-members. The
table says, for each file and size of sample, the median of the largest AUC and its 2.5th and 97.5th percentile.
"""

import argparse
from collections.abc import Iterator
from pathlib import Path

import numpy as np
from scipy.stats import mannwhitneyu

SIZES = (500, 1000, 2000)
SAMPLES = 200


def slices(label: np.ndarray, correct: np.ndarray) -> Iterator[np.ndarray]:
    """Which records (n,) each slice holds: all, each class, the rightly and the wrongly classified ones."""
    yield np.ones(len(label), dtype=bool)
    for one in np.unique(label):
        yield label == one
    yield correct
    yield ~correct


def best_auc(margin: np.ndarray, member: np.ndarray, label: np.ndarray, correct: np.ndarray) -> float:
    """The largest AUC of the loss threshold over the slices that hold both kinds of record."""
    found = []
    for chosen in slices(label, correct):
        own, others = margin[chosen & member], margin[chosen & ~member]
        if len(own) and len(others):
            found.append(mannwhitneyu(own, others).statistic / (len(own) * len(others)))
    return max(found)


def over_samples(path: Path, size: int) -> np.ndarray:
    """The largest AUC in each of `SAMPLES` samples of ``size`` members and as many non-members."""
    with np.load(path) as said:
        role, label = said["role"].astype(str), said["y"]
        margin, correct = said["margin"][0, 0], said["correct"][0]
    kinds = [np.flatnonzero(role == name) for name in ("target_members", "target_nonmembers")]
    generator = np.random.default_rng(0)
    found = []
    for _ in range(SAMPLES):
        rows = np.concatenate([generator.choice(kind, size, replace=False) for kind in kinds])
        found.append(best_auc(margin[rows], np.arange(2 * size) < size, label[rows], correct[rows]))
    return np.array(found)


def main() -> None:
    """Prints a line for each file and size, as csv."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("signals", type=Path, nargs="+")
    print("dataset,defense,records,median,low,high")
    for path in parser.parse_args().signals:
        dataset, _, defense = path.parts[-4:-1]
        for size in SIZES:
            low, median, high = np.quantile(over_samples(path, size), [0.025, 0.5, 0.975])
            print(f"{dataset},{defense},{size},{median:.3f},{low:.3f},{high:.3f}", flush=True)


if __name__ == "__main__":
    main()
