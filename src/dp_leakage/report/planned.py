"""Plan how likely a study recommends a setting well within its limits, before anything is trained.

The test is that of the report (`decision`). Its numbers are planned to vary as those of the bundled digits do: a
record is easy or hard for all models, models differ by two points of accuracy, and an attack's finds are as good as
independent between records and repeats. So the probability is a plan, and the report's own forecast knows better.
"""

from dataclasses import dataclass, replace
from math import ceil, sqrt

from scipy.special import ndtr

from dp_leakage.metrics.contrast import Contrast
from dp_leakage.report.answer import Acceptable
from dp_leakage.report.decision import ALPHA
from dp_leakage.report.forecast import WANTED

LOSES, LEAKS = 0.5, 0.5  # what is planned for: a setting with this share of both limits
REACHED = 0.8  # by the best undefended model
RECORD, MODEL = 0.03, 0.02  # variance of a record's part of what is kept, and standard deviation of a model's part
SHARERS = 2  # settings that are still open beside each other, and divide the error
LUCK = {1: 0.2, 2: 0.55, 3: 0.75}  # standard errors by which the largest of several attacks' finds is too large
REPEATS = (4, 6, 8, 12, 16, 24, 32, 48, 64)  # numbers of repeats that are proposed


@dataclass(frozen=True)
class Planned:
    """A study before it is run.

    Attributes:
        records: that coins put in or out of each training.
        tested: new records that no model trains on.
        repeats: models per setting.
        attacks: how many membership attacks are run.
        undefended: how many undefended models the use is compared with.
    """

    records: int
    tested: int
    repeats: int
    attacks: int
    undefended: int

    def probability(self, limits: Acceptable) -> float:
        """Return how likely the study recommends a setting with half of both acceptable numbers."""
        spare = (1 - LOSES) * limits.accuracy_loss * REACHED
        cells = REACHED * (1 - REACHED) / self.repeats / self.tested
        use = Contrast(
            spare, MODEL**2 / self.repeats, RECORD / self.tested + cells, cells, self.repeats, float(self.tested)
        )
        each = 1 / (self.records * self.repeats)
        leak = Contrast(LEAKS * limits.advantage, each, each, each, self.repeats, float(self.records))
        room = (1 - LEAKS) * limits.advantage - LUCK[min(self.attacks, 3)] * sqrt(each)
        # Against several undefended models, as if they were independent: they are alike, so it is at least that.
        return float(_passes(use, spare) ** self.undefended * _passes(leak, room))

    def enough(self, limits: Acceptable) -> int | None:
        """Return the smallest of `REPEATS` that does with a probability of `WANTED`; None if none does."""
        fits = (many for many in REPEATS if replace(self, repeats=many).probability(limits) >= WANTED)
        return next(fits, None)

    def times_records(self, limits: Acceptable) -> float | None:
        """Return how many times the records would do with these repeats; None if a hundred times would not."""
        for tenths in range(10, 1001):
            times = tenths / 10
            more = replace(self, records=ceil(times * self.records), tested=ceil(times * self.tested))
            if more.probability(limits) >= WANTED:
                return times
        return None


def _passes(number: Contrast, room: float) -> float:
    """Return how likely a number passes its test with an expected distance of ``room`` from its limit."""
    return float(ndtr((room - number.reach(ALPHA / SHARERS)) / sqrt(number.var_repeats + number.of_records)))
