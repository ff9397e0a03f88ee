"""Translation of a study file into cells, paths, settings of the steps, and targets.

These modules are pure, and no other modules build paths. Each uses only those before it in this list: `protocol`
(contents of a study file), `cells` (trainings), `study` (both, as a value), `paths` (location of files), `steps` (the
entry of every step, with identities), `plan` (figures, the report, targets). All but the value are functions.
"""

from dp_leakage.study.cells import Cell
from dp_leakage.study.paths import CLASS_SCORES, SIGNALS, TARGET
from dp_leakage.study.protocol import AUDIT, COINS, GROUPS, SPLIT, TRAINING, TUNE
from dp_leakage.study.steps import TIMING
from dp_leakage.study.steps.parts import CURVE, PROVEN
from dp_leakage.study.study import Study

__all__ = [
    "AUDIT", "CLASS_SCORES", "COINS", "CURVE", "GROUPS", "PROVEN", "SIGNALS", "SPLIT", "TARGET",
    "TIMING", "TRAINING", "TUNE", "Cell", "Study",
]  # fmt: skip
