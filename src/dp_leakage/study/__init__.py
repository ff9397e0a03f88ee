"""From a study file to cells, paths, settings of the steps and targets. These modules are pure, and no others build
paths.

Each layer uses only the layers before it in this list: `cells` (what is trained), `paths` (where files lie),
`steps` (every step's entry), `parts` (how a cell is measured), `settings` (what is trained, asked and attacked, and the
identities of all steps), `plan` (figures, the report, targets).
"""

from dp_leakage.study.cells import AUDIT, COINS, GROUPS, SPLIT, TRAINING, TUNE, Cell
from dp_leakage.study.parts import CURVE, PROVEN
from dp_leakage.study.paths import CLASS_SCORES, SIGNALS, TARGET
from dp_leakage.study.plan import Study
from dp_leakage.study.steps import READ_BY_ATTACKS, TIMING

__all__ = [
    "AUDIT", "CLASS_SCORES", "COINS", "CURVE", "GROUPS", "PROVEN", "READ_BY_ATTACKS", "SIGNALS", "SPLIT", "TARGET",
    "TIMING", "TRAINING", "TUNE", "Cell", "Study",
]  # fmt: skip
