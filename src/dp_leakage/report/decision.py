"""The test behind a recommendation: at most 5 % of all studies recommend a setting that fails a limit.

A good setting keeps enough of the accuracy of *every* undefended model and beats guessing. Also, a proof protects it,
or *every* attack's advantage at *every* threshold of a fixed list is small enough. Each condition has a one-sided test
at the same level. A bad setting violates at least one condition and passes that test with at most this probability. So
the error is not divided among conditions (intersection-union test, Berger 1982). It is divided only among settings:

1. Settings that fail a condition significantly, at a tenth of the 5 %, are set aside. A bad setting near its limit is
set aside once in 200 studies; a setting that is set aside more often hardly ever passes. So only the remaining settings
share the 5 %.
2. Settings with a proof have one share together: they are tested from the weakest protection on, until one fails (fixed
sequence). Every other setting has its own share.
3. A share of the 5 % is the level of each condition's test.

A study can plan several looks while its repeats grow. Each planned look then has its own part of the 5 % (`Look`). So
all looks together recommend a setting that fails a limit in at most 5 % of studies, however their numbers depend on
each other (Bonferroni).
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

from dp_leakage.metrics.contrast import Contrast

ALPHA = 0.05
ASIDE = 0.1  # share of a look's error at which a setting is set aside
# Share of the 5 % of each look, by number of planned looks. The last of three has the most repeats and the largest.
SPENDING: dict[int, tuple[float, ...]] = {1: (1.0,), 2: (0.5, 0.5), 3: (0.25, 0.25, 0.5)}
Is = Literal["yes", "no", "open"]


@dataclass(frozen=True)
class Conditions:
    """Conditions on a setting.

    Attributes:
        use: contrasts that must be positive: the accuracy minus the required part of each undefended model's.
        guess: the accuracy minus the accuracy of guessing, which must be positive; None: unknown.
        leak: the advantage of each attack at each threshold, which must be small.
        by_proof: whether a proof limits the advantages enough.
        limit: the proven maximum of any attack's advantage; 1 without a proof.
        chosen_among: whether the setting is private and may be recommended.
        explained: whether a difference between member and non-member records may explain the attacks' success.
        hidden: whether such a difference may hide leakage.
    """

    use: tuple[Contrast, ...]
    guess: Contrast | None
    leak: tuple[Contrast, ...]
    by_proof: bool
    limit: float
    chosen_among: bool
    explained: bool = False
    hidden: bool = False

    def keeps(self, level: float) -> bool:
        """Return whether the setting is shown to keep the accuracy and to beat guessing."""
        return bool(self.use) and all(one.is_above(0.0, level) for one in (*self.use, *self._guess))

    def loses(self, level: float) -> bool:
        """Return whether the setting loses too much or only guesses, at this level of each condition's test."""
        return any(one.is_below(0.0, level) for one in (*self.use, *self._guess))

    def holds(self, advantage: float, level: float) -> bool:
        """Return whether the advantage of every attack tried is shown to be within the limit."""
        return bool(self.leak) and not self.hidden and all(one.is_below(advantage, level) for one in self.leak)

    def leaks(self, advantage: float, level: float) -> bool:
        """Return whether the advantage of an attack exceeds the limit, at this level of each test."""
        return not self.explained and any(one.is_above(advantage, level) for one in self.leak)

    def beats(self, level: float, reject: float) -> Is:
        """Return whether the setting beats guessing, at the level of a yes and that of a no; yes if unknown."""
        if self.guess is None or self.guess.is_above(0.0, level):
            return "yes"
        return "no" if self.guess.is_below(0.0, reject) else "open"

    @property
    def numbers(self) -> tuple[Contrast, ...]:
        """Return all tested contrasts; those of leakage only without a proof."""
        return (*self.use, *self._guess, *(() if self.by_proof else self.leak))

    @property
    def _guess(self) -> tuple[Contrast, ...]:
        return () if self.guess is None else (self.guess,)


@dataclass(frozen=True)
class Look:
    """A planned look at a study (interim analysis).

    Attributes:
        planned: number of repeats of each planned look, ascending, at most three; empty for a single look.
        number: position of this look among them, from 1.
    """

    planned: tuple[int, ...] = ()
    number: int = 1

    @property
    def levels(self) -> tuple[float, ...]:
        """Return the probability of a wrong recommendation at each planned look."""
        return tuple(ALPHA * part for part in SPENDING[max(len(self.planned), 1)])

    @property
    def level(self) -> float:
        """Return the probability of a wrong recommendation at this look."""
        return self.levels[self.number - 1]

    @property
    def later(self) -> dict[int, float]:
        """Return the looks to come: number of repeats → probability of a wrong recommendation."""
        return dict(zip(self.planned[self.number :], self.levels[self.number :], strict=True))


SINGLE = Look()


def look_of(repeats: int, planned: Sequence[int] = ()) -> Look:
    """Return the look at a study with this number of repeats, which is one of ``planned`` unless that is empty."""
    return Look(tuple(planned), planned.index(repeats) + 1) if planned else SINGLE


@dataclass(frozen=True)
class Judgment:
    """Test results of a setting.

    Attributes:
        beats: whether the setting beats guessing.
        keeps: whether the setting keeps the accuracy and beats guessing.
        protects: whether the risk is acceptable; ``no`` also if the study requires a proof and there is none.
        leaks: whether an attack's advantage significantly exceeds the limit.
        aside: whether the setting was set aside, since it fails significantly.
    """

    beats: Is = "open"
    keeps: Is = "open"
    protects: Is = "open"
    leaks: bool = False
    aside: bool = False


def judge(
    settings: Sequence[Conditions],
    advantage: float,
    risk: str = "measured",
    aware: bool = True,
    error: float = ALPHA,
) -> tuple[list[Judgment], int]:
    """Return the judgment of each setting, and the number of tests that share the error.

    All settings with ``keeps`` and ``protects`` both ``yes`` are good, except with a probability of ``error``.

    Args:
        settings: all settings of a data set.
        advantage: largest acceptable advantage.
        risk: ``measured``, or ``proven`` if only a proof counts as protection.
        aware: whether a defense-aware attack was run. Without one, low measured leakage is not evidence of protection.
        error: probability of a wrong recommendation at this look (`Look.level`).
    """
    measured, reject = aware and risk == "measured", ASIDE * error
    fails = [one.loses(reject) or (not one.by_proof and one.leaks(advantage, reject)) for one in settings]
    left = {i for i, one in enumerate(settings) if one.chosen_among and not fails[i] and (one.by_proof or measured)}
    chain = sorted((i for i in left if settings[i].by_proof), key=lambda i: -settings[i].limit)
    sharers = len(left) - len(chain) + bool(chain)
    share = error / max(sharers, 1)
    apart = error / max(sum(one.chosen_among for one in settings), 1)  # of what is told of all others
    untested = set(chain) - set(_until_one_fails(chain, settings, share))

    def judged(i: int) -> Judgment:
        one, level = settings[i], share if i in left else apart
        leaks = one.leaks(advantage, reject)
        keeps: Is = "yes" if i not in untested and one.keeps(level) else "open"
        protects: Is = "no" if leaks or risk == "proven" else "open"
        if one.by_proof or (protects == "open" and measured and one.holds(advantage, level)):
            protects = "yes"
        return Judgment(one.beats(level, reject), "no" if one.loses(reject) else keeps, protects, leaks, fails[i])

    return [judged(i) for i in range(len(settings))], sharers


def _until_one_fails(chain: Sequence[int], settings: Sequence[Conditions], level: float) -> Iterator[int]:
    for i in chain:
        if not settings[i].keeps(level):
            return
        yield i
