"""Plan of a study: the probability that it recommends a setting well within its limits, before training.

The test is that of the report (`decision`). The assumed variances are those of the bundled digits: a record is easy or
hard for all models, models differ by two points of accuracy, and an attack's successes are nearly independent between
records and repeats. The report's own forecast replaces these assumptions by measured variances.
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
    """A planned study.

    Attributes:
        records: number of records with random inclusion.
        tested: number of test records.
        repeats: models per setting.
        attacks: number of membership attacks.
        undefended: number of undefended models in the comparison of use.
    """

    records: int
    tested: int
    repeats: int
    attacks: int
    undefended: int

    def probability(self, limits: Acceptable) -> float:
        """Return the probability of recommending a setting with half of both acceptable numbers."""
        spare = (1 - LOSES) * limits.accuracy_loss * REACHED
        cells = REACHED * (1 - REACHED) / self.repeats / self.tested
        use = Contrast(
            spare, MODEL**2 / self.repeats, RECORD / self.tested + cells, cells, self.repeats, float(self.tested)
        )
        each = 1 / (self.records * self.repeats)
        leak = Contrast(LEAKS * limits.advantage, each, each, each, self.repeats, float(self.records))
        room = (1 - LEAKS) * limits.advantage - LUCK[min(self.attacks, 3)] * sqrt(each)
        # As if undefended models were independent. They are similar, so the probability is at least this.
        return float(_passes(use, spare) ** self.undefended * _passes(leak, room))

    def enough(self, limits: Acceptable) -> int | None:
        """Return the smallest of `REPEATS` that reaches a probability of `WANTED`; None if none does."""
        fits = (many for many in REPEATS if replace(self, repeats=many).probability(limits) >= WANTED)
        return next(fits, None)

    def times_records(self, limits: Acceptable) -> float | None:
        """Return the factor on the number of records that suffices with these repeats; None above a hundred."""
        for tenths in range(10, 1001):
            times = tenths / 10
            more = replace(self, records=ceil(times * self.records), tested=ceil(times * self.tested))
            if more.probability(limits) >= WANTED:
                return times
        return None


def _passes(number: Contrast, room: float) -> float:
    """Return the probability that a number passes its test at an expected distance ``room`` from its limit."""
    return float(ndtr((room - number.reach(ALPHA / SHARERS)) / sqrt(number.var_repeats + number.of_records)))
