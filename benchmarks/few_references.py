"""What the learned attack finds with 2, 4 and 16 references, and the best other with as many and with thrice as many.

    python benchmarks/few_references.py data digits 21 120         # the folder of data, a data set, a seed, targets
    python benchmarks/few_references.py data cifar100 21 12 16     # with 16 references at most

Undefended targets by coins, on the data sets of `ranking.py`; prints a table of docs/results/attacks.md. Every target
has references of its own, so two targets share nothing but the records. The best others are those with the largest AUC
and with the largest TPR at 1 %, chosen on these very targets, which favors them. The settings of the learned attack
were chosen on seed 1.
"""

import sys
import time
from importlib import import_module
from pathlib import Path

import numpy as np
import torch
from attacks import asked
from ranking import WORLDS, halves, prepared, trained

from dp_leakage.attacks import ATTACKS
from dp_leakage.common.identity import derived_seed
from dp_leakage.data.splits import heads
from dp_leakage.metrics import coins
from dp_leakage.metrics.intervals import Estimate, Influences, crossed, over_repeats

COUNTS, TIMES = (2, 4, 16), 3  # references of the learned attack, and how many times as many others have besides
LEARNED, RATE = "combined", 0.01
OTHERS = ("attack_r", "lira", "lira_online", "lira_shrunk", "rmia", "rmia_online", "posterior")
HEAD = (
    "| references | attack | AUC | over records too | TPR at 1 % | over records too | seconds "
    f"| AUC of `{LEARNED}`, less this | TPR at 1 %, less this |"
)


def main(folder: str, name: str, seed: str, targets: str, most: str = "48") -> None:
    """Lines of the learned attack and of the best others, for each number of references of the learned one."""
    world, first = WORLDS[name], int(seed)
    data, member = prepared(world, Path(folder)), heads(world.pool, int(targets), first)
    tried = [(count, attack) for count in COUNTS for attack in (LEARNED, *OTHERS)]
    more = [TIMES * count for count in COUNTS if TIMES * count <= int(most)]
    tried += [(count, attack) for count in more if count not in COUNTS for attack in OTHERS]
    scores = {way: np.empty(member.shape) for way in tried}
    seconds = dict.fromkeys(tried, 0.0)
    for place in range(len(member)):
        own = derived_seed(first, name, place) % 2**31
        target = asked(trained(world, data, member[place : place + 1], own, False), data)
        references = asked(trained(world, data, halves(world.pool, int(most), own), own + 1, False), data)
        for count, attack in tried:
            entry, known = ATTACKS[attack], references.models(np.arange(count))
            started = time.process_time()
            scores[count, attack][place] = import_module(entry.module).score(target, known, entry.settings, 0).score[0]
            seconds[count, attack] += (time.process_time() - started) / len(member)
    areas = {way: coins.auc(score, member) for way, score in scores.items()}
    shares = {way: coins.share_above(score, member, RATE) for way, score in scores.items()}
    print(f"{HEAD}\n|{' ---: |' * (HEAD.count('|') - 1)}")
    for count in COUNTS:
        line((count, LEARNED), (count, LEARNED), areas, shares, seconds)
        for size in [count, *({TIMES * count} & set(more))]:
            ways = [(size, attack) for attack in OTHERS]
            for way in dict.fromkeys(max(ways, key=lambda one: found[one].value) for found in (areas, shares)):
                line(way, (count, LEARNED), areas, shares, seconds)


Way = tuple[int, str]  # number of references, attack


def line(
    way: Way, learned: Way, areas: dict[Way, Influences], shares: dict[Way, Influences], seconds: dict[Way, float]
) -> None:
    """Prints what an attack finds, and how much more the learned one does."""
    found = [
        text
        for own in (areas[way], shares[way])
        for text in (shown(over_targets(own)), shown(crossed(own, (0.0, 1.0))))
    ]
    less = [shown(coins.paired_difference(own[learned], own[way])) if way != learned else "" for own in (areas, shares)]
    print(f"| {way[0]} | `{way[1]}` | {' | '.join([*found, f'{seconds[way]:.3f}', *less])} |", flush=True)


def over_targets(found: Influences) -> Estimate:
    """The interval for other targets of the same records, by Student's t over the targets."""
    each = found.value + found.blocks[0].mean(axis=1)
    return over_repeats(Estimate(found.value, found.value, found.value), each)


def shown(found: Estimate) -> str:
    """A number with its interval."""
    return f"{found.value:.3f} [{found.low:.3f}, {found.high:.3f}]".replace("-", "−")


if __name__ == "__main__":
    torch.set_num_threads(1)
    main(*sys.argv[1:])
