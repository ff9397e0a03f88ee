"""The test behind a recommendation: of all studies, at most 5 % recommend a setting that fails a limit.

A setting is good if it keeps enough of the accuracy of *every* undefended model, beats guessing, and is proven to
protect or leaks at most so much to *every* attack at *every* threshold of a fixed list. Each of these conditions is
tested one-sided at the same level. A bad setting violates at least one, and passes the test of that one with at most
this level, so nothing is divided among conditions (intersection-union, Berger 1982). Only the choice among settings is
paid for:

1. What surely fails a condition, at a tenth of the 5 %, is set aside. A bad setting near its limit is set aside once in
   200 studies. One that often is, is so far from the limit that it hardly ever passes. So only what is left shares 5 %.
2. The settings that a proof protects share once: they are tested from the weakest protection on, up to the first that
   fails (fixed sequence). Every other setting shares for itself.
3. Each sharer has its part of the 5 % for each of its conditions.

A study may be looked at several times while its repeats grow. Each planned look then has its own part of the 5 %
instead of the whole (`Look`), so whatever its numbers have to do with those of the others, all looks together recommend
a setting that fails in at most 5 % of studies.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

from dp_leakage.metrics.contrast import Contrast

ALPHA = 0.05
ASIDE = 0.1  # of the error of a look: the part with which a setting is set aside
# Parts of the 5 % by number of planned looks. Of three, the last one has the most, since it has the most repeats.
SPENDING: dict[int, tuple[float, ...]] = {1: (1.0,), 2: (0.5, 0.5), 3: (0.25, 0.25, 0.5)}
Is = Literal["yes", "no", "open"]


@dataclass(frozen=True)
class Conditions:
    """What a setting must satisfy.

    Attributes:
        use: what must be positive: accuracy less what must be kept of each undefended model's.
        guess: the same of accuracy less that of guessing; None: not known.
        leak: the advantages that must be small, of each attack at each threshold.
        by_proof: whether a proof makes them so.
        limit: what is proven of any attack's advantage; 1 if nothing is.
        chosen_among: whether it is a private setting that may be recommended.
        explained: whether a difference between members and others themselves may explain what attacks find.
        hidden: whether such a difference may hide what leaks.
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
        """Return whether it is shown to keep the accuracy and to beat guessing."""
        return bool(self.use) and all(one.is_above(0.0, level) for one in (*self.use, *self._guess))

    def loses(self, level: float) -> bool:
        """Return whether it loses too much or only guesses, with this error for each condition."""
        return any(one.is_below(0.0, level) for one in (*self.use, *self._guess))

    def holds(self, advantage: float, level: float) -> bool:
        """Return whether every attack tried is shown to have at most this advantage."""
        return bool(self.leak) and not self.hidden and all(one.is_below(advantage, level) for one in self.leak)

    def leaks(self, advantage: float, level: float) -> bool:
        """Return whether an attack has a larger advantage, with this error for each attack and threshold."""
        return not self.explained and any(one.is_above(advantage, level) for one in self.leak)

    def beats(self, level: float, surely: float) -> Is:
        """Return whether it is better than guessing; yes where that is not known. ``surely`` is the error of a no."""
        if self.guess is None or self.guess.is_above(0.0, level):
            return "yes"
        return "no" if self.guess.is_below(0.0, surely) else "open"

    @property
    def numbers(self) -> tuple[Contrast, ...]:
        """All that is tested: the leak only where no proof limits it."""
        return (*self.use, *self._guess, *(() if self.by_proof else self.leak))

    @property
    def _guess(self) -> tuple[Contrast, ...]:
        return () if self.guess is None else (self.guess,)


@dataclass(frozen=True)
class Look:
    """One of the looks at a study that were planned before it ran, each with more repeats than the one before.

    Attributes:
        planned: number of repeats of each look, ascending, at most three; empty if the study plans a single look.
        number: which look it is, from 1.
    """

    planned: tuple[int, ...] = ()
    number: int = 1

    @property
    def levels(self) -> tuple[float, ...]:
        """Return the error that each planned look may make."""
        return tuple(ALPHA * part for part in SPENDING[max(len(self.planned), 1)])

    @property
    def level(self) -> float:
        """Return the error that this look may make."""
        return self.levels[self.number - 1]

    @property
    def later(self) -> dict[int, float]:
        """Return the looks to come: number of repeats → the error that the look may make."""
        return dict(zip(self.planned[self.number :], self.levels[self.number :], strict=True))


def look_of(repeats: int, planned: Sequence[int] = ()) -> Look:
    """Return the look at a study with so many repeats, one of those ``planned`` if there are any."""
    return Look(tuple(planned), planned.index(repeats) + 1) if planned else Look()


@dataclass(frozen=True)
class Judgment:
    """What the test shows of one setting.

    Attributes:
        beats: whether it is better than guessing.
        keeps: whether it keeps the accuracy and beats guessing.
        protects: whether its risk is acceptable; ``no`` also where that needs a proof and there is none.
        leaks: whether an attack surely has too large an advantage.
        aside: whether it surely fails, so that it was set aside.
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
    """Return what is shown of each setting, and among how many tests the error was divided.

    Those of which both ``keeps`` and ``protects`` are ``yes`` are good together, but for this error.

    Args:
        settings: all of a data set.
        advantage: the largest acceptable one.
        risk: ``measured``, or ``proven`` if only a proof counts as protection.
        aware: whether an attack knows the defense. Without one, little measured leakage is no protection.
        error: what this look may err with (`Look.level`).
    """
    measured, surely = aware and risk == "measured", ASIDE * error
    fails = [one.loses(surely) or (not one.by_proof and one.leaks(advantage, surely)) for one in settings]
    left = {i for i, one in enumerate(settings) if one.chosen_among and not fails[i] and (one.by_proof or measured)}
    chain = sorted((i for i in left if settings[i].by_proof), key=lambda i: -settings[i].limit)
    sharers = len(left) - len(chain) + bool(chain)
    share = error / max(sharers, 1)
    apart = error / max(sum(one.chosen_among for one in settings), 1)  # of what is told of all others
    untested = set(chain) - set(_until_one_fails(chain, settings, share))

    def judged(i: int) -> Judgment:
        one, level = settings[i], share if i in left else apart
        leaks = one.leaks(advantage, surely)
        keeps: Is = "yes" if i not in untested and one.keeps(level) else "open"
        protects: Is = "no" if leaks or risk == "proven" else "open"
        if one.by_proof or (protects == "open" and measured and one.holds(advantage, level)):
            protects = "yes"
        return Judgment(one.beats(level, surely), "no" if one.loses(surely) else keeps, protects, leaks, fails[i])

    return [judged(i) for i in range(len(settings))], sharers


def _until_one_fails(chain: Sequence[int], settings: Sequence[Conditions], level: float) -> Iterator[int]:
    for i in chain:
        if not settings[i].keeps(level):
            return
        yield i
