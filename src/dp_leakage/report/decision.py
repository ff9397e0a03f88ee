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
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

from dp_leakage.metrics.contrast import Contrast

ALPHA = 0.05
SURELY = ALPHA / 10  # the error with which a setting is set aside
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

    def loses(self) -> bool:
        """Return whether the setting significantly loses too much or only guesses."""
        return any(one.is_below(0.0, SURELY) for one in (*self.use, *self._guess))

    def holds(self, advantage: float, level: float) -> bool:
        """Return whether the advantage of every attack tried is shown to be within the limit."""
        return bool(self.leak) and not self.hidden and all(one.is_below(advantage, level) for one in self.leak)

    def leaks(self, advantage: float) -> bool:
        """Return whether the advantage of an attack significantly exceeds the limit."""
        return not self.explained and any(one.is_above(advantage, SURELY) for one in self.leak)

    def beats(self, level: float) -> Is:
        """Return whether the setting beats guessing; yes if unknown."""
        if self.guess is None or self.guess.is_above(0.0, level):
            return "yes"
        return "no" if self.guess.is_below(0.0, SURELY) else "open"

    @property
    def numbers(self) -> tuple[Contrast, ...]:
        """Return all tested contrasts; those of leakage only without a proof."""
        return (*self.use, *self._guess, *(() if self.by_proof else self.leak))

    @property
    def _guess(self) -> tuple[Contrast, ...]:
        return () if self.guess is None else (self.guess,)


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
    settings: Sequence[Conditions], advantage: float, risk: str = "measured", aware: bool = True
) -> tuple[list[Judgment], int]:
    """Return the judgment of each setting, and the number of tests that share the 5 %.

    With 95 % confidence, all settings with ``keeps`` and ``protects`` both ``yes`` are good.

    Args:
        settings: all settings of a data set.
        advantage: largest acceptable advantage.
        risk: ``measured``, or ``proven`` if only a proof counts as protection.
        aware: whether a defense-aware attack was run. Without one, low measured leakage is no evidence of protection.
    """
    measured = aware and risk == "measured"
    fails = [one.loses() or (not one.by_proof and one.leaks(advantage)) for one in settings]
    left = {i for i, one in enumerate(settings) if one.chosen_among and not fails[i] and (one.by_proof or measured)}
    chain = sorted((i for i in left if settings[i].by_proof), key=lambda i: -settings[i].limit)
    sharers = len(left) - len(chain) + bool(chain)
    share = ALPHA / max(sharers, 1)
    apart = ALPHA / max(sum(one.chosen_among for one in settings), 1)  # of what is told of all others
    untested = set(chain) - set(_until_one_fails(chain, settings, share))

    def judged(i: int) -> Judgment:
        one, level = settings[i], share if i in left else apart
        leaks = one.leaks(advantage)
        keeps: Is = "yes" if i not in untested and one.keeps(level) else "open"
        protects: Is = "no" if leaks or risk == "proven" else "open"
        if one.by_proof or (protects == "open" and measured and one.holds(advantage, level)):
            protects = "yes"
        return Judgment(one.beats(level), "no" if one.loses() else keeps, protects, leaks, fails[i])

    return [judged(i) for i in range(len(settings))], sharers


def _until_one_fails(chain: Sequence[int], settings: Sequence[Conditions], level: float) -> Iterator[int]:
    for i in chain:
        if not settings[i].keeps(level):
            return
        yield i
