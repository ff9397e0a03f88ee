"""Plan of a study: the probability that it recommends a setting well within its limits, before training.

The test is that of the report (`decision`), at each planned look at its part of the error. The assumed variances are
those of the bundled digits: a record is easy or hard for all models, models differ by two points of accuracy, and an
attack's successes are nearly independent between records and repeats. The report's own forecast replaces these
assumptions by measured variances.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import ceil, sqrt

import numpy as np

from dp_leakage.metrics.contrast import Contrast
from dp_leakage.report.answer import Acceptable
from dp_leakage.report.decision import look_of
from dp_leakage.report.forecast import WANTED

LOSES, LEAKS = 0.5, 0.5  # what is planned for: a setting with this share of both limits
REACHED = 0.8  # by the best undefended model
RECORD, MODEL = 0.03, 0.02  # variance of a record's part of what is kept, and standard deviation of a model's part
SHARERS = 2  # settings that are still open beside each other, and divide the error
LUCK = {1: 0.2, 2: 0.55, 3: 0.75}  # standard errors by which the largest of several attacks' finds is too large
REPEATS = (4, 6, 8, 12, 16, 24, 32, 48, 64)  # numbers of repeats that are proposed for the first look
DRAWS = 20_000  # of a study's results, which leave an error of 0.3 points in a probability of 80 %


@dataclass(frozen=True)
class Planned:
    """A planned study.

    Attributes:
        records: number of records with random inclusion.
        tested: number of test records.
        looks: models per setting at each planned look, ascending.
        attacks: number of membership attacks.
        undefended: number of undefended models in the comparison of use.
    """

    records: int
    tested: int
    looks: tuple[int, ...]
    attacks: int
    undefended: int

    def probabilities(self, limits: Acceptable) -> list[float]:
        """Return the probability, by each look, of recommending a setting with half of both acceptable numbers.

        Undefended models count as independent. They are similar, so the probabilities are at least these.
        """
        leaks = self._passes([self._room(limits.advantage, repeats) for repeats in self.looks], 0)
        uses = [self._use(limits.accuracy_loss, repeats) for repeats in self.looks]
        passed = np.logical_and.reduce([leaks, *(self._passes(uses, 1 + i) for i in range(self.undefended))])
        return [float(share) for share in np.logical_or.accumulate(passed).mean(axis=1)]

    def enough(self, limits: Acceptable) -> tuple[int, ...] | None:
        """Return the earliest looks that reach `WANTED` by the last one; None if none do.

        The first is of `REPEATS`, and the others are the same multiples of it as now.
        """
        for first in REPEATS:
            looks = tuple(first * look // self.looks[0] for look in self.looks)
            if replace(self, looks=looks).probabilities(limits)[-1] >= WANTED:
                return looks
        return None

    def times_records(self, limits: Acceptable) -> float | None:
        """Return the factor on the number of records that suffices with these looks; None above a hundred."""
        few, many = 10, 1001  # tenths
        while few < many:
            times = (few + many) // 2
            more = replace(self, records=ceil(times * self.records / 10), tested=ceil(times * self.tested / 10))
            few, many = (few, times) if more.probabilities(limits)[-1] >= WANTED else (times + 1, many)
        return few / 10 if few <= 1000 else None

    def _use(self, loss: float, repeats: int) -> Contrast:
        """Return the distance of the use from the smallest acceptable use."""
        cells = REACHED * (1 - REACHED) / repeats / self.tested
        parts = MODEL**2 / repeats, RECORD / self.tested + cells, cells
        return Contrast((1 - LOSES) * loss * REACHED, *parts, repeats, float(self.tested))

    def _room(self, advantage: float, repeats: int) -> Contrast:
        """Return how far the strongest attack's advantage lies below its limit."""
        each = 1 / (self.records * repeats)
        room = (1 - LEAKS) * advantage - LUCK[min(self.attacks, 3)] * sqrt(each)
        return Contrast(room, each, each, each, repeats, float(self.records))

    def _passes(self, numbers: Sequence[Contrast], stream: int) -> np.ndarray:
        """Draw whether a number that must be positive passes its test at each look, bool (looks, `DRAWS`).

        A later look has all repeats of the earlier ones. So the number at a look is the one at the next look and an
        independent step.
        """
        variances = [one.var_repeats + one.of_records for one in numbers]
        steps = np.sqrt(-np.diff(variances, append=0.0))[:, None]
        noise = steps * np.random.default_rng(stream).normal(size=(len(numbers), DRAWS))
        spare = [one.value - one.reach(look_of(int(one.repeats), self.looks).level / SHARERS) for one in numbers]
        return np.asarray(noise[::-1].cumsum(axis=0)[::-1] + np.array(spare)[:, None] > 0)
