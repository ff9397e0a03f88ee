"""How much the strongest membership attacks find with few references: prints a table of docs/results/attacks.md.

    python benchmarks/few_references.py data 1 digits breast_cancer    # the folder of data, a seed, data sets

Sixteen undefended targets by coins, on the data sets of `ranking.py`. The last column is the paired difference of the
AUC from the best of the other attacks, on the same records, models and coins. Another seed draws other models and
coins, on which what was chosen on the first should hold.
"""

import sys
import time
from importlib import import_module
from pathlib import Path

import numpy as np
import torch
from attacks import asked
from ranking import WORLDS, prepared, trained

from dp_leakage.attacks import ATTACKS
from dp_leakage.data.splits import dealt, heads
from dp_leakage.metrics import coins
from dp_leakage.metrics.intervals import Estimate, crossed

TARGETS, REFERENCES = 16, (2, 4, 16)
OTHERS, LEARNT = ("lira_shrunk", "rmia_online", "posterior"), "combined"


def main(folder: str, seed: str, *names: str) -> None:
    """A line for each data set, number of references and attack."""
    first = int(seed)
    print("| data | references | attack | AUC | TPR at 1 % | at .1 % | seconds | AUC, less the best other |")
    print("| --- | ---: | --- | ---: | ---: | ---: | ---: | ---: |")
    for name in names:
        world = WORLDS[name]
        data = prepared(world, Path(folder))
        target = asked(trained(world, data, heads(world.pool, TARGETS, first), 100 * first, False)[0], data)
        member = target.asked.trained_on
        for count in REFERENCES:
            inside = np.zeros((count, world.pool), bool)
            inside[np.arange(count)[:, None], dealt(world.pool, world.pool // 2, count, first + 1)] = True
            learnt = asked(trained(world, data, inside, 100 * first + 100, False)[0], data)
            areas: dict[str, coins.Influences] = {}
            for attack in (*OTHERS, LEARNT):
                entry, started = ATTACKS[attack], time.process_time()
                score = import_module(entry.module).score(target, learnt, dict(entry.settings), 0).score
                seconds = (time.process_time() - started) / TARGETS
                areas[attack] = coins.auc(score, member)
                found = [areas[attack], *(coins.tpr_at_fpr(score, member, fpr) for fpr in (0.01, 0.001))]
                texts = [shown(crossed(one, (0.0, 1.0))) for one in found]
                apart = ""
                if attack == LEARNT:
                    best = max(OTHERS, key=lambda other: areas[other].value)
                    apart = shown(coins.paired_difference(areas[LEARNT], areas[best]))
                cells = [name, str(count), f"`{attack}`", *texts, f"{seconds:.3f}", apart]
                print(f"| {' | '.join(cells)} |", flush=True)


def shown(found: Estimate) -> str:
    """A number with its interval."""
    return f"{found.value:.3f} [{found.low:.3f}, {found.high:.3f}]".replace("-", "−")


if __name__ == "__main__":
    torch.set_num_threads(1)
    main(*sys.argv[1:])
