"""From a study file to cells, paths, settings of the steps and targets. Pure; nobody else builds a path.

Each layer knows those above it in this list alone: `cells` (what is trained), `paths` (where it lies), `settings` (of
every step), `parts` (by what a cell is measured), `plan` (metrics, figures, the report).
"""

from dp_leakage.study.cells import AUDIT, COINS, SPLIT, TRAINING, TUNE, Cell
from dp_leakage.study.parts import CURVE, PROVEN
from dp_leakage.study.paths import CLASS_SCORES, SIGNALS, TARGET
from dp_leakage.study.plan import Study
from dp_leakage.study.settings import READ_BY_ATTACKS, TIMING

__all__ = [
    "AUDIT", "CLASS_SCORES", "COINS", "CURVE", "PROVEN", "READ_BY_ATTACKS", "SIGNALS", "SPLIT", "TARGET", "TIMING",
    "TRAINING", "TUNE", "Cell", "Study",
]  # fmt: skip
