"""Where LiRA takes its variances from, over the number of references: prints the table of docs/results/attacks.md.

    snakemake quickstart && python benchmarks/lira_variances.py results/quickstart/digits/mlp/none

A study by coins has many models of one cell. One of them is the target, and K others are the references, drawn anew 60
times.
"""

import sys

import numpy as np
from sklearn.metrics import roc_auc_score

from dp_leakage.attacks import ATTACKS
from dp_leakage.attacks.membership import lira
from dp_leakage.attacks.signals import Signals
from dp_leakage.results import read_cell

REFERENCES, DRAWS, RATES = (4, 8, 16, 23), 60, (0.01, 0.001)


def main(folder: str) -> None:
    """A line per number of references and variance."""
    said = read_cell(folder).signals.asked
    kept = np.flatnonzero(said.trained_on.any(axis=0) & ~said.trained_on.all(axis=0))
    said = said.records(kept)
    models = len(said.trained_on)
    print("| references | variance | AUC | TPR at 1 % | TPR at .1 % |\n| ---: | --- | ---: | ---: | ---: |")
    for count in (one for one in REFERENCES if one < models):
        found: dict[str, list[list[float]]] = {name: [] for name in lira.VARIANCES}
        rng = np.random.default_rng(0)
        for _ in range(DRAWS):
            target, *others = rng.permutation(models)[: count + 1]
            for name, rows in found.items():
                settings = ATTACKS["lira_online"].settings | {"variance": name}
                one, rest = (said.models(np.array(which)) for which in ([target], others))
                rows.append(measured(lira.score(one, rest, settings, 0).score[0], one))
        for name, rows in found.items():
            area, *rates = np.mean(rows, axis=0)
            print(f"| {count} | `{name}` | {area:.3f} | {' | '.join(f'{rate:.3f}' for rate in rates)} |")


def measured(score: np.ndarray, said: Signals) -> list[float]:
    """The area under the ROC, and the share of members above the threshold of each rate."""
    member = said.trained_on[0]
    outside = np.sort(score[~member])[::-1]
    return [roc_auc_score(member, score), *((score[member] > outside[int(f * len(outside))]).mean() for f in RATES)]


if __name__ == "__main__":
    main(sys.argv[1])
